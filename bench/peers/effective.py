"""Effective draws per second of the No-U-Turn sampler: hyperprior's, nutpie's and Stan's, on models without discrete latents.

effective.py [NAME...] [--hyperprior PROGRAM] [--seeds 3]

Each with its defaults: hyperprior runs sixteen chains until its criteria are met, the others four chains of 1000 draws after 1000 of
warm-up. Seconds are those of a whole process, of which the first compiles what the program keeps and is not counted. The effective draws
are the fewest: for hyperprior of all latents, as it reports them, and for the others of the scalars that compare.py compares.
"""

import argparse
import json
import statistics
import sys

import compare


def effective(program, name, seed):
    """The fewest effective draws of a peer; it runs in a process of its own."""
    import arviz

    folder, compared = compare.place(name)
    module = __import__(f"with_{program.lower()}")
    draws = module.sample(name, json.loads((folder / "data.json").read_text()), seed)
    ess = arviz.ess(arviz.from_dict(posterior={key: draws[key] for key in compared}), method="bulk")
    return min(float(ess[key].min()) for key in compared)


def run(program, hyperprior, name, seed):
    """The fewest effective draws, and seconds."""
    folder, _ = compare.place(name)
    command = [sys.executable, __file__, "--one", program, name, str(seed)]
    if program == "hyperprior":
        command = [hyperprior, "fit", str(folder / "model.bug"), "--data", str(folder / "data.json")]
        command += ["--seed", str(seed), "--json", "--quiet", "--method", "nuts"]
    printed, took = compare.timed(command)
    if program == "hyperprior":
        return json.loads(printed)["fit_history"]["nuts"]["ess_bulk"], took
    return json.loads(printed.splitlines()[-1]), took


def main():
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(effective(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(compare.CONTINUOUS))
    parser.add_argument("--hyperprior", default="hyperprior", help="the program")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("| model | program | effective draws | seconds | per second |\n| --- | --- | ---: | ---: | ---: |")
    for name in options.names or compare.CONTINUOUS:
        for program in ["hyperprior", "nutpie", "Stan"]:
            run(program, options.hyperprior, name, 1000)
            found = [run(program, options.hyperprior, name, seed) for seed in range(1, options.seeds + 1)]
            draws, seconds = (statistics.median(column) for column in zip(*found))
            rate = statistics.median(draws / seconds for draws, seconds in found)
            print(f"| {name} | {program} | {draws:.0f} | {seconds:.1f} | {rate:.0f} |", flush=True)


if __name__ == "__main__":
    main()
