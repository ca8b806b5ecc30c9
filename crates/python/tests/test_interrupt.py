"""Ctrl-C stops work promptly with a KeyboardInterrupt, and the interpreter keeps running."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT

# Processes started by a shell in the background ignore SIGINT by default.
LISTEN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
FIT = """
import json, hyperprior
model = hyperprior.Model(open("examples/coal/model.bug").read(), json.load(open("examples/coal/data.json")))
print("started", flush=True)
work = lambda: hyperprior.fit(model, method="flow:8", steps=10_000_000)
"""
FUNCTION = """
import hyperprior
model = hyperprior.Function(lambda z: -0.5 * (z["x"] ** 2).sum(axis=1), {"x": hyperprior.real(20), "k": hyperprior.binary(5)})
print("started", flush=True)
work = lambda: hyperprior.fit(model, method="hvm", steps=10_000_000)
"""
TOPICS = """
import hyperprior
counts = hyperprior.bible().tocsr()
print("started", flush=True)
work = lambda: hyperprior.DEF(epochs=1_000_000).fit(counts)
"""
END = """
try:
    work()
except KeyboardInterrupt:
    small = hyperprior.Model("model { t ~ dbeta(1, 1) y ~ dbin(t, 10) }", {"y": 7})
    print("interrupted, still running", hyperprior.fit(small, draws=50).draws("t").shape, flush=True)
"""


@pytest.mark.parametrize("begin", [FIT, FUNCTION, TOPICS], ids=["fit", "function", "topics"])
def test_ctrl_c_is_a_keyboard_interrupt(begin: str) -> None:
    code = LISTEN + begin + END
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "started\n"
    time.sleep(3)
    assert child.poll() is None, "it ended before it was interrupted"
    os.kill(child.pid, signal.SIGINT)
    try:
        rest, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert rest == "interrupted, still running (50,)\n"


def test_the_interpreter_is_free_during_a_fit() -> None:
    """Another thread runs during a fit; it would not if the fit held the GIL."""
    import threading

    import hyperprior

    model = hyperprior.Model("model { for (i in 1:50) { x[i] ~ dnorm(0, 1) } y ~ dnorm(sum(x[]), 1) }", {"y": 3.0})
    ticks, done = [], threading.Event()

    def tick() -> None:
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    began = time.monotonic()
    thread.start()
    # By default the latents would be integrated out in a few milliseconds.
    hyperprior.fit(model, method="full-rank", draws=1000)
    took = time.monotonic() - began
    done.set()
    thread.join()
    assert len(ticks) > 5 and max(gaps(ticks)) < max(1.0, 0.5 * took)


def gaps(times: list[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise(times)]
