"""Exact posterior means and log evidence of the examples that allow it: sums over the discrete latents, integrals by conjugacy.

exact.py; prints one line for each quantity.
"""

import itertools
import pathlib

import numpy as np
from scipy.special import gammaln, logsumexp

import by_hand
import jags

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"


def average(log_weights, values):
    """The values' mean under weights known up to a factor."""
    return np.exp(log_weights - logsumexp(log_weights)) @ np.asarray(values, dtype=float)


def three_coins(data):
    theta, p = np.array(data["theta"]), np.array(data["p"])
    weights = np.log(p * theta)
    return {"coin": average(weights, [1, 2, 3]), "ypred": average(weights, theta)}, logsumexp(weights)


def sbn_exact(data):
    states = list(itertools.product([0, 1], repeat=data["H"]))
    joint = [by_hand.log_joint("sbn_exact", data, {f"h[{j + 1}]": x for j, x in enumerate(h)}) for h in states]
    return {"h": average(joint, states)}, logsumexp(joint)


def coal(data):
    """The rates are gamma given k: shape 1 + count, rate 1 + years."""
    y = np.array(data["y"])
    n = len(y)
    count = np.array([[y[:k].sum(), y[k:].sum()] for k in range(1, n + 1)])
    years = np.array([[k, n - k] for k in range(1, n + 1)])
    joint = (gammaln(1 + count) - (1 + count) * np.log1p(years)).sum(1) - np.log(n) - gammaln(y + 1).sum()
    means = {"k": average(joint, np.arange(1, n + 1)), "lambda": average(joint, (1 + count) / (1 + years))}
    return means, logsumexp(joint)


def spike_hald(data):
    """Given g and tau, y is normal with covariance (I + 4 X_g X_g') / tau; tau's gamma prior is conjugate to that."""
    x, y, b0 = np.array(data["X"]), np.array(data["y"]), data["b0"]
    n, p = x.shape
    switches = np.array(list(itertools.product([0, 1], repeat=p)))
    joint, beta, tau = [], [], []
    for g in switches:
        kept = x * g
        covariance = np.eye(n) + 4 * kept @ kept.T
        solved = np.linalg.solve(covariance, y)
        shape, rate = 2 + n / 2, b0 + y @ solved / 2
        constant = 2 * np.log(b0) - gammaln(2) + gammaln(shape) - p * np.log(2)
        joint.append(constant - shape * np.log(rate) - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1])
        beta.append(4 * kept.T @ solved)
        tau.append(shape / rate)
    return {"g": average(joint, switches), "beta": average(joint, beta), "tau": average(joint, tau)}, logsumexp(joint)


if __name__ == "__main__":
    for solve in (three_coins, sbn_exact, coal, spike_hald):
        means, evidence = solve(jags.load(EXAMPLES / solve.__name__ / "data.json"))
        print(f"{solve.__name__}: log evidence {evidence:.6f}")
        for name, mean in means.items():
            print(f"  {name} {np.array2string(np.asarray(mean), precision=5, suppress_small=True)}")
