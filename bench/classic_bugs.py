#!/usr/bin/env python3
"""Turns the classic BUGS examples, as JAGS distributes them with benchmark statistics, into folders for suite.py.

classic_bugs.py CLASSIC OUT

CLASSIC has vol1 and vol2, with a testN.cmd or notestN.cmd (model, data and monitors) and a bench-testN.R (means, standard deviations
and Monte Carlo errors of a JAGS run) for each test. OUT/NAME-N gets model.bug, data.R and reference.json. Tests without statistics are left out.
"""

import json
import pathlib
import re
import shutil
import sys

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def call(text, start):
    """The text between the parentheses that open at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[start + 1 : at]
    raise ValueError("a parenthesis is not closed")


def statistics(text, monitors):
    """{name: {"mean", "sd", "mcse"}} of R's structure(c(...), .Dim, .Dimnames): columns of means, sds, naive and time-series errors."""
    text = text[text.index("structure(") + len("structure(") :]
    values = [float(x) for x in re.findall(NUMBER, call(text, text.index("(")))]
    rest = text[text.index(")") :]
    names = [name for name in re.findall(r'"([^"]+)"', rest) if name not in ("Mean", "SD", "Naive SE", "Time-series SE")]
    names = names if ".Dim" in rest else monitors[:1]
    n = len(names)
    if not n or len(values) != 4 * n:
        raise ValueError(f"{len(values)} numbers for {n} names")
    return {name: {"mean": values[i], "sd": values[n + i], "mcse": values[3 * n + i]} for i, name in enumerate(names)}


def main():
    classic, out = map(pathlib.Path, sys.argv[1:3])
    for script in sorted(classic.glob("vol*/*/*test*.cmd")):
        folder, number = script.parent, script.stem.split("test")[1]
        bench, name = folder / f"bench-test{number}.R", f"{folder.name}-{number}"
        code = script.read_text().replace('"', "")
        model, data = (re.search(rf"^{what} in (\S+)", code, re.MULTILINE) for what in ("model", "data"))
        if not (bench.exists() and model and data and (folder / model[1]).exists() and (folder / data[1]).exists()):
            print(f"{name}: no statistics, model or data", file=sys.stderr)
            continue
        monitors = re.findall(r"^monitor (?:set )?([^\s,]+)", code, re.MULTILINE)
        try:
            parameters = statistics(bench.read_text(), monitors)
        except (ValueError, IndexError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        to = out / name
        to.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / model[1], to / "model.bug")
        shutil.copy(folder / data[1], to / "data.R")
        (to / "reference.json").write_text(json.dumps({"parameters": parameters}, indent=1))


if __name__ == "__main__":
    main()
