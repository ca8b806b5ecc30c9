#!/usr/bin/env python3
"""Simulation-based calibration of ten models, with default options.

sbc.py BINARY [--only NAME,...] [--fits 200] [--seed N]

Hierarchical models, models with discrete latents and state-space models, all with priors that simulate sensible data. Prints a row for
each model; exits with 1 if the ranks of a quantity are not uniform.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

MODELS = {
    # Hierarchies.
    "schools": (
        """model {
  mu ~ dnorm(0, 0.04)
  tau ~ dt(0, 0.04, 4) T(0, )
  for (j in 1:8) { theta[j] ~ dnorm(mu, pow(tau, -2)) y[j] ~ dnorm(theta[j], pow(s[j], -2)) }
}""",
        {"y": [0] * 8, "s": [15, 10, 16, 11, 9, 11, 10, 18]},
    ),
    "effects": (
        """model {
  mu ~ dnorm(0, 1)
  sd ~ dnorm(0, 1) T(0, )
  for (i in 1:30) { x[i] ~ dnorm(mu, pow(sd, -2)) y[i] ~ dbin(ilogit(x[i]), 6) }
}""",
        {"y": [0] * 30},
    ),
    "slopes": (
        """model {
  for (k in 1:2) { mu[k] ~ dnorm(0, 1) sd[k] ~ dnorm(0, 1) T(0, ) }
  sigma ~ dnorm(0, 1) T(0, )
  for (i in 1:10) {
    a[i] ~ dnorm(mu[1], pow(sd[1], -2))
    b[i] ~ dnorm(mu[2], pow(sd[2], -2))
    for (j in 1:5) { y[i, j] ~ dnorm(a[i] + b[i] * (j - 3), pow(sigma, -2)) }
  }
}""",
        {"y": [[0] * 5] * 10},
    ),
    # Discrete latents.
    "change": (
        """model {
  for (j in 1:2) { lambda[j] ~ dgamma(2, 1) }
  for (i in 1:40) { share[i] <- 1 / 40 }
  from ~ dcat(share[])
  for (t in 1:40) { y[t] ~ dpois(lambda[1 + step(t - from - 0.5)]) }
}""",
        {"y": [1] * 40},
    ),
    "mixture": (
        """model {
  w ~ dbeta(2, 2)
  m[1] ~ dnorm(0, 1)
  gap ~ dgamma(3, 1)
  m[2] <- m[1] + gap
  sigma ~ dgamma(4, 4)
  share[1] <- w
  share[2] <- 1 - w
  for (i in 1:40) { z[i] ~ dcat(share[]) y[i] ~ dnorm(m[z[i]], pow(sigma, -2)) }
}""",
        {"y": [k / 10 for k in range(40)]},
    ),
    "selection": (
        """model {
  tau ~ dgamma(3, 3)
  for (j in 1:5) { g[j] ~ dbern(0.5) b[j] ~ dnorm(0, tau) beta[j] <- g[j] * b[j] }
  for (i in 1:20) { y[i] ~ dnorm(inprod(X[i, ], beta[]), tau) }
}""",
        {"y": [0] * 20, "X": [[((7 * i + 3 * i * i * j) % 11 - 5) / 4 + (i % 4 - 1.5) / 2 for j in range(1, 6)] for i in range(20)]},
    ),
    "counts": (
        """model {
  a ~ dnorm(1.5, 2)
  b ~ dnorm(0, 4)
  p ~ dbeta(2, 2)
  for (i in 1:15) {
    N[i] ~ dpois(exp(a + b * x[i]))
    for (j in 1:3) { y[i, j] ~ dbin(p, N[i]) }
  }
}""",
        {"y": [[1] * 3] * 15, "x": [(i - 7) / 5 for i in range(15)]},
    ),
    "markov": (
        """model {
  for (j in 1:2) { p0[j] <- 0.5 }
  A[1, 1] ~ dbeta(8, 2)
  A[1, 2] <- 1 - A[1, 1]
  A[2, 2] ~ dbeta(8, 2)
  A[2, 1] <- 1 - A[2, 2]
  lambda[1] ~ dgamma(2, 1)
  d ~ dgamma(4, 1)
  lambda[2] <- lambda[1] + d
  z[1] ~ dcat(p0[])
  for (t in 2:50) { z[t] ~ dcat(A[z[t - 1], ]) }
  for (t in 1:50) { y[t] ~ dpois(lambda[z[t]]) }
}""",
        {"y": [1] * 50},
    ),
    # States.
    "level": (
        """model {
  level ~ dnorm(0, 1) T(0, )
  noise ~ dnorm(0, 1) T(0, )
  x[1] ~ dnorm(0, 0.25)
  for (t in 2:50) { x[t] ~ dnorm(x[t - 1], pow(level, -2)) }
  for (t in 1:50) { y[t] ~ dnorm(x[t], pow(noise, -2)) }
}""",
        {"y": [0] * 50},
    ),
    "volatility": (
        """model {
  mu ~ dnorm(0, 1)
  phi ~ dbeta(10, 2)
  sd ~ dgamma(4, 10)
  h[1] ~ dnorm(mu, (1 - phi * phi) * pow(sd, -2))
  for (t in 2:60) { h[t] ~ dnorm(mu + phi * (h[t - 1] - mu), pow(sd, -2)) }
  for (t in 1:60) { y[t] ~ dnorm(0, exp(-h[t])) }
}""",
        {"y": [0.5] * 60},
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| model | fits | trust | quantities | smallest adjusted p | 90 % coverage, least to greatest | seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    flagged = []
    for name in options.only.split(","):
        text, data = MODELS[name]
        with tempfile.TemporaryDirectory() as folder:
            model, values = pathlib.Path(folder) / "model.bug", pathlib.Path(folder) / "data.json"
            model.write_text(text)
            values.write_text(json.dumps(data))
            command = [options.binary, "check", model, "--data", values, "--sbc", options.fits, "--seed", options.seed, "--json", "--quiet"]
            began = time.time()
            ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            took = time.time() - began
        if not ran.stdout:
            sys.exit(f"{name}: exit {ran.returncode}: {ran.stderr}")
        told = json.loads(ran.stdout)
        rows = told["quantities"]
        covered = sorted(row["coverage"][1] for row in rows)
        trusted = told["verdicts"]["trust"] / told["fitted"]
        least = min(row["adjusted"] for row in rows)
        print(f"| {name} | {told['fitted']} | {100 * trusted:.0f} % | {len(rows)} | {least:.3f} | {100 * covered[0]:.0f}-{100 * covered[-1]:.0f} % | {took:.0f} |", flush=True)
        flagged += [f"{name}: {row['name']}: {row['shape']}" for row in rows if row["adjusted"] < told["level"]]
    print("\n".join(["", *flagged]) if flagged else "\nAll ranks are consistent with uniform.")
    sys.exit(bool(flagged))


if __name__ == "__main__":
    main()
