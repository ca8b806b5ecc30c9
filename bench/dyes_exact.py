#!/usr/bin/env python3
"""The exact posterior of the classic BUGS example dyes, by integrating over its two variances on a grid.

dyes_exact.py FOLDER    with FOLDER/data.R as classic_bugs.py writes it: y, batches in rows

The common mean has a prior so wide that it counts as flat; given the variances it and the means of the batches are integrated out.
"""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "jags"))

from jags import undump  # noqa: E402

SHAPE = RATE = 0.001  # Of the gamma priors of both precisions.
STEPS = 1600


def main():
    y = undump((pathlib.Path(sys.argv[1]) / "data.R").read_text())["y"]
    batches, samples = len(y), len(y[0])
    means = [sum(row) / samples for row in y]
    mean = sum(means) / batches
    within = sum((x - m) ** 2 for row, m in zip(y, means) for x in row)
    between = samples * sum((m - mean) ** 2 for m in means)

    def log_density(a, b):
        """Of the logs of the variances within and between batches."""
        all_of = math.exp(a) + samples * math.exp(b)
        log_likelihood = -0.5 * (batches * (samples - 1) * a + within * math.exp(-a) + (batches - 1) * math.log(all_of) + between / all_of)
        return log_likelihood - SHAPE * (a + b) - RATE * (math.exp(-a) + math.exp(-b))

    # Between batches the prior has a long tail towards zero.
    a_axis = [5.5 + 5 * k / 200 for k in range(201)]
    b_axis = [-8 + 30 * k / STEPS for k in range(STEPS + 1)]
    logs = [[log_density(a, b) for a in a_axis] for b in b_axis]
    top = max(map(max, logs))
    of_b = [sum(math.exp(x - top) for x in row) for row in logs]
    of_a = [sum(math.exp(row[k] - top) for row in logs) for k in range(len(a_axis))]
    for name, axis, weights in (("sigma2.within", a_axis, of_a), ("sigma2.between", b_axis, of_b)):
        total = sum(weights)
        first = sum(w * math.exp(x) for x, w in zip(axis, weights)) / total
        second = sum(w * math.exp(2 * x) for x, w in zip(axis, weights)) / total
        print(f"{name}: mean {first:,.0f}, sd {math.sqrt(second - first**2):,.0f}")


if __name__ == "__main__":
    main()
