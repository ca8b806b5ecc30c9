"""Runs the step bench: checks that the sides do the same work, then times them turn by turn.

compare.py FOLDER BINARY [ROUNDS]; exits with 1 where they disagree.

That they do the same work is seen in two ways. Each form of a peer does one step from the same state with the same draws as numpy
does in double precision, over all terms. And a peer takes each of the product's first steps again, from the same state and with draws
of its own: documents go as far on average.
"""

import os
import pathlib
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import torch

import job
import peer_jax
import peer_torch
import reference

TOLERANCE = 1e-5
# Steps of the product that are taken again, against how many others each, and how many standard errors they may be apart.
FOLLOWED, OTHERS, NEAR = 9, 12, 4.5
STEPS = 60
THREADS = len(os.sched_getaffinity(0))
EPOCHS = 10
REPEATS = {"dense": 2, "sparse": 20, "draws": 20}
# For 70 % of a training documents see something between E W and exp E ln W, which takes a power; then exp E ln W itself.
BLUNT, SHARP = "step, as for 70 % of a training", "step, as for the rest"
GOALS = {"JAX, dense": 25, "JAX, sparse, 1 group": 8, "JAX, sparse": 8, "PyTorch, sparse, 1 group": 5, "PyTorch, sparse": 5}


class Jax:
    name = "JAX"

    def __init__(self, documents, background):
        self.forms = peer_jax.forms(documents, background)
        self.key = jax.random.key(1)

    def array(self, array):
        return jnp.asarray(array, jnp.float32)

    def draws(self):
        def one(draw, state):
            self.key, key = jax.random.split(self.key)
            return draw(key, state)

        return {name: lambda state, draw=draw: one(draw, state) for name, draw in peer_jax.DRAWS.items()}

    def wait(self, tree):
        return jax.block_until_ready(tree)


class Torch:
    name = "PyTorch"

    def __init__(self, documents, background):
        torch.set_num_threads(THREADS)
        torch.set_grad_enabled(False)
        torch.manual_seed(1)
        self.forms = peer_torch.forms(documents, background)

    def array(self, array):
        return torch.as_tensor(np.asarray(array), dtype=torch.float32)

    def draws(self):
        return peer_torch.DRAWS

    def wait(self, tree):
        return tree


def carried(peer, tree):
    """A state or a schedule as a peer has it."""
    return type(tree)(*[peer.array(array) for array in tree])


