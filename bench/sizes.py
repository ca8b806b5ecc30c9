#!/usr/bin/env python3
"""How the time of a fit grows with the number of latents, and whether it is still right.

sizes.py BINARY [--models level,effects,volatility,responses,grid] [--sizes 100,300,1000,3000,10000] [--seed N] [--limit SECONDS]
         [--chains SECONDS]

Simulated data, default options. Of the local level and the random effects, the posterior of the scales is calculated on a grid, by the
Kalman filter and by integrating each effect on its own; the others are compared with the values that the data were simulated with, in
posterior standard deviations. With --chains, their scalars and every tenth of their states are also compared with chains of the No-U-Turn
sampler, which get so many seconds. Prints a table, and for each model the exponent of the number of latents that the time grows with.
"""

import argparse
import json
import math
import pathlib
import random
import tempfile

from suite import fit


def level(n, rng):
    """A random walk seen with noise."""
    x, y = 5.0, []
    for _ in range(n):
        x += rng.gauss(0, 0.4)
        y.append(x + rng.gauss(0, 1))
    text = """model {
  level ~ dunif(0, 10)
  noise ~ dunif(0, 10)
  x[1] ~ dnorm(0, 0.001)
  for (t in 2:n) { x[t] ~ dnorm(x[t - 1], pow(level, -2)) }
  for (t in 1:n) { y[t] ~ dnorm(x[t], pow(noise, -2)) }
}"""

    def log_likelihood(level, noise):
        mean, variance, total = 0.0, 1000.0, 0.0
        for t, seen in enumerate(y):
            if t:
                variance += level**2
            of_seen = variance + noise**2
            total -= 0.5 * (math.log(2 * math.pi * of_seen) + (seen - mean) ** 2 / of_seen)
            gain = variance / of_seen
            mean, variance = mean + gain * (seen - mean), variance * (1 - gain)
        return total

    return text, {"n": n, "y": y}, {"level": 0.4, "noise": 1.0}, log_likelihood


def effects(n, rng):
    """Random effects of the logit of a probability, ten trials each."""
    y = [sum(rng.random() < 1 / (1 + math.exp(-rng_x)) for _ in range(10)) for rng_x in (rng.gauss(0.5, 0.8) for _ in range(n))]
    text = """model {
  mu ~ dnorm(0, 0.01)
  sd ~ dunif(0, 10)
  for (i in 1:n) {
    x[i] ~ dnorm(mu, pow(sd, -2))
    logit(p[i]) <- x[i]
    y[i] ~ dbin(p[i], 10)
  }
}"""
    counts = {k: y.count(k) for k in set(y)}
    nodes = [(-6 + 0.1 * k, math.exp(-0.5 * (-6 + 0.1 * k) ** 2)) for k in range(121)]

    def log_likelihood(mu, sd):
        total = -0.005 * mu**2
        terms = [(1 / (1 + math.exp(-(mu + sd * e))), w) for e, w in nodes]
        for k, count in counts.items():
            total += count * math.log(sum(w * p**k * (1 - p) ** (10 - k) for p, w in terms))
        return total

    return text, {"n": n, "y": y}, {"mu": 0.5, "sd": 0.8}, log_likelihood


def volatility(n, rng):
    """Stochastic volatility: the log variance is an autoregression."""
    h, y = [], []
    for _ in range(n):
        h.append(-1 + (0.95 * (h[-1] + 1) if h else 0) + rng.gauss(0, 0.25))
        y.append(math.exp(h[-1] / 2) * rng.gauss(0, 1))
    text = """model {
  mu ~ dnorm(0, 0.1)
  half ~ dbeta(20, 1.5)
  phi <- 2 * half - 1
  sd ~ dunif(0, 2)
  h[1] ~ dnorm(mu, pow(sd, -2) * (1 - phi * phi))
  for (t in 2:n) { h[t] ~ dnorm(mu + phi * (h[t - 1] - mu), pow(sd, -2)) }
  for (t in 1:n) { y[t] ~ dnorm(0, exp(-h[t])) }
}"""
    return text, {"n": n, "y": y}, {"mu": -1, "phi": 0.95, "sd": 0.25}, None


def responses(n, rng):
    """The answers of n persons to twenty items: a two-parameter logistic model."""
    items = [(math.exp(rng.gauss(0, 0.3)), rng.gauss(0, 1)) for _ in range(20)]
    persons = [rng.gauss(0, 1) for _ in range(n)]
    y = [[int(rng.random() < 1 / (1 + math.exp(-a * (x - b)))) for a, b in items] for x in persons]
    text = """model {
  for (j in 1:20) { a[j] ~ dlnorm(0, 4) b[j] ~ dnorm(0, 0.25) }
  for (i in 1:n) {
    x[i] ~ dnorm(0, 1)
    for (j in 1:20) { logit(p[i, j]) <- a[j] * (x[i] - b[j]) y[i, j] ~ dbern(p[i, j]) }
  }
}"""
    truth = {f"{name}[{j + 1}]": item[k] for j, item in enumerate(items) for k, name in enumerate("ab")}
    return text, {"n": n, "y": y}, truth, None


