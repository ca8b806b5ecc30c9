"""Fits a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from . import _progress
from ._arguments import names, number, text, whole
from ._function import Function
from ._hyperprior import SIZE_MAX, Error
from ._model import Model
from ._posterior import Posterior

_CORRECT = {
    "none": "none",
    "resample": "resample",
    "resample-move": "resample-move",
    # Earlier names.
    "weights": "resample",
    "moves": "resample-move",
}
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
    correct: str = "resample-move",
    monitor: str | Sequence[str] | None = None,
    progress: bool | _progress.Callback | None = None,
    *,
    likelihood: str | None = None,
    prior: str | None = None,
    recursive: str | None = None,
    bound: str | None = None,
    estimator: str | None = None,
    optimizer: str | None = None,
    step_size: float | None = None,
    loo: bool = False,
    ppc: bool = False,
    linear_response: bool = False,
) -> Posterior:
    """Fits a model. The same seed gives the same numbers as `hyperprior fit`.

    Args:
        model: A `Model` or a `Function`.
        method: The approximation: auto, mean-field, low-rank:R, full-rank, mixture:K, flow:L, copula:R, hvm or nuts.
        accuracy: ELBO tolerance, in nats, for stopping and for enlarging the approximation.
        budget: Time budget of the fits, in seconds; the draws take additional time.
        restarts: Number of fits from different starts.
        seed: The random seed.
        draws: Number of posterior draws.
        steps: Optimisation steps of a fit; by default it runs until it converges.
        correct: Correction of the approximation's draws: none, resample (importance resampling) or resample-move (and MCMC moves).
        monitor: Quantities to save, such as `beta`, `beta[1:3]` or `["mu", "z[,2]"]`; by default all of them.
        progress: True, False, a function to call, or None for a progress bar in a terminal or notebook.
        likelihood: Likelihood q(z | λ) of discrete latents: usual, binomial or negative-binomial.
        prior: Variational prior q(λ): diagonal, gaussian, low-rank:R, mixture:K, copula:R, planar:L, coupling:L, spline:L,
            atoms:K, switches:S, levels:U or gaussian-process:M.
        recursive: Recursive approximation r(λ | z): prior, factorised, inverse-flow:L, laplace, ep, exact or levels.
        bound: Objective: hierarchical, importance:J with J draws of the recursive approximation, or annealed:K, which maximises the
            hierarchical bound and reports one with K temperatures (discrete latents); by default importance:8 for ep, otherwise
            hierarchical.
        estimator: Gradient along discrete latents: automatic, score, local-expectation, difference (Poisson factors) or disarm
            (Bernoulli factors).
        optimizer: adam, or rms-prop-nesterov as in the paper.
        step_size: Initial step size, in whitened coordinates.
        loo: Leave-one-out cross-validation (PSIS-LOO) and WAIC.
        ppc: Posterior predictive check.
        linear_response: Correct the spreads of mean-field by linear response; needs `method="mean-field", correct="none"`.

    Raises:
        Error: The model cannot be fitted, or a setting is invalid.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    if not isinstance(model, (Model, Function)):
        instead = "; write fit(hyperprior.Model(code, data))" if isinstance(model, str) else ""
        raise TypeError(f"model must be a hyperprior.Model or a hyperprior.Function, not {model!r}{instead}")
    if correct not in _CORRECT:
        raise Error(f"correct=`{correct}` is not known; use none, resample or resample-move")
    if linear_response and (method != "mean-field" or correct != "none"):
        raise Error(
            "linear_response corrects the spreads of an uncorrected mean-field fit: use it with "
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
    }
    if bound is not None:
        settings |= _bound(bound)
    named = {"estimator": estimator, "optimizer": optimizer}
    settings |= {name: text(name, value) for name, value in named.items() if value is not None}
    if budget is not None:
        settings["budget"] = number("budget", budget, is_zero_allowed=True)
    if restarts is not None:
        settings["restarts"] = whole("restarts", restarts, 1, 100)
    if steps is not None:
        settings["steps"] = whole("steps", steps, 1)
    if step_size is not None:
        settings["step_size"] = number("step_size", step_size)
    report = _progress.callback(progress)
    try:
        if isinstance(model, Function):
            if loo or ppc or linear_response or monitor:
                raise Error("loo, ppc, linear_response and monitor need a model in BUGS; a Function saves all its latents")
            found = model._function.fit(json.dumps(settings), model._start, model.name, report)
        else:
            checks = {"loo": bool(loo), "ppc": bool(ppc), "linear_response": bool(linear_response)}
            found = model._program.fit(json.dumps(settings), names("monitor", monitor), checks, report)
    finally:
        _progress.finish(report)
    return Posterior(model, found)


def _bound(bound: str) -> dict[str, int]:
    kind, _, size = text("bound", bound).partition(":")
    if kind == "hierarchical" and not size:
        return {"importance": 0}
    if kind in ("importance", "annealed") and size.isdigit() and 1 <= int(size) <= SIZE_MAX:
        return {"importance": 0, kind: int(size)}
    raise Error(f"bound: use hierarchical, importance:J or annealed:K, with J and K from 1 to {SIZE_MAX}")
