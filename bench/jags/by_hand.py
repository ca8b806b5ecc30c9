"""The log joints of five examples written by hand in numpy, to hold hyperprior's (or JAGS's) against.

by_hand.py NAME... [--points 20] [--hyperprior PROGRAM]    hyperprior's log joint at its own points, to 1e-8
by_hand.py NAME... --jags                                  JAGS's at draws of its own, to the six digits it prints
"""

import argparse
import pathlib
import sys

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

import jags
import points

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"


def normal(x, mean, precision):
    return np.sum(0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * (x - mean) ** 2)


def gamma(x, shape, rate):
    return np.sum(shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(x) - rate * x)


def poisson(count, mean):
    return np.sum(xlogy(count, mean) - mean - gammaln(count + 1))


def bernoulli(x, p):
    return np.sum(xlogy(x, p) + xlog1py(1 - x, -p))


def dirichlet(x, weight):
    """Along the last axis; the density on the first K - 1 coordinates."""
    return np.sum(gammaln(weight.sum(-1)) - gammaln(weight).sum(-1) + xlogy(weight - 1, x).sum(-1))


def index(x):
    return np.asarray(x).astype(int) - 1


def coal(v):
    year = np.arange(1, int(v["n"]) + 1)
    rate = np.where(year <= v["k"], v["lambda"][0], v["lambda"][1])
    return -np.log(v["n"]) + gamma(v["lambda"], 1.0, 1.0) + poisson(v["y"], rate)


def spike_hald(v):
    mean = v["X"] @ (v["g"] * v["b"])
    prior = bernoulli(v["g"], 0.5) + normal(v["b"], 0.0, v["tau"] / 4) + gamma(v["tau"], 2.0, v["b0"])
    return prior + normal(v["y"], mean, v["tau"])


def sbn_exact(v):
    visible = 1 / (1 + np.exp(-(v["b"] + v["W"] @ v["h"])))
    return bernoulli(v["h"], v["ph"]) + bernoulli(v["v"], visible)


def hmm_quakes(v):
    steps = np.concatenate([[0.0], v["d"][1:]])
    rate = v["lambda"][0] + np.cumsum(steps)
    z = index(v["z"])
    prior = dirichlet(v["A"], v["alpha"]) + gamma(v["lambda"][0], 2.0, 0.1) + gamma(v["d"][1:], 2.0, 0.2)
    chain = -np.log(v["K"]) + np.log(v["A"][z[:-1], z[1:]]).sum()
    return prior + chain + poisson(v["y"], rate[z])


def dawid_skene(v):
    truth = index(v["c"])
    prior = dirichlet(v["pi"], v["ones"]) + dirichlet(v["theta"], np.broadcast_to(v["beta"], v["theta"].shape))
    said = v["theta"][index(v["rater"]), truth[index(v["item"])], index(v["y"])]
    return prior + np.log(v["pi"][truth]).sum() + np.log(said).sum()


# Each with its stochastic latents, and those of them whose rows are simplices.
MODELS = {
    "coal": (coal, ["k", "lambda"], []),
    "spike_hald": (spike_hald, ["g", "b", "tau"], []),
    "sbn_exact": (sbn_exact, ["h"], []),
    "hmm_quakes": (hmm_quakes, ["z", "A", "lambda[1]", "d[2]", "d[3]"], ["A"]),
    "dawid_skene": (dawid_skene, ["c", "pi", "theta"], ["pi", "theta"]),
}


def log_joint(name, data, values):
    """log p(data, values) of an example; `values` maps scalars (`lambda[1]`) to numbers on the model's own scale."""
    filled = {key: np.asarray(value, dtype=float) for key, value in points.fill(data, values).items()}
    return float(MODELS[name][0](filled))


def jags_points(name, data, count):
    """Draws of JAGS, as printed; simplices rounded to six digits are scaled to sum to 1 again."""
    _, latents, simplices = MODELS[name]
    model = EXAMPLES / name / "model.bug"
    draws, _ = jags.run(model, data, latents, burn=500, iterations=10 * count, thin=10)
    extents = jags.extents(model, data)
    for at in range(count):
        values = {scalar: float(chains[0, at]) for scalar, chains in draws.items()}
        for simplex in simplices:
            own = {s: v for s, v in values.items() if s.split("[")[0] == simplex}
            numbers = np.asarray(points.fill({}, own)[simplex])
            numbers /= numbers.sum(-1, keepdims=True)
            for scalar in own:
                values[scalar] = float(numbers[tuple(int(i) - 1 for i in scalar[len(simplex) + 1 : -1].split(","))])
        yield {"values": values, "log_joint": points.jags_log_joint(model, data, values, extents)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--hyperprior", default="hyperprior")
    parser.add_argument("--jags", action="store_true", help="hold JAGS against the formulas instead")
    arguments = parser.parse_args()
    fine = True
    for name in arguments.names or MODELS:
        if name not in MODELS:
            parser.error(f"{name} is not written by hand; these are: {', '.join(MODELS)}")
        path = EXAMPLES / name / "data.json"
        data = jags.load(path)
        if arguments.jags:
            found, tolerance = jags_points(name, data, arguments.points), 1e-5
        else:
            model = EXAMPLES / name / "model.bug"
            found, tolerance = points.from_hyperprior(arguments.hyperprior, model, path, arguments.points), 1e-8
        errors = []
        for point in found:
            expected = log_joint(name, data, point["values"])
            if np.isfinite(expected) or point["log_joint"] is not None:
                # JSON has no infinities; null stands for them.
                given = -np.inf if point["log_joint"] is None else point["log_joint"]
                same = given == expected
                errors.append(0.0 if same else abs(given - expected) / max(1.0, abs(expected)))
        worst = max(errors, default=np.inf)
        fine = fine and worst <= tolerance
        print(f"{name}: {len(errors)} points, largest relative difference {worst:.1e} (at most {tolerance:g})")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
