"""Long JAGS runs of the examples: prints each table of posterior means and keeps it in reference/NAME.json.

reference.py [NAME...]; every example if none is named. Settings are in examples.json; four chains, 10,000 burn-in.
"""

import json
import pathlib
import sys

import jags

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
CHAINS, BURN, SEED = 4, 10_000, 1


def settings(name):
    table = jags.load(HERE / "examples.json")
    if name not in table:
        sys.exit(f"no settings for {name!r} in {HERE / 'examples.json'}; it has {', '.join(table)}")
    return table[name]


def run(name):
    chosen = settings(name)
    draws, seconds = jags.run(
        EXAMPLES / name / "model.bug",
        jags.load(EXAMPLES / name / "data.json"),
        chosen["monitors"],
        burn=BURN,
        iterations=chosen["iterations"],
        thin=chosen["thin"],
        chains=CHAINS,
        seed=SEED,
        inits=chosen.get("inits"),
    )
    return {
        "jags": "4.3.1",
        "chains": CHAINS,
        "burn": BURN,
        "iterations": chosen["iterations"],
        "thin": chosen["thin"],
        "seed": SEED,
        "seconds": round(seconds, 1),
        "parameters": {key: jags.summary(chains) for key, chains in draws.items()},
    }


def main(names):
    for name in names or jags.load(HERE / "examples.json"):
        found = run(name)
        (HERE / "reference").mkdir(exist_ok=True)
        (HERE / "reference" / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
        rows = found["parameters"]
        worst = max(row["rhat"] for row in rows.values())
        print(f"\n## {name}: {found['seconds']} s, R-hat at most {worst:.4f}\n")
        print("| | mean | sd | Monte Carlo error |\n| --- | --- | --- | --- |")
        for key, row in rows.items():
            print(f"| `{key}` | {row['mean']:.4g} | {row['sd']:.3g} | {row['mcse']:.1g} |")


if __name__ == "__main__":
    main(sys.argv[1:])