def grid(n, rng):
    """Counts on a square grid: each value is near the mean of those above and to the left."""
    side = max(round(math.sqrt(n)), 2)
    x = [[0.0] * side for _ in range(side)]
    for i in range(side):
        for j in range(side):
            near = [x[a][b] for a, b in ((i - 1, j), (i, j - 1)) if a >= 0 and b >= 0]
            x[i][j] = rng.gauss(sum(near) / len(near), 0.3) if near else rng.gauss(1, 0.3)

    def poisson(rate):
        k, p = 0, rng.random()
        while p > math.exp(-rate):
            k, p = k + 1, p * rng.random()
        return k

    y = [[poisson(math.exp(value)) for value in row] for row in x]
    text = """model {
  sd ~ dunif(0, 3)
  x[1, 1] ~ dnorm(0, 0.1)
  for (i in 2:n) {
    x[i, 1] ~ dnorm(x[i - 1, 1], pow(sd, -2))
    x[1, i] ~ dnorm(x[1, i - 1], pow(sd, -2))
    for (j in 2:n) { x[i, j] ~ dnorm(0.5 * (x[i - 1, j] + x[i, j - 1]), pow(sd, -2)) }
  }
  for (i in 1:n) { for (j in 1:n) { y[i, j] ~ dpois(exp(x[i, j])) } }
}"""
    return text, {"n": side, "y": y}, {"sd": 0.3}, None


def moments(log_likelihood, near):
    """The means and standard deviations on a grid of two parameters around a guess."""
    names = list(near)
    axes = [[mean + 0.25 * k * sd for k in range(-20, 21) if mean + 0.25 * k * sd > (0 if name != "mu" else -99)] for name, (mean, sd) in near.items()]
    points = [(u, v) for u in axes[0] for v in axes[1]]
    logs = [log_likelihood(u, v) for u, v in points]
    top = max(logs)
    weights = [math.exp(value - top) for value in logs]
    total = sum(weights)
    exact = {}
    for k, name in enumerate(names):
        mean = sum(w * p[k] for w, p in zip(weights, points)) / total
        exact[name] = (mean, math.sqrt(sum(w * (p[k] - mean) ** 2 for w, p in zip(weights, points)) / total))
    return exact


def run(options, make, n):
    """Seconds, verdict, and how far the fit is from what is known."""
    text, data, truth, log_likelihood = make(n, random.Random(1000 * options.seed + n))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.bug").write_text(text)
        (folder / "data.json").write_text(json.dumps(data))
        told, verdict, took = fit(options, folder, options.seed)
        reference = None
        if options.chains and not log_likelihood:
            limited = argparse.Namespace(binary=options.binary, limit=options.chains)
            reference, *_ = fit(limited, folder, options.seed, "--method", "nuts")
    if not told:
        return took, verdict, ""
    own = {name: (told["parameters"][name]["mean"], told["parameters"][name]["sd"]) for name in truth}
    if log_likelihood:
        exact = moments(log_likelihood, own)
        said = (f"{name} {abs(own[name][0] - mean) / sd:.2f} sd, {100 * (own[name][1] / sd - 1):+.0f} %" for name, (mean, sd) in exact.items())
        return took, verdict, "; ".join(said)
    away = [(own[name][0] - value) / own[name][1] for name, value in truth.items()]
    size = math.sqrt(sum(x * x for x in away) / len(away))
    said = f"{size:.2f} sd from the truth (root mean square of {len(away)})"
    return took, verdict, said + (beside_chains(options, told, reference, truth) if options.chains else "")


def beside_chains(options, told, reference, truth):
    """How far a fit is from chains of the No-U-Turn sampler."""
    if not reference:
        return "; the chains took too long"
    own, other = told["parameters"], reference["parameters"]
    chains = reference["fit_history"]["nuts"]
    states = [name for name in other if name[:2] in ("h[", "x[")][::10]
    said = f"; chains: R̂ {chains['rhat']:.3f}, {chains['ess_bulk']:.0f} effective draws"
    for what, names in (("scalars", truth), ("states", states)):
        means = max(abs(own[name]["mean"] - other[name]["mean"]) / other[name]["sd"] for name in names)
        sds = max(abs(own[name]["sd"] / other[name]["sd"] - 1) for name in names)
        said += f", {what} within {means:.2f} sd and {100 * sds:.0f} %"
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--models", default="level,effects,volatility,responses,grid")
    parser.add_argument("--sizes", default="100,300,1000,3000,10000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--chains", type=float, metavar="SECONDS")
    options = parser.parse_args()
    print("| model | latents | seconds | verdict | error |\n| --- | ---: | ---: | --- | --- |")
    for name in options.models.split(","):
        times = []
        for n in map(int, options.sizes.split(",")):
            took, verdict, said = run(options, globals()[name], n)
            print(f"| {name} | {n:,} | {took:.1f} | {verdict} | {said} |", flush=True)
            if verdict == "over the limit":
                break
            times.append((math.log(n), math.log(took)))
        if len(times) > 1:
            x, y = [sum(column) / len(times) for column in zip(*times)]
            slope = sum((a - x) * (b - y) for a, b in times) / sum((a - x) ** 2 for a, _ in times)
            print(f"| {name} | | | | the time grows with the {slope:.2f}th power |", flush=True)


if __name__ == "__main__":
    main()
