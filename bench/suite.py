#!/usr/bin/env python3
"""Fits every example of a folder with no option but its model and data, and holds the summaries against reference posteriors.

suite.py BINARY FOLDER [NAME=REFERENCE ...]

FOLDER/NAME has model.bug, data.json and reference.json: {"parameters": {"x[1]": {"mean": ..., "sd": ..., "pmf": {...}}}}, with the
names under "unreliable" left out. NAME=REFERENCE takes another file's parameters. A continuous parameter agrees where its mean is
within 0.1 standard deviations and its standard deviation within 15 %, a discrete one where every probability is within 0.03. Prints a
table in Markdown; exits with 1 where an example of which fewer than 80 % agree is told to be trusted.
"""

import json
import pathlib
import subprocess
import sys
import time

MEAN, SD, PROBABILITY, SHARE = 0.1, 0.15, 0.03, 0.8


def by_value(pmf):
    return {float(value): p for value, p in (pmf or {}).items()}


def apart(own, other):
    """(kind, how far apart), in standard deviations, as a share of one, or in probability."""
    if other.get("pmf"):
        found, exact = by_value(own.get("pmf")), by_value(other["pmf"])
        return [("p", max(abs(found.get(v, 0) - p) for v, p in exact.items()))]
    return [("mean", abs(own["mean"] - other["mean"]) / other["sd"]), ("sd", abs(own["sd"] / other["sd"] - 1))]


LIMITS = {"mean": MEAN, "sd": SD, "p": PROBABILITY}


def one(binary, folder, reference):
    parameters = {
        name: value
        for name, value in reference["parameters"].items()
        if name not in reference.get("unreliable", []) and value.get("sd", 0) > 0
    }
    command = [binary, "fit", folder / "model.bug", "--data", folder / "data.json", "--json", "--quiet"]
    began = time.time()
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    seconds = time.time() - began
    if ran.returncode:
        return {"verdict": f"exit {ran.returncode}", "agree": 0, "of": len(parameters), "seconds": seconds, "worst": {}, "khat": None}
    told = json.loads(ran.stdout)
    worst, agree, compared = {}, 0, 0
    for name, other in parameters.items():
        own = told["parameters"].get(name)
        if own is None:
            continue
        compared += 1
        distances = apart(own, other)
        agree += all(distance <= LIMITS[kind] for kind, distance in distances)
        for kind, distance in distances:
            worst[kind] = max(worst.get(kind, 0), distance)
    return {"verdict": told["verdict"], "agree": agree, "of": compared, "seconds": seconds, "worst": worst, "khat": told["khat"], "method": told["method"]}


def main(binary, root, others):
    others = dict(other.split("=", 1) for other in others)
    print("| example | agree | worst mean, in sd | worst sd | worst probability | method | k̂ | verdict | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    silent, agree, of = [], 0, 0
    for folder in sorted(path.parent for path in pathlib.Path(root).glob("*/model.bug")):
        path = pathlib.Path(others.get(folder.name, folder / "reference.json"))
        found = one(binary, folder, json.loads(path.read_text()))
        agree, of = agree + found["agree"], of + found["of"]
        if found["agree"] < SHARE * found["of"] and found["verdict"] == "trust":
            silent.append(folder.name)
        shown = [f"{found['worst'][kind]:.3f}" if kind in found["worst"] else "" for kind in ("mean", "sd", "p")]
        khat = "" if found["khat"] is None else f"{found['khat']:.2f}"
        cells = [folder.name, f"{found['agree']} of {found['of']}", *shown, found.get("method", ""), khat, found["verdict"], f"{found['seconds']:.1f}"]
        print("| " + " | ".join(cells) + " |", flush=True)
    print(f"\n{agree} of {of} parameters agree ({100 * agree / max(of, 1):.1f} %).", end=" ")
    print(f"Silent failures: {', '.join(silent) if silent else 'none'}.")
    return bool(silent)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
