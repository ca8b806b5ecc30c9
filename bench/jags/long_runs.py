#!/usr/bin/env python3
"""Long JAGS runs of models in folders as ../suite.py has them, beside the references of these folders.

long_runs.py FOLDER [FOLDER ...] [--iterations 400000]

Two chains with every twentieth draw kept. Prints mean, standard deviation and R̂ of each parameter of reference.json, and what that says.
"""

import argparse
import json
import pathlib

import jags


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--iterations", type=int, default=400_000)
    options = parser.parse_args()
    print("| model | parameter | JAGS | R̂ | reference |\n| --- | --- | --- | --- | --- |")
    for folder in options.folders:
        data = next(path for path in (folder / "data.json", folder / "data.R") if path.exists())
        told = json.loads((folder / "reference.json").read_text())["parameters"]
        monitors = sorted({name.split("[")[0] for name in told})
        draws, _ = jags.run(
            folder / "model.bug",
            jags.load(data),
            monitors,
            burn=options.iterations // 20,
            iterations=options.iterations,
            thin=20,
            chains=2,
        )
        for name, reference in told.items():
            chains = draws[name]
            found = f"{chains.mean():.4g} ± {chains.std(ddof=1):.3g} | {jags.split_rhat(chains):.2f}"
            print(f"| {folder.name} | {name} | {found} | {reference['mean']:.4g} ± {reference['sd']:.3g} |", flush=True)


if __name__ == "__main__":
    main()
