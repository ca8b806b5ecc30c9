"""Runs the flow bench side by side: checks that the product and JAX agree, then times them turn by turn.

compare.py FOLDER BINARY [ROUNDS]; exits with 1 where they disagree.
"""

import pathlib
import subprocess
import sys
import time

import jax
import numpy as np

import peer

TOLERANCE = 1e-4
GOAL = 20
THREADS = 2
STEPS = {"single": 300, "double": 100, "vmap": 30, "batched": 30}
PRECISIONS = {"single": "float32", "double": "float64"}
WARM_UP = 5


def product(folder, binary, precision):
    """The milliseconds of each step; the outputs lie in the folder."""
    command = [binary, precision, str(folder), str(STEPS[precision]), str(THREADS)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return np.fromfile(folder / "hyperprior_ms.f64")


def jax_form(name, arguments):
    """The milliseconds of each step, and how many cores they kept busy."""
    step = peer.FORMS[name]
    for _ in range(WARM_UP):
        jax.block_until_ready(step(*arguments))
    milliseconds = []
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(STEPS[name]):
        start = time.perf_counter()
        jax.block_until_ready(step(*arguments))
        milliseconds.append(1e3 * (time.perf_counter() - start))
    cores = (time.process_time() - cpu) / (time.perf_counter() - wall)
    return np.array(milliseconds), cores


def agree(folder, precision, arguments):
    """Whether every form has the product's value and gradients; prints the largest error relative to the largest entry."""
    value = np.fromfile(folder / "hyperprior_value.f64")
    theta = np.fromfile(folder / "hyperprior_theta.f64").reshape(peer.POSTERIORS, -1)
    phi = np.fromfile(folder / "hyperprior_phi.f64").reshape(peer.POSTERIORS, -1)
    fine = True
    for name, step in peer.FORMS.items():
        found, gradient = step(*arguments)
        d_theta, d_phi = peer.pack({key: np.asarray(array) for key, array in gradient.items()})
        pairs = {"value": (value, np.asarray(found)), "theta": (theta, d_theta), "phi": (phi, d_phi)}
        errors = {key: np.abs(ours - theirs).max() / np.abs(ours).max() for key, (ours, theirs) in pairs.items()}
        print(f"JAX {name:8} {precision:8}", "  ".join(f"{key} {error:.1e}" for key, error in errors.items()))
        fine = fine and all(error <= TOLERANCE for error in errors.values())
    return fine


def row(label, milliseconds, note):
    median, least, p90 = np.median(milliseconds), milliseconds.min(), np.quantile(milliseconds, 0.9)
    print(f"{label:24} {median:9.3f} {least:9.3f} {p90:9.3f}   {note}")


def main(folder, binary, rounds):
    arguments = peer.inputs(folder)
    print(f"relative error against hyperprior (at most {TOLERANCE:g})")
    for precision in PRECISIONS:
        product(folder, binary, precision)
        if not agree(folder, precision, arguments):
            print("they disagree: nothing was timed", file=sys.stderr)
            return 1
    times = {precision: [] for precision in PRECISIONS}
    cores = {name: [] for name in peer.FORMS}
    for _ in range(rounds):
        for precision in PRECISIONS:
            times[precision].append(product(folder, binary, precision))
        for name in peer.FORMS:
            milliseconds, busy = jax_form(name, arguments)
            times.setdefault(name, []).append(milliseconds)
            cores[name].append(busy)
    print(f"\n{'milliseconds a step':24} {'median':>9} {'min':>9} {'p90':>9}")
    for precision, numbers in PRECISIONS.items():
        row(f"hyperprior ({numbers})", np.concatenate(times[precision]), f"{THREADS} threads")
    for name in peer.FORMS:
        row(f"JAX {name} (float32)", np.concatenate(times[name]), f"{np.mean(cores[name]):.1f} cores busy")
    # A round's numbers belong together: the machine may be slower in another.
    for precision, numbers in PRECISIONS.items():
        ratios = [
            min(np.median(times[name][r]) for name in peer.FORMS) / np.median(times[precision][r]) for r in range(rounds)
        ]
        print(f"\nJAX / hyperprior ({numbers}), by round:", " ".join(f"{r:.1f}" for r in ratios))
        print(f"JAX / hyperprior ({numbers}): {np.median(ratios):.1f}", end="")
        # Like is compared with like: JAX computes in float32.
        if precision == "single":
            print(f" (goal ≥ {GOAL}: {'met' if np.median(ratios) >= GOAL else 'not met'})", end="")
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 5))
