"""Times hyperprior beside JAGS: how long until every continuous posterior mean is within a tenth of a sd of the reference.

compare.py [NAME...] [--hyperprior PROGRAM] [--seeds 10] [--threads 1] [--jags-only]

JAGS: one chain, burn-in half of what is kept (it adapts meanwhile), lengths doubled until, for all seeds but one in five,
all means are near; its time is the median over the seeds at that length, no time charged for the lengths tried before.
hyperprior: `fit` with the number of draws doubled by the same rule, up to its default of 4000 (all else decides itself), and
with its defaults. Both from process start to end. The reference is reference/NAME.json: a long run of JAGS (reference.py), or exact (karate_exact.py).
"""

import argparse
import json
import math
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

import numpy as np

import jags
from references import COMPARED, reference

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
NEAR = 0.1
MISSES = 0.2
DEFAULT = ["coal", "spike_hald", "hmm_quakes", "dawid_skene", "n_mixture"]
SHORTEST, LONGEST = 500, 128_000
DRAWS = [500, 1000, 2000, 4000]


def farthest(rows, means):
    """The largest distance from the reference, in its standard deviations; infinite where a mean is missing."""
    return max(abs(means.get(key, math.inf) - row["mean"]) / row["sd"] for key, row in rows.items())


def jags_time(name, rows, seeds):
    """Iterations kept, median seconds, and the share of seeds that came near at that length."""
    settings = jags.load(HERE / "examples.json").get(name, {})
    data = jags.load(EXAMPLES / name / "data.json")
    length = SHORTEST
    while True:
        distances, seconds = [], []
        for seed in range(1, seeds + 1):
            draws, took = jags.run(
                EXAMPLES / name / "model.bug",
                data,
                COMPARED[name],
                burn=length // 2,
                iterations=length,
                seed=seed + 100,
                inits=settings.get("inits"),
            )
            distances.append(farthest(rows, {key: chains.mean() for key, chains in draws.items()}))
            seconds.append(took)
        share = float(np.mean(np.array(distances) <= NEAR))
        print(f"  JAGS {length:>8} kept: {share:.0%} near, {np.median(seconds):.2f} s", file=sys.stderr, flush=True)
        if share >= 1 - MISSES or length >= LONGEST:
            return length, float(np.median(seconds)), share
        length *= 2


def hyperprior_time(program, name, rows, seeds, threads):
    """Draws, median seconds, the share of seeds that came near and the median largest distance; and seconds with the defaults."""
    reached = None
    for draws in DRAWS:
        distances, seconds = [], []
        for seed in range(1, seeds + 1):
            distance, took = fit(program, name, rows, seed, threads, draws)
            distances.append(distance)
            seconds.append(took)
        share, time_taken = float(np.mean(np.array(distances) <= NEAR)), float(np.median(seconds))
        print(f"  hyperprior {draws:>5} draws: {share:.0%} near, {time_taken:.2f} s", file=sys.stderr, flush=True)
        if reached is None and (share >= 1 - MISSES or draws == DRAWS[-1]):
            reached = draws, time_taken, share, float(np.median(distances))
    return *reached, time_taken


def fit(program, name, rows, seed, threads, draws):
    """The largest distance from the reference, and the seconds it took."""
    folder = EXAMPLES / name
    command = [*shlex.split(program), "fit", str(folder / "model.bug"), "--data", str(folder / "data.json")]
    command += ["--seed", str(seed), "--threads", str(threads), "--monitor", ",".join(COMPARED[name])]
    command += ["--draws", str(draws), "--json", "--quiet"]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode != 0:
        print(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stderr}", file=sys.stderr)
        return math.inf, took
    found = json.loads(done.stdout)["parameters"]
    return farthest(rows, {key: row["mean"] for key, row in found.items()}), took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(COMPARED))
    parser.add_argument("--hyperprior", default="hyperprior", help="the program, with arguments if it needs them")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1, help="hyperprior's; JAGS has one")
    parser.add_argument("--jags-only", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in COMPARED:
            parser.error(f"{name} is not one of {', '.join(COMPARED)}")
    needed = ["jags"] if arguments.jags_only else ["jags", shlex.split(arguments.hyperprior)[0]]
    for tool in needed:
        if shutil.which(tool) is None:
            parser.error(f"{tool} is not installed: apt-get install jags, or name the program with --hyperprior")
    head = "| example | means | JAGS kept | JAGS, s | draws | hyperprior, s | distance, sd | JAGS / hyperprior | with defaults, s |"
    lines = [head, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for name in arguments.names or DEFAULT:
        print(name, file=sys.stderr)
        rows = reference(name)
        length, theirs, share = jags_time(name, rows, arguments.seeds)
        row = f"| {name} | {len(rows)} | {length} ({share:.0%} near) | {theirs:.2f} |"
        if arguments.jags_only:
            row += " – | – | – | – | – |"
        else:
            draws, ours, near, distance, default = hyperprior_time(
                arguments.hyperprior, name, rows, arguments.seeds, arguments.threads
            )
            # A ratio of times means nothing where one side did not arrive.
            ratio = f"{theirs / ours:.1f}" if near >= 1 - MISSES and share >= 1 - MISSES else "did not arrive"
            row += f" {draws} ({near:.0%} near) | {ours:.2f} | {distance:.3f} | {ratio} | {default:.2f} |"
        lines.append(row)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
