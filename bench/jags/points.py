"""Points at which log densities are compared: from `hyperprior check`, and their scalars put back into arrays."""

import json
import re
import shlex
import subprocess
import sys

import numpy as np

import jags


def from_hyperprior(program, model, data, count, seed=1):
    """[{"values": {scalar name: value}, "log_joint": number}, …]"""
    command = [*shlex.split(program), "check", str(model), "--data", str(data), "--points", str(count)]
    command += ["--seed", str(seed), "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit(f"no such program: {command[0]}; build it with `cargo build --release` and name it with --hyperprior")
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)["points"]


def fill(data, values, extents=None):
    """The data with the scalars of `values` put in: NaN wherever neither has a value, which JAGS takes for "not given".

    A name that the data lack has the given extents, or else those of its largest indices.
    """
    filled = {name: jags.array(value) for name, value in data.items()}
    places = {}
    for scalar, value in values.items():
        name, indices = re.fullmatch(r"([A-Za-z][\w.]*)(?:\[([\d,\s]+)\])?", scalar).groups()
        place = tuple(int(i) - 1 for i in indices.split(",")) if indices else ()
        places.setdefault(name, {})[place] = value
    for name, entries in places.items():
        if name not in filled:
            shape = (extents or {}).get(name)
            # JAGS writes a vector of one element as a scalar; the scalars' own indices say which it is.
            if shape is None or len(shape) != len(next(iter(entries))):
                shape = tuple(np.max(np.array(list(entries), dtype=int), axis=0) + 1) if () not in entries else ()
            filled[name] = np.full(shape, np.nan)
        for place, value in entries.items():
            filled[name][place] = value
    return {name: numbers.tolist() for name, numbers in filled.items()}


def jags_log_joint(model, data, values, extents=None, modules=()):
    """log p(data, values) by JAGS: everything is observed, so that its deviance is -2 log joint. Six digits, as JAGS prints."""
    filled = fill(data, values, extents)
    modules = ["dic", *modules]
    draws, _ = jags.run(model, filled, ["deviance"], burn=0, iterations=1, modules=modules, observed=True)
    return -0.5 * float(draws["deviance"][0, 0])
