"""Draws as ArviZ takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._model import Model

if TYPE_CHECKING:
    from ._posterior import Posterior


def to_arviz(posterior: Posterior) -> Any:
    """Posterior, sample statistics, and the log likelihood and the data where there are any."""
    try:
        import arviz
    except ImportError:
        raise ImportError("to_arviz() needs ArviZ 0.23 or newer; pip install 'hyperprior[arviz]'") from None
    draws = posterior.draws()
    groups: dict[str, dict[str, Any]] = {"posterior": {name: draws[name][None] for name in draws}}
    told = posterior.diagnostics
    len_ = draws.block.shape[1]
    # Numbers of the whole fit are the same for every draw.
    stats = {"khat": told["khat"], "elbo": told["elbo"]["value"], "log_evidence": told["evidence"]["log"]}
    groups["sample_stats"] = {name: np.full((1, len_), x) for name, x in stats.items() if x is not None}
    if posterior.log_density is not None:
        groups["sample_stats"]["lp"] = posterior.log_density[None]
    if posterior.log_likelihood is not None:
        groups["log_likelihood"] = {name: x[None] for name, x in posterior.log_likelihood.items()}
    if isinstance(posterior.model, Model):
        observed = posterior.model.observed
        groups["observed_data"] = {name: x for name, x in posterior.model.data.items() if name in observed}
        groups["constant_data"] = {name: x for name, x in posterior.model.data.items() if name not in observed}
    from_dict: Any = arviz.from_dict
    # Elements are counted from 1, as in the model. From 1.0 on groups are one dict, and the result is a tree.
    is_old = arviz.__version__.startswith("0.")
    found = from_dict(**groups, index_origin=1) if is_old else from_dict(groups, index_origin=1)
    from . import __version__

    of_all = {"inference_library": "hyperprior", "inference_library_version": __version__, "verdict": posterior.verdict}
    for group in ("posterior", "sample_stats"):
        found[group].attrs.update(of_all | {"method": told["method"], "seed": told["seed"]})
    return found
