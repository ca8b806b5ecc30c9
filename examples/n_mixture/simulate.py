"""Writes the N-mixture example's data.json: simulated counts, seed 1. Usage: python3 simulate.py > data.json"""

import json
import math
import random
import sys

SITES, VISITS = 40, 3
A, B, P = 1.2, 0.8, 0.45

rng = random.Random(1)


def poisson(mean):
    """By inversion of one uniform, so that only `random()` is asked of the generator."""
    u, count, term = rng.random(), 0, math.exp(-mean)
    total = term
    while u > total:
        count += 1
        term *= mean / count
        total += term
    return count


forest = [round(-1 + 2 * i / (SITES - 1), 3) for i in range(SITES)]
number = [poisson(math.exp(A + B * x)) for x in forest]
y = [[sum(rng.random() < P for _ in range(n)) for _ in range(VISITS)] for n in number]
print(f"individuals present: {sum(number)}, seen at most: {sum(map(max, y))}", file=sys.stderr)
print(json.dumps({"sites": SITES, "visits": VISITS, "forest": forest, "y": y}))
