#!/usr/bin/env python3
"""Spike-and-slab regressions with more and more predictors: seconds, verdicts, and errors of the inclusion probabilities.

selection.py BINARY [--predictors 10,12,13,15,30,60] [--exact 10] [--seeds 1] [--limit SECONDS]

Simulated data of correlated predictors, default options. With at most as many predictors as --exact says, all states are enumerated and the
precision of the noise is integrated out on a grid; with thirteen that takes this script minutes.
"""

import argparse
import json
import math
import pathlib
import random
import tempfile

from suite import fit

TEXT = """model {
  for (i in 1:n) { y[i] ~ dnorm(inprod(x[i,], beta[]), tau) }
  for (j in 1:p) {
    g[j] ~ dbern(share)
    b[j] ~ dnorm(0, 1)
    beta[j] <- g[j] * b[j]
  }
  tau ~ dgamma(2, 2)
}"""


def simulate(p, rng):
    """Neighbouring predictors have a correlation of 0.7; three of them matter."""
    n = max(60, 3 * p)
    x = []
    for _ in range(n):
        row = [rng.gauss(0, 1)]
        while len(row) < p:
            row.append(0.7 * row[-1] + math.sqrt(1 - 0.49) * rng.gauss(0, 1))
        x.append(row)
    y = [0.8 * row[1] - 0.6 * row[5] + 0.5 * row[6] + rng.gauss(0, 0.8) for row in x]
    return {"n": n, "p": p, "share": 3 / p, "x": x, "y": y}


def log_mass(gram, with_y, tau):
    """The log of the integral over the coefficients that are in, without what all states share."""
    k = len(with_y)
    rows, log_p = [], 0.0
    solved = []
    for i in range(k):
        row = []
        for j in range(i + 1):
            rest = (i == j) + tau * gram[i][j] - sum(a * b for a, b in zip(row, rows[j] if j < i else row))
            row.append(math.sqrt(rest) if i == j else rest / rows[j][j])
        rows.append(row)
        solved.append((tau * with_y[i] - sum(a * b for a, b in zip(row, solved))) / row[i])
        log_p += 0.5 * solved[i] ** 2 - math.log(row[i])
    return log_p


def enumerated(data):
    """Inclusion probabilities and the log evidence."""
    n, p, x, y, share = (data[k] for k in ("n", "p", "x", "y", "share"))
    gram = [[sum(row[i] * row[j] for row in x) for j in range(p)] for i in range(p)]
    with_y = [sum(row[j] * seen for row, seen in zip(x, y)) for j in range(p)]
    squares = sum(seen * seen for seen in y)
    step, grid = 0.1, [-2 + 0.1 * k for k in range(46)]
    terms = []
    for state in range(2**p):
        own = [j for j in range(p) if state >> j & 1]
        of_prior = len(own) * math.log(share) + (p - len(own)) * math.log(1 - share)
        own_gram, own_y = [[gram[i][j] for j in own] for i in own], [with_y[j] for j in own]
        for t in grid:
            tau = math.exp(t)
            of_tau = math.log(4) + 2 * t - 2 * tau + 0.5 * n * (t - math.log(2 * math.pi)) - 0.5 * tau * squares
            terms.append((of_prior + of_tau + log_mass(own_gram, own_y, tau), own))
    top = max(log_p for log_p, _ in terms)
    total, included = 0.0, [0.0] * p
    for log_p, own in terms:
        mass = math.exp(log_p - top)
        total += mass
        for j in own:
            included[j] += mass
    return [mass / total for mass in included], top + math.log(total * step)


def row(options, folder, data, exact, seed):
    """A row of the table."""
    folder.mkdir()
    (folder / "model.bug").write_text(TEXT)
    (folder / "data.json").write_text(json.dumps(data))
    told, verdict, took = fit(options, folder, seed)
    cells = [data["p"], seed, f"{took:.1f}", verdict, "", "", "", ""]
    if told:
        chains = (told.get("integration") or {}).get("chains")
        evidence = told["evidence"]
        cells[4] = f"{chains['rhat']:.3f}" if chains else ""
        cells[6] = f"{evidence['log']:.3f} ± {evidence['standard_error']:.3f}"
        if exact:
            included, log_evidence = exact
            found = [told["parameters"][f"g[{j + 1}]"]["mean"] for j in range(data["p"])]
            cells[5] = f"{max(abs(a - b) for a, b in zip(found, included)):.3f}"
            cells[7] = f"{log_evidence:.3f}"
    return "| " + " | ".join(map(str, cells)) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--predictors", default="10,12,13,15,30,60")
    parser.add_argument("--exact", type=int, default=10)
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--limit", type=float, default=300)
    options = parser.parse_args()
    print("| predictors | seed | seconds | verdict | R̂ | largest error of an inclusion probability | log evidence | exact |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as name:
        for p in map(int, options.predictors.split(",")):
            data = simulate(p, random.Random(p))
            exact = enumerated(data) if p <= options.exact else None
            for seed in map(int, options.seeds.split(",")):
                folder = pathlib.Path(name) / f"{p}_{seed}"
                print(row(options, folder, data, exact, seed), flush=True)


if __name__ == "__main__":
    main()
