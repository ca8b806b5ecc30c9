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
STEPS = {"hyperprior": 200, "vmap": 30, "batched": 30}
WARM_UP = 5


def product(folder, binary):
    """The milliseconds of each step; the outputs lie in the folder."""
    command = [binary, str(folder), str(STEPS["hyperprior"]), str(THREADS)]
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


def agree(folder, arguments):
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
        print(f"JAX {name:8}", "  ".join(f"{key} {error:.1e}" for key, error in errors.items()))
        fine = fine and all(error <= TOLERANCE for error in errors.values())
    return fine


def row(label, milliseconds, note):
    median, least, p90 = np.median(milliseconds), milliseconds.min(), np.quantile(milliseconds, 0.9)
    print(f"{label:24} {median:9.3f} {least:9.3f} {p90:9.3f}   {note}")


def main(folder, binary, rounds):
    arguments = peer.inputs(folder)
    product(folder, binary)
    print(f"relative error against hyperprior (at most {TOLERANCE:g})")
    if not agree(folder, arguments):
        print("they disagree: nothing was timed", file=sys.stderr)
        return 1
    times = {"hyperprior": []}
    cores = {name: [] for name in peer.FORMS}
    for _ in range(rounds):
        times["hyperprior"].append(product(folder, binary))
        for name in peer.FORMS:
            milliseconds, busy = jax_form(name, arguments)
            times.setdefault(name, []).append(milliseconds)
            cores[name].append(busy)
    print(f"\n{'milliseconds a step':24} {'median':>9} {'min':>9} {'p90':>9}")
    row("hyperprior (float64)", np.concatenate(times["hyperprior"]), f"{THREADS} threads")
    for name in peer.FORMS:
        row(f"JAX {name} (float32)", np.concatenate(times[name]), f"{np.mean(cores[name]):.1f} cores busy")
    # A round's numbers belong together: the machine may be slower in another.
    ratios = [
        min(np.median(times[name][r]) for name in peer.FORMS) / np.median(times["hyperprior"][r]) for r in range(rounds)
    ]
    ratio = float(np.median(ratios))
    print("\nJAX / hyperprior, by round:", " ".join(f"{r:.1f}" for r in ratios))
    print(f"JAX / hyperprior: {ratio:.1f} (goal ≥ {GOAL}: {'met' if ratio >= GOAL else 'not met'})")
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 5))
