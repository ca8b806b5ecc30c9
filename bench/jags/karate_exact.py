"""The karate club's exact posterior: all 2^32 assignments of the free members, with w and eta integrated out.

karate_exact.py; prints the log evidence and exact means and standard deviations, and keeps them in reference/karate_sbm.json.
Half a minute to a minute. JAGS's chains cannot do this: they stay in one of the modes.

Given z only three numbers matter: the size of block 1, the ties inside it, and the sum of its members' ties. Assignments of
16 members vary inside numpy's vectors, those of the other 16 in the loop around them.
"""

import json
import pathlib

import numpy as np
from scipy.special import betaln

import jags

HERE = pathlib.Path(__file__).resolve().parent
TIES, MEMBERS = 78, 34
BLOCK = 64


def moments(a, b):
    """Of a beta variable: its mean and its mean square."""
    mean = a / (a + b)
    return mean, mean * (a + 1) / (a + b + 1)


def table():
    """log p(y, z) by (size, ties inside, sum of ties) of block 1, and the conditional moments of what is integrated out."""
    size, inside, total = np.ogrid[0 : MEMBERS + 1, 0 : TIES + 1, 0 : 2 * TIES + 1]
    other = MEMBERS - size
    across = total - 2 * inside
    beyond = TIES - inside - across
    pairs = {"eta[1,1]": size * (size - 1) // 2, "eta[2,2]": other * (other - 1) // 2, "eta[1,2]": size * other}
    ties = {"eta[1,1]": inside, "eta[2,2]": beyond, "eta[1,2]": across}
    priors = {"eta[1,1]": (2, 2), "eta[2,2]": (2, 2), "eta[1,2]": (1, 5)}
    log_p = betaln(1 + size, 1 + other) + np.zeros_like(inside + total, dtype=float)
    possible = np.ones_like(log_p, dtype=bool)
    found = {"w[1]": moments(1 + size, 1 + other), "w[2]": moments(1 + other, 1 + size)}
    for name, (a, b) in priors.items():
        yes, no = ties[name], pairs[name] - ties[name]
        possible &= (yes >= 0) & (no >= 0)
        yes, no = np.maximum(yes, 0), np.maximum(no, 0)
        log_p += betaln(a + yes, b + no) - betaln(a, b)
        found[name] = moments(a + yes, b + no)
    found["eta[2,1]"] = found["eta[1,2]"]
    return np.where(possible, log_p, -np.inf), found


def bits(count):
    """Row s holds the digits of s, the first the least: 0 for block 2, 1 for block 1."""
    return (np.arange(1 << count)[:, None] >> np.arange(count)) & 1


def main():
    data = jags.load(HERE.parent.parent / "examples" / "karate_sbm" / "data.json")
    adjacency = np.array(data["y"])
    assert adjacency.sum() == 2 * TIES and (adjacency == adjacency.T).all()
    degree = adjacency.sum(0)
    log_p, found = table()
    weight_of = np.exp(log_p - log_p.max()).ravel()
    strides = (log_p.shape[1] * log_p.shape[2], log_p.shape[2], 1)

    # Member 1 is in block 1 and member 34 in block 2, as the data say.
    free = np.arange(1, MEMBERS - 1)
    inner, outer = free[:16], free[16:]
    vector = bits(16)

    def inside(states, members):
        ties = adjacency[np.ix_(members, members)]
        return np.einsum("si,ij,sj->s", states, ties, states, optimize=True) // 2

    def place(members, states):
        """What the states of these members add to the table's index by themselves, ties to member 1 among it."""
        return (
            strides[0] * states.sum(1)
            + strides[1] * (inside(states, members) + states @ adjacency[0, members])
            + strides[2] * (states @ degree[members])
        )

    start = strides[0] + strides[2] * degree[0]
    inner_place, outer_place = place(inner, vector), start + place(outer, vector)
    # Ties between the two halves: a vector of 2^16 as a sum of two of 2^8.
    byte = bits(8)
    between = vector @ adjacency[np.ix_(outer, inner)]
    first, second = between[:, :8] @ byte.T, between[:, 8:] @ byte.T
    counts = np.zeros(weight_of.size, dtype=np.int64)
    inner_weight, outer_weight = np.zeros(1 << 16), np.zeros(1 << 16)
    for at in range(0, 1 << 16, BLOCK):
        block = slice(at, at + BLOCK)
        cross = (second[block, :, None] + first[block, None, :]).reshape(BLOCK, -1)
        index = inner_place + (outer_place[block, None] + strides[1] * cross)
        weight = weight_of[index]
        inner_weight += weight.sum(0)
        outer_weight[block] = weight.sum(1)
        counts += np.bincount(index.ravel(), minlength=counts.size)

    assert counts.sum() == 1 << 32
    share = (counts * weight_of).reshape(log_p.shape)
    total = share.sum()
    rows = {}
    for name, (mean, square) in found.items():
        mean, square = ((share * part).sum() / total for part in (mean, square))
        rows[name] = (mean, np.sqrt(square - mean**2))
    for members, weights in ((inner, inner_weight), (outer, outer_weight)):
        for member, chance in zip(members, weights @ vector / total):
            # Block 1 is 1 and block 2 is 2.
            rows[f"z[{member + 1}]"] = (2 - chance, np.sqrt(chance * (1 - chance)))
    evidence = np.log(total) + log_p.max()
    parameters = {name: {"mean": float(mean), "sd": float(sd), "mcse": 0.0} for name, (mean, sd) in rows.items()}
    kept = {"source": "exact, karate_exact.py", "evidence": float(evidence), "parameters": parameters}
    (HERE / "reference" / "karate_sbm.json").write_text(json.dumps(kept, indent=1) + "\n")
    print(f"log evidence {evidence:.6f}\n\n| | mean | sd |\n| --- | --- | --- |")
    for name, (mean, sd) in rows.items():
        print(f"| `{name}` | {mean:.4f} | {sd:.4f} |")
    sizes = share.sum((1, 2)) / total
    print("size of block 1:", ", ".join(f"{size}: {chance:.4f}" for size, chance in enumerate(sizes) if chance > 1e-4))


if __name__ == "__main__":
    main()
