"""Runs JAGS from Python: writes its data and script, reads its draws, and says how far they are to be trusted."""

import json
import pathlib
import re
import subprocess
import tempfile
import time

import numpy as np


class Refused(Exception):
    """JAGS would not run the model; the message is its own."""


def array(value):
    """A JSON value as a float array, row-major, null as NaN."""

    def plain(v):
        if isinstance(v, list):
            return [plain(x) for x in v]
        return np.nan if v is None else v

    return np.array(plain(value), dtype=float)


def dump(values):
    """Named values as an R dump, which JAGS reads: column-major, NaN as NA."""

    def number(x):
        # repr keeps every digit; JAGS reads what C's strtod reads.
        return "NA" if np.isnan(x) else repr(int(x)) if x == int(x) and abs(x) < 1e15 else repr(float(x))

    lines = []
    for name, value in values.items():
        numbers = array(value)
        if numbers.ndim == 0:
            text = number(numbers[()])
        else:
            text = "c(" + ", ".join(number(x) for x in numbers.ravel(order="F")) + ")"
            if numbers.ndim > 1:
                text = f"structure({text}, .Dim = c({', '.join(map(str, numbers.shape))}))"
        lines.append(f'"{name}" <- {text}\n')
    return "".join(lines)


def undump(text):
    """The named arrays of an R dump (what dump() and R write; no expressions), as nested lists row-major."""
    text = re.sub(r"#[^\n]*", "", text)
    values = {}
    statement = re.compile(r"""["`']?([A-Za-z.][\w.]*)["`']?\s*(?:<-|=)\s*(?=structure|c\b|as\.|[-+.\dN])""")
    starts = [match for match in statement.finditer(text) if match.group(1) not in (".Dim", ".Dimnames")]
    for match, after in zip(starts, [*starts[1:], None]):
        body = text[match.end() : after.start() if after else len(text)]
        head, _, tail = body.partition(".Dim")
        numbers = re.findall(r"NA|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.sub(r"(?<=\d)L\b", "", head))
        numbers = np.array([np.nan if n == "NA" else float(n) for n in numbers])
        if tail:
            extents = [int(n) for n in re.findall(r"\d+", tail)]
            numbers = numbers.reshape(extents, order="F")
        elif not re.match(r"\s*(structure|c|as\.\w+\s*\(\s*c)\s*\(", head):
            numbers = numbers[0]
        values[match.group(1)] = numbers.tolist()
    return values


def load(path):
    """Data from JSON (row-major, null for NA) or, by its ending, from an R dump."""
    text = pathlib.Path(path).read_text()
    return json.loads(text) if str(path).endswith(".json") else undump(text)


def run(model, data, monitors, *, burn, iterations, thin=1, chains=1, seed=1, inits=None, modules=(), observed=False):
    """The draws of every monitored scalar, one row a chain, and the seconds JAGS took from start to end.

    As on JAGS's command line: compile, initialize, burn in (it adapts meanwhile), monitor, sample. With `observed` the data
    must leave no node to sample.
    """
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "data.R").write_text(dump(data))
        # A final comment without a newline is a syntax error to JAGS.
        (folder / "model.bug").write_text(pathlib.Path(model).read_text() + "\n")
        lines = [f"load {module}" for module in modules]
        lines += ["model in model.bug", "data in data.R", f"compile, nchains({chains})"]
        for chain in range(1, chains + 1):
            start = dump(inits or {})
            start += f'".RNG.name" <- "base::Mersenne-Twister"\n".RNG.seed" <- {1000 * seed + chain}\n'
            (folder / f"inits{chain}.R").write_text(start)
            lines.append(f"parameters in inits{chain}.R, chain({chain})")
        lines += ["initialize"] + ([f"update {burn}"] if burn else [])
        lines += [f"monitor {name}, thin({thin})" for name in monitors]
        lines += [f"update {iterations}", "coda *", "exit", ""]
        (folder / "script").write_text("\n".join(lines))
        began = time.perf_counter()
        text = call(folder)
        seconds = time.perf_counter() - began
        if not (folder / "CODAindex.txt").exists():
            raise Refused(text[-600:])
        left = re.search(r"Unobserved stochastic nodes: (\d+)", text)
        if observed and left and left.group(1) != "0":
            raise Refused(f"{left.group(1)} stochastic nodes have no value: the points lack some latents")
        return coda(folder, chains), seconds


def call(folder):
    """What JAGS printed while it ran the folder's script."""
    done = subprocess.run(["jags", "script"], cwd=folder, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    if done.returncode != 0:
        where = text.find("RROR")
        raise Refused(text[where - 10 :] if where >= 0 else text[-600:])
    return text


def extents(model, data, inits=None, modules=()):
    """The extents of every array that has unobserved stochastic elements, as JAGS lays them out."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "data.R").write_text(dump(data))
        (folder / "inits.R").write_text(dump(inits or {}))
        (folder / "model.bug").write_text(pathlib.Path(model).read_text() + "\n")
        lines = [f"load {module}" for module in modules] + ["model in model.bug", "data in data.R", "compile"]
        lines += ["parameters in inits.R"] if inits else []
        (folder / "script").write_text("\n".join([*lines, "initialize", "parameters to found.R", "exit", ""]))
        call(folder)
        found = undump((folder / "found.R").read_text())
        return {name: np.shape(value) for name, value in found.items() if not name.startswith(".")}


def coda(folder, chains):
    columns = [np.loadtxt(folder / f"CODAchain{chain}.txt", usecols=1, ndmin=1) for chain in range(1, chains + 1)]
    draws = {}
    for line in (folder / "CODAindex.txt").read_text().splitlines():
        name, first, last = re.fullmatch(r"(\S+) (\d+) (\d+)", line).groups()
        draws[name] = np.stack([column[int(first) - 1 : int(last)] for column in columns])
    return draws


def effective(chains):
    """The number of independent draws that would fix the mean as well: Geyer's initial positive sequence, chains pooled."""
    count, length = chains.shape
    within = chains.var(axis=1, ddof=1).mean()
    if within == 0:
        return float(count * length)
    total = within * (length - 1) / length + (chains.mean(axis=1).var(ddof=1) if count > 1 else 0)
    centred = chains - chains.mean(axis=1, keepdims=True)
    size = 1 << (2 * length - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, size, axis=1)[:, :length].mean(axis=0) / length
    correlation = 1 - (within - covariance * length / (length - 1)) / total
    pairs = correlation[: length // 2 * 2].reshape(-1, 2).sum(axis=1)
    pairs = pairs[: np.argmax(pairs < 0)] if (pairs < 0).any() else pairs
    pairs = np.minimum.accumulate(pairs)
    return float(count * length / max(2 * pairs.sum() - 1, 1 / np.log10(count * length)))


def split_rhat(chains):
    """How much the halves of the chains disagree; 1 where they do not."""
    half = chains.shape[1] // 2
    parts = np.concatenate([chains[:, :half], chains[:, -half:]])
    within = parts.var(axis=1, ddof=1).mean()
    if within == 0:
        return 1.0
    return float(np.sqrt((half - 1) / half + parts.mean(axis=1).var(ddof=1) / within))


def summary(chains):
    deviation, draws = float(chains.std(ddof=1)), effective(chains)
    return {
        "mean": float(chains.mean()),
        "sd": deviation,
        "mcse": deviation / np.sqrt(draws),
        "ess": draws,
        "rhat": split_rhat(chains),
    }