def product(binary, *arguments):
    subprocess.run([binary, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def agree(documents, background, start, peers):
    """Whether one step of each form is the reference's; prints the largest error relative to the largest entry."""
    at = job.schedule(20, STEPS)
    z = np.random.default_rng(3).poisson(np.logaddexp(0, start.lam)[:, None], (documents.len, job.DRAWS, job.LATENTS))
    # Some way from the start, where Adam's moments are not zero.
    state = start._replace(intercept_first=start.intercept / 9 + 0.2, intercept_second=np.abs(start.intercept) / 9 + 0.1)
    exact, exact_value = reference.step(documents, background, state, z.astype(float), at)
    fine = True
    for peer in peers:
        draws = peer.array(z)
        for name, form in peer.forms.items():
            found, value = form(carried(peer, state), draws, carried(peer, at))
            pairs = {"value": (exact_value, value)}
            for field in ("lam", "intercept", "shape", "rate", "seen"):
                pairs[field] = getattr(exact, field), getattr(found, field)
            errors = {key: np.abs(ours - np.asarray(theirs)).max() / np.abs(ours).max() for key, (ours, theirs) in pairs.items()}
            print(f"{peer.name}, {name:42}", "  ".join(f"{key} {error:.0e}" for key, error in errors.items()), flush=True)
            fine = fine and all(error <= TOLERANCE for error in errors.values())
    return fine


def states(folder, documents, start):
    """The product's states after each of its first steps. It writes means; the rates of the weights' laws follow from those."""
    rate, before, states = start.rate, np.log1p(np.exp(start.lam)) + job.RATE_MIN, []
    for step in range(FOLLOWED):
        at = job.schedule(step, STEPS)
        rate = rate + at.forgetting * (job.PRIOR_RATE + before.sum(axis=0) - rate)
        before = job.read(folder, f"activity_{step}", documents.len, job.LATENTS)
        shape = job.read(folder, f"mean_{step}", documents.terms_len, job.LATENTS) * rate
        intercept = job.read(folder, f"intercept_{step}", job.LATENTS)
        lam = np.log(np.expm1(np.maximum(before - job.RATE_MIN, job.LEAST)))
        states.append(job.State(lam, shape, rate, intercept, 0 * intercept, 0 * intercept, *job.look(np, shape, rate, at.sharpness)))
    return states


def same_steps(folder, documents, start, peer):
    """Whether documents go as far as the product's in each of its first steps: the change of ln m, averaged over latents, against
    the peer's from the same state with other draws, in standard errors of the mean over documents."""
    form, draw = peer.forms["sparse, 32 groups"], peer.draws()["poisson"]
    own, scores = states(folder, documents, start), []
    for step in range(1, FOLLOWED):
        state, at = carried(peer, own[step - 1]), carried(peer, job.schedule(step, STEPS))
        after = [np.asarray(form(state, draw(state), at)[0].lam, float) for _ in range(OTHERS)]
        means = [np.log(np.log1p(np.exp(lam)) + job.RATE_MIN) for lam in (own[step].lam, *after)]
        apart = (means[0] - np.mean(means[1:], axis=0)).mean(axis=1)
        scores.append(apart.mean() / (apart.std() / np.sqrt(documents.len)))
    print(f"{FOLLOWED - 1} steps of the product against {peer.name}'s from the same states, in standard errors (at most {NEAR}):", end=" ")
    print(" ".join(f"{score:.1f}" for score in scores), flush=True)
    return all(abs(score) <= NEAR for score in scores)


def timed(peer, call, repeats):
    """Milliseconds on the clock, call by call, and of the processors, a call."""
    for _ in range(2):
        peer.wait(call())
    milliseconds, cpu = [], time.process_time()
    for _ in range(repeats):
        began = time.perf_counter()
        peer.wait(call())
        milliseconds.append(1e3 * (time.perf_counter() - began))
    return np.array(milliseconds), 1e3 * (time.process_time() - cpu) / repeats


def one_round(folder, binary, start, peers):
    """{(side, what): (milliseconds, processor milliseconds)}"""
    found = {}
    product(binary, "time", folder, EPOCHS, THREADS)
    milliseconds, cpu = (np.fromfile(folder / f"hyperprior_{name}.f64") for name in ("ms", "cpu"))
    turn = int(np.ceil(job.SHARP * EPOCHS))
    for name, range_ in ((BLUNT, slice(1, turn)), (SHARP, slice(turn + 1, EPOCHS))):
        found["hyperprior", name] = milliseconds[range_], np.median(cpu[range_])
    for peer in peers:
        state, at = carried(peer, start), carried(peer, job.schedule(20, STEPS))
        for name, draw in peer.draws().items():
            found[peer.name, f"draws, {name}"] = timed(peer, lambda: draw(state), REPEATS["draws"])
        z = peer.draws()["poisson"](state)
        for name, form in peer.forms.items():
            kind = "dense" if "dense" in name else "sparse"
            found[peer.name, name] = timed(peer, lambda: form(state, z, at), REPEATS[kind])
    return found


def fastest(found, side, what, column):
    """The least median on the clock, or the least of the processors."""
    pick = (lambda times, cpu: np.median(times)) if column == 0 else (lambda times, cpu: cpu)
    return min(pick(*times) for (own, name), times in found.items() if own == side and name.startswith(what))


def ratios(found, side, kind, column):
    """A peer's time over the product's: its fastest step with its fastest draws, with the library's own, and with none."""
    own = fastest(found, "hyperprior", BLUNT, column)
    step, draws = fastest(found, side, kind, column), fastest(found, side, "draws", column)
    return [(step + more) / own for more in (draws, fastest(found, side, "draws, poisson", column), 0)]


def main(folder, binary, rounds):
    documents = job.Documents(folder)
    product(binary, "trace", folder, STEPS)
    start, background = job.start(folder, documents)
    peers = [Jax(documents, background), Torch(documents, background)]
    print(f"one step against numpy in float64, largest error relative to the largest entry (at most {TOLERANCE:g})")
    fine = agree(documents, background, start, peers)
    if not (same_steps(folder, documents, start, peers[0]) and fine):
        print("they disagree: nothing was timed", file=sys.stderr)
        return 1
    all_rounds = []
    for r in range(rounds):
        print(f"round {r + 1}, load {os.getloadavg()[0]:.1f}", flush=True)
        all_rounds.append(one_round(folder, binary, start, peers))
    print("\n| milliseconds | median | min | of the processors |\n| --- | --- | --- | --- |")
    for side, what in all_rounds[0]:
        times = np.concatenate([found[side, what][0] for found in all_rounds])
        cpu = np.median([found[side, what][1] for found in all_rounds])
        print(f"| {side}: {what} | {np.median(times):.1f} | {times.min():.1f} | {cpu:.1f} |")
    print(f"\nover hyperprior ({BLUNT}), the median of the rounds: with the fastest draws, with the library's own, with none")
    for label, goal in GOALS.items():
        side, kind = label.split(", ", 1)
        clock, cpu = (np.array([ratios(found, side, kind, column) for found in all_rounds]) for column in (0, 1))
        first, library, given = np.median(clock, axis=0)
        by_round = " ".join(f"{r:.1f}" for r in clock[:, 0])
        print(f"{label}: {first:.1f} (by round {by_round}; goal {goal}: {'met' if first >= goal else 'not met'})", end="")
        print(f", {library:.1f}, {given:.1f}; of the processors", ", ".join(f"{r:.1f}" for r in np.median(cpu, axis=0)))
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2], max(int(sys.argv[3]), 1) if len(sys.argv) > 3 else 5))
