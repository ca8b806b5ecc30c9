"""Runs the tape bench side by side, turn by turn, on one thread and on two, and prints how many times faster the product is.

compare.py FOLDER BINARY [ROUNDS]; FOLDER is for the inputs, which JAX's side writes and the product's side reads.
"""

import pathlib
import statistics
import subprocess
import sys

COLUMNS, DRAWS, REPEATS = 10, 64, 300
GOAL = 3


def jax(folder, threads):
    """Milliseconds of the faster form, by number type: median and least."""
    script = pathlib.Path(__file__).parent / "jax_logistic.py"
    options = {"--columns": COLUMNS, "--draws": DRAWS, "--threads": threads, "--repeats": REPEATS // 3}
    words = [str(word) for option in options.items() for word in option]
    said = subprocess.run(
        [sys.executable, script, *words, "--write", folder], check=True, capture_output=True, text=True
    ).stdout
    found = {}
    for words in (line.split() for line in said.splitlines()):
        if words[0] == "JAX":
            numbers, times = words[2], (float(words[3]), float(words[4]))
            found[numbers] = min(found.get(numbers, times), times)
    return found


def product(folder, binary, threads):
    """Milliseconds: median and least. The binary holds its answers against JAX's first."""
    command = [binary, folder, str(COLUMNS), str(DRAWS), str(threads), str(REPEATS)]
    median, least, _ = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return float(median), float(least)


def main(folder, binary, rounds):
    print("milliseconds a call: the median of the rounds' medians (the least of all)")
    for threads in (1, 2):
        ours, theirs = [], {"float64": [], "float32": []}
        for _ in range(rounds):
            for numbers, times in jax(folder, threads).items():
                theirs[numbers].append(times)
            ours.append(product(folder, binary, threads))
        middle = lambda times: statistics.median(t[0] for t in times)
        least = lambda times: min(t[1] for t in times)
        plural = "" if threads == 1 else "s"
        print(f"\n{threads} thread{plural}: hyperprior (float64) {middle(ours):.3f} ({least(ours):.3f})")
        for numbers, times in theirs.items():
            by_round = [t[0] / o[0] for t, o in zip(times, ours)]
            print(
                f"  JAX {numbers} {middle(times):.3f} ({least(times):.3f})   JAX / hyperprior "
                f"{statistics.median(by_round):.1f}, by round {min(by_round):.1f} to {max(by_round):.1f}"
                + (f" (goal {GOAL})" if numbers == "float64" else "")
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 5))
