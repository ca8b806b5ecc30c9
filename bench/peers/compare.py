"""hyperprior beside JAGS, Stan, PyMC, nutpie and NumPyro: seconds, and how far means and sds are from long runs, each with its defaults.

compare.py [NAME...] [--hyperprior PROGRAM] [--programs P,Q] [--seeds 3]

Four chains of 1000 draws after 1000 of warm-up, which is what Stan and PyMC take when asked for nothing (PyMC: four chains
whatever the number of cores); JAGS and NumPyro, which have no default, the same; hyperprior with its defaults. Each seed is a
process of its own, timed from start to end. Stan and PyMC keep what they compile: the first run is told apart from the others.
The references are those of ../jags/reference and of larger.py. nutpie runs only the models without discrete latents.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "jags"))

import numpy as np  # noqa: E402

import jags  # noqa: E402
from larger import LARGER, SIZES, folder as larger_folder, reference as larger_reference  # noqa: E402
from references import COMPARED, reference  # noqa: E402

EXAMPLES = HERE.parent.parent / "examples"
MODELS = ["coal", "spike_hald", "hmm_quakes", "dawid_skene", "n_mixture", "rats", *LARGER]
PROGRAMS = ["hyperprior", "JAGS", "Stan", "PyMC", "nutpie", "NumPyro"]
CONTINUOUS = ["rats", *SIZES]


def place(name):
    """The folder of a model and its data, and its scalars to compare."""
    if name in SIZES:
        return larger_folder(name, HERE.parent / "target" / "larger"), SIZES[name][1]
    return EXAMPLES / name, COMPARED[name]


def scalars(draws, wanted):
    """Mean, sd and R̂ of every scalar of arrays (chains, draws, extents...)."""
    found = {}
    for name in wanted:
        for index in np.ndindex(draws[name].shape[2:]):
            key = name + (f"[{','.join(str(i + 1) for i in index)}]" if index else "")
            chains = draws[name][(slice(None), slice(None), *index)].astype(float)
            found[key] = {"mean": chains.mean(), "sd": chains.std(ddof=1), "rhat": jags.split_rhat(chains)}
    return found


def sampled(program, name, seed):
    """What one of the Python programs finds; it runs in a process of its own, whose time is the caller's to take."""
    module = __import__(f"with_{program.lower()}")
    folder, compared = place(name)
    return scalars(module.sample(name, json.loads((folder / "data.json").read_text()), seed), compared)


def timed(command):
    """What a program printed, and the seconds it took."""
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout, took


def run(program, hyperprior, name, seed):
    """Mean, sd and R̂ of every scalar, the seconds it took, and what the program itself says of the answer."""
    folder, compared = place(name)
    if program == "JAGS":
        inits = jags.load(HERE.parent / "jags" / "examples.json").get(name, {}).get("inits")
        data = jags.load(folder / "data.json")
        draws, took = jags.run(
            folder / "model.bug", data, compared, burn=1000, iterations=1000, chains=4, seed=seed, inits=inits
        )
        found = {key: {"mean": c.mean(), "sd": c.std(ddof=1), "rhat": jags.split_rhat(c)} for key, c in draws.items()}
        return found, took
    if program == "hyperprior":
        command = [hyperprior, "fit", str(folder / "model.bug"), "--data", str(folder / "data.json")]
        command += ["--seed", str(seed), "--json", "--quiet", "--monitor", ",".join(compared)]
    else:
        command = [sys.executable, __file__, "--one", program, name, str(seed)]
    printed, took = timed(command)
    told = json.loads(printed.splitlines()[-1] if program != "hyperprior" else printed)
    if program == "hyperprior":
        return told["parameters"], took, told["verdict"]
    return told, took


def row(program, hyperprior, name, seeds):
    rows = larger_reference(name) if name in LARGER else reference(name)
    first = run(program, hyperprior, name, 1000)[1]
    seconds, means, deviations, said = [], [], [], []
    for seed in range(1, seeds + 1):
        found, took, *verdict = run(program, hyperprior, name, seed)
        missing = [key for key in rows if key not in found]
        if missing:
            sys.exit(f"{program} on {name} lacks {', '.join(missing)}: it has {', '.join(found)}")
        seconds.append(took)
        means.append(max(abs(found[key]["mean"] - row["mean"]) / row["sd"] for key, row in rows.items()))
        deviations.append(max(abs(found[key]["sd"] / row["sd"] - 1) for key, row in rows.items()))
        said.append(verdict[0] if verdict else max(found[key]["rhat"] for key in rows))
    middle = statistics.median
    told = "; ".join(sorted(set(said))) if isinstance(said[0], str) else f"R̂ {middle(said):.2f}"
    return (
        f"| {name} | {program} | {first:.1f} | {middle(seconds):.1f} | {middle(means):.3f} | {middle(deviations):.0%} | {told} |"
    )


def main():
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(sampled(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--hyperprior", default="hyperprior", help="the program")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in MODELS:
            parser.error(f"{name} is not one of {', '.join(MODELS)}")
    programs = arguments.programs.split(",")
    for program in programs:
        if program not in PROGRAMS:
            parser.error(f"{program} is not one of {', '.join(PROGRAMS)}")
    print("| example | program | first run, s | later runs, s | farthest mean, sd | farthest sd | it says |")
    print("| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name in arguments.names or MODELS:
        for program in programs:
            if program == "nutpie" and name not in CONTINUOUS:
                continue
            print(row(program, arguments.hyperprior, name, arguments.seeds), flush=True)


if __name__ == "__main__":
    main()
