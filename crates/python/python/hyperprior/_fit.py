"""From a model to its posterior."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import _progress
from ._arguments import names, number, text, whole
from ._function import Function
from ._hyperprior import Error
from ._model import Model
from ._posterior import Posterior

_CORRECT = {"none": "nothing", "weights": "weights", "moves": "moves"}
_SEED_MAX = 2**64 - 1


def fit(
    model: Model | Function,
    method: str = "auto",
    accuracy: float = 0.5,
    budget: float | None = None,
    restarts: int | None = None,
    seed: int = 1,
    draws: int = 4000,
    steps: int | None = None,
    correct: str = "moves",
    monitor: str | Sequence[str] | None = None,
    progress: bool | _progress.Tell | None = None,
    *,
    likelihood: str | None = None,
    prior: str | None = None,
    recursive: str | None = None,
    bound: str = "hierarchical",
    step_size: float | None = None,
    loo: bool = False,
    check_predictive: bool = False,
    linear_response: bool = False,
) -> Posterior:
    """Finds the posterior of a model. The same seed gives the same numbers, and those of `hyperprior fit`.

    Args:
        model: A `Model` or a `Function`.
        method: The approximation: auto, mean-field, low-rank:R, full-rank, mixture:K, flow:L, copula:R or hvm.
        accuracy: The nats of the bound that may be left.
        budget: The seconds after which fits end as they are and nothing larger is tried; the draws come on top.
        restarts: How often the approximation is fitted, from different starts.
        seed: The random seed.
        draws: How many draws of the posterior.
        steps: Optimisation steps of a fit; it ends by itself where it is not given.
        correct: What brings the approximation's draws nearer to the posterior: none, weights or moves.
        monitor: What to keep, such as `beta`, `beta[1:3]` or `["mu", "z[,2]"]`; everything where it is not given.
        progress: True, False, a function to tell, or None for a bar where somebody sees it.
        likelihood: The approximation's factors of discrete latents: usual, binomial or negative-binomial.
        prior: Its prior over their parameters: diagonal, gaussian, low-rank:R, mixture:K, copula:R, planar:L or spline:L.
        recursive: Its recursive approximation: prior, factorised, inverse-flow:L, laplace or ep.
        bound: What is climbed: hierarchical, or importance:J with J draws of the recursive approximation.
        step_size: The size of a step at the beginning, in the posterior's own units.
        loo: Foretell each observation from all others.
        check_predictive: Hold data that the model gives beside the data.
        linear_response: Add spreads by linear response; with `method="mean-field", correct="none"`.

    Raises:
        Error: What the engine says, and what to do about it.
        KeyboardInterrupt: Somebody pressed Ctrl-C.
    """
    if not isinstance(model, (Model, Function)):
        instead = "; write fit(hyperprior.Model(code, data))" if isinstance(model, str) else ""
        raise TypeError(f"model is a hyperprior.Model or a hyperprior.Function, not {model!r}{instead}")
    if correct not in _CORRECT:
        raise Error(f"correct=`{correct}` is not known; use none, weights or moves")
    if linear_response and (method != "mean-field" or correct != "none"):
        raise Error(
            "linear_response mends the spreads of mean-field, where the draws are its own: it goes with "
            'method="mean-field", correct="none"'
        )
    parts = {"likelihood": likelihood, "prior": prior, "recursive": recursive}
    settings: dict[str, Any] = {
        "method": text("method", method),
        "accuracy": number("accuracy", accuracy),
        "seed": whole("seed", seed, 0, _SEED_MAX),
        "draws": whole("draws", draws, 10),
        "correct": _CORRECT[correct],
        "parts": {name: text(name, part) for name, part in parts.items() if part is not None},
        "importance": _importance(bound),
    }
    if budget is not None:
        settings["budget"] = number("budget", budget, is_zero_allowed=True)
    if restarts is not None:
        settings["restarts"] = whole("restarts", restarts, 1, 100)
    if steps is not None:
        settings["steps"] = whole("steps", steps, 1)
    if step_size is not None:
        settings["step_size"] = number("step_size", step_size)
    tell = _progress.teller(progress)
    try:
        if isinstance(model, Function):
            if loo or check_predictive or linear_response or monitor:
                raise Error("loo, check_predictive, linear_response and monitor need a model in BUGS; a Function keeps all it has")
            found = model._function.fit(json.dumps(settings), model._start, model.name, tell)
        else:
            checks = {"loo": bool(loo), "predictive": bool(check_predictive), "linear_response": bool(linear_response)}
            found = model._program.fit(json.dumps(settings), names("monitor", monitor), checks, tell)
    finally:
        _progress.finish(tell)
    return Posterior(model, found)


def _importance(bound: str) -> int:
    kind, _, draws = text("bound", bound).partition(":")
    if kind == "hierarchical" and not draws:
        return 0
    if kind == "importance" and draws.isdigit() and 1 <= int(draws) <= 1000:
        return int(draws)
    raise Error("bound: use hierarchical, or importance:J with J from 1 to 1000")
