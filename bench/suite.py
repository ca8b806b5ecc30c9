#!/usr/bin/env python3
"""Fits every model of some folders with default options, and compares the summaries with reference posteriors.

suite.py BINARY FOLDER [FOLDER ...] [--seeds 1,2,3] [--jobs N] [--limit SECONDS] [--only NAME,...] [--uncorrected]
         [--reference NAME=FILE ...]

FOLDER/NAME has model.bug, data.json or data.R, and reference.json: {"parameters": {"x[1]": {"mean": ..., "sd": ..., "pmf": {...}}},
"log_evidence": ...}, with the names under "unreliable" left out. A continuous parameter agrees if its mean is within 0.1 standard
deviations and its standard deviation within 15 %; a discrete one, or an indicator, if every probability is within 0.03. If a parameter of the reference
has an "mcse", three of these are deducted from differences. A fit is right if 80 % of its parameters agree. --uncorrected also fits with --correct none, for a column with the share of parameters that agree then.

Prints a table in Markdown, with several seeds another one by model, and then the faults: a wrong fit with the verdict "trust", a fit with the verdict "means only" and a mean
more than 0.2 standard deviations off, and right fits that are not trusted. Exits with 1 if there is one of the first two.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time

LIMITS = {"mean": 0.1, "sd": 0.15, "p": 0.03}
SHARE, MEANS_ONLY = 0.8, 0.2


def by_value(pmf):
    return {float(value): p for value, p in (pmf or {}).items()}


def apart(own, other):
    """(kind, how far apart), in standard deviations, as a share of one, or in probability."""
    if other.get("pmf"):
        found, exact = by_value(own.get("pmf")), by_value(other["pmf"])
        return [("p", max(abs(found.get(v, 0) - p) for v, p in exact.items()))]
    mean, sd = other["mean"], other["sd"]
    if abs(sd * sd - mean * (1 - mean)) < 1e-3 * sd * sd:  # Of an indicator.
        return [("p", max(abs(own["mean"] - mean) - 3 * other.get("mcse", 0), 0))]
    error = 3 * other.get("mcse", 0) / other["sd"]
    return [("mean", max(abs(own["mean"] - other["mean"]) / other["sd"] - error, 0)), ("sd", max(abs(own["sd"] / other["sd"] - 1) - error, 0))]


def fit(options, folder, seed, *more):
    data = next(path for path in (folder / "data.json", folder / "data.R") if path.exists())
    command = [options.binary, "fit", folder / "model.bug", "--data", data, "--json", "--quiet", "--seed", seed, *more]
    began = time.time()
    try:
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return None, "over the limit", time.time() - began
    verdict = f"exit {ran.returncode}"
    told = json.loads(ran.stdout) if not ran.returncode else None
    return told, told["verdict"] if told else verdict, time.time() - began


def compare(told, parameters):
    worst, agree, compared, off = {}, 0, 0, 0.0
    for name, other in parameters.items():
        own = (told or {"parameters": {}})["parameters"].get(name)
        if own is None:
            continue
        compared += 1
        distances = apart(own, other)
        agree += all(distance <= LIMITS[kind] for kind, distance in distances)
        off = max(off, (abs(own["mean"] - other["mean"]) - 3 * other.get("mcse", 0)) / other["sd"])
        for kind, distance in distances:
            worst[kind] = max(worst.get(kind, 0), distance)
    return agree, compared or len(parameters), worst, off


def one(options, folder, seed):
    path = pathlib.Path(options.references.get(folder.name, folder / "reference.json"))
    reference = json.loads(path.read_text())
    unreliable = reference.get("unreliable", [])
    parameters = {k: v for k, v in reference["parameters"].items() if k not in unreliable and v.get("sd", 0) > 0}
    told, verdict, seconds = fit(options, folder, seed)
    agree, of, worst, off = compare(told, parameters)
    found = {"name": folder.name, "seed": seed, "verdict": verdict, "agree": agree, "of": of, "worst": worst, "off": off, "seconds": seconds}
    if options.uncorrected:
        raw = compare(fit(options, folder, seed, "--correct", "none")[0], parameters)
        found["raw"] = f"{raw[0]} of {raw[1]}"
    if told:
        found |= {"khat": told.get("khat"), "method": told.get("method")}
        exact, estimate = reference.get("log_evidence"), told.get("evidence")
        if exact is not None and estimate and estimate.get("log") is not None:
            found["evidence"] = (estimate["log"] - exact, estimate.get("standard_error"))
    return found


def row(found, uncorrected):
    worst = [f"{found['worst'][kind]:.3f}" if kind in found["worst"] else "" for kind in ("mean", "sd", "p")]
    khat = f"{found['khat']:.2f}" if found.get("khat") is not None else ""
    off, error = found.get("evidence", (None, None))
    evidence = "" if off is None else f"{off:+.2f}" + (f" ± {error:.2f}" if error else "")
    if evidence and found["verdict"] == "distrust":
        evidence = f"≥ {off:+.2f}"  # The estimate is reported as a lower bound.
    raw = [found["raw"]] if uncorrected else []
    cells = [found["name"], str(found["seed"]), f"{found['agree']} of {found['of']}", *raw, *worst, evidence]
    return [*cells, str(found.get("method") or ""), khat, found["verdict"], f"{found['seconds']:.1f}"]


def by_model(all_found):
    """A row for each model: what each seed gave."""
    print("\n| model | parameters | agree | verdicts | worst mean, in sd | log evidence − exact | seconds |\n" + "| --- " * 7 + "|")
    for name in dict.fromkeys(f["name"] for f in all_found):
        own = [f for f in all_found if f["name"] == name]
        mean = [f"{f['worst']['mean']:.2f}" if "mean" in f["worst"] else "" for f in own]
        evidence = [row(f, False)[6].split(" ±")[0] for f in own]
        join = lambda cells: ", ".join(cells) if any(cells) else ""
        cells = [name, str(own[0]["of"]), join([str(f["agree"]) for f in own]), join([f["verdict"] for f in own]), join(mean), join(evidence)]
        print("| " + " | ".join(cells) + f" | {max(f['seconds'] for f in own):.0f} |")


def main(options):
    folders = sorted(path.parent for root in options.folders for path in pathlib.Path(root).glob("*/model.bug"))
    folders = [f for f in folders if (f / "reference.json").exists() or f.name in options.references]
    if options.only:
        folders = [folder for folder in folders if folder.name in options.only.split(",")]
    head = ["model", "seed", "agree", *(["uncorrected"] if options.uncorrected else []), "worst mean, in sd", "worst sd", "worst probability"]
    head += ["log evidence − exact", "method", "k̂", "verdict", "seconds"]
    print("| " + " | ".join(head) + " |\n" + "| --- " * len(head) + "|", flush=True)
    all_found = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = [pool.submit(one, options, folder, seed) for folder in folders for seed in options.seeds.split(",")]
        for done in work:
            all_found.append(done.result())
            print("| " + " | ".join(row(all_found[-1], options.uncorrected)) + " |", flush=True)
    if "," in options.seeds:
        by_model(all_found)
    is_right = lambda f: f["agree"] >= SHARE * f["of"]
    name = lambda f: f"{f['name']} ({f['seed']})"
    wrong = [name(f) for f in all_found if f["verdict"] == "trust" and not is_right(f)]
    means = [name(f) for f in all_found if f["verdict"] == "means-only" and f["off"] > MEANS_ONLY]
    right = [f for f in all_found if is_right(f)]
    unsure = [name(f) for f in right if f["verdict"] != "trust"]
    agree, of = sum(f["agree"] for f in all_found), sum(f["of"] for f in all_found)
    show = lambda names: ", ".join(names) if names else "none"
    print(f"\n{agree} of {of} parameters agree ({100 * agree / max(of, 1):.1f} %); {len(right)} of {len(all_found)} fits are right.")
    print(f"\nTrusted and wrong: {show(wrong)}.\n\nMeans only, and a mean wrong: {show(means)}.")
    print(f"\nRight and not trusted: {len(unsure)} of {len(right)}: {show(unsure)}.")
    return bool(wrong or means)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--only")
    parser.add_argument("--uncorrected", action="store_true")
    parser.add_argument("--reference", action="append", default=[])
    options = parser.parse_args()
    options.references = dict(other.split("=", 1) for other in options.reference)
    sys.exit(main(options))
