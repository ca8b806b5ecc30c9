"""Long JAGS runs of the examples, and which of their scalars are compared: continuous latents, and what is computed from them."""

import pathlib
import sys

import jags

HERE = pathlib.Path(__file__).resolve().parent
COMPARED = {
    "coal": ["lambda"],
    "spike_hald": ["beta", "tau"],
    "hmm_quakes": ["lambda", "A"],
    "dawid_skene": ["pi", "theta"],
    "karate_sbm": ["w", "eta"],
    "occupancy": ["psi", "p"],
    "capture_recapture": ["omega", "p"],
    "n_mixture": ["a", "b", "p"],
    "zip_claims": ["mu", "p"],
    "rats": ["mu.a", "mu.b", "sigma", "sigma.a", "sigma.b", "at.birth"],
}


def reference(name):
    """The rows of an example's reference that are compared."""
    path = HERE / "reference" / f"{name}.json"
    if not path.exists():
        sys.exit(f"{path} is missing: run `reference.py {name}` first")
    rows = jags.load(path)["parameters"]
    rows = {key: row for key, row in rows.items() if key.split("[")[0] in COMPARED[name] and row["sd"] > 0}
    loose = [key for key, row in rows.items() if row["mcse"] > 0.01 * row["sd"]]
    if loose:
        print(f"{name}: the reference's own error exceeds .01 sd in {', '.join(loose)}", file=sys.stderr)
    return rows
