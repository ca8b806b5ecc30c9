"""Three models with simulated data that are larger than the examples, and their references.

larger.py    runs Stan for long on the one whose posterior is not known exactly, and writes reference/.

The models and the data are those of ../sizes.py.
"""

import json
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import sizes  # noqa: E402

# The number of states or effects, and the scalars that are compared.
LARGER = {
    "level": (1000, ["level", "noise"]),
    "effects": (1000, ["mu", "sd"]),
    "volatility": (500, ["mu", "phi", "sd"]),
}
# One more of which only effective draws are compared.
SIZES = {**LARGER, "responses": (300, ["a", "b"])}
SEED = 1
LONG = 5000


def made(name):
    """The text of the model, its data, and the function of its scalars if their posterior is known."""
    text, data, truth, log_likelihood = getattr(sizes, name)(SIZES[name][0], random.Random(SEED))
    return text, data, truth, log_likelihood


def folder(name, under):
    """A folder with the model and its data."""
    text, data, *_ = made(name)
    path = under / name
    path.mkdir(parents=True, exist_ok=True)
    (path / "model.bug").write_text(text)
    (path / "data.json").write_text(json.dumps(data))
    return path


def reference(name):
    """The mean and the standard deviation of every scalar: on a grid, or from a long run."""
    *_, truth, log_likelihood = made(name)
    if log_likelihood is None:
        path = HERE / "reference" / f"{name}.json"
        if not path.exists():
            sys.exit(f"{path} is missing: run larger.py first")
        return json.loads(path.read_text())
    near = {key: (value, 0.2 * abs(value)) for key, value in truth.items()}
    for _ in range(3):
        near = sizes.moments(log_likelihood, near)
    return {key: {"mean": mean, "sd": sd} for key, (mean, sd) in near.items()}


def main():
    import with_stan

    for name, (_, compared) in LARGER.items():
        _, data, _, log_likelihood = made(name)
        if log_likelihood is None:
            draws = with_stan.sample(name, data, seed=7, num_samples=LONG)
            rows = {key: {"mean": float(draws[key].mean()), "sd": float(draws[key].std(ddof=1))} for key in compared}
            (HERE / "reference").mkdir(exist_ok=True)
            (HERE / "reference" / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
