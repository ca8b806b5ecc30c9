"""Export to ArviZ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._draws import Draws
from ._model import Model
from ._version import __version__


def to_arviz(
    draws: Draws,
    diagnostics: dict[str, Any],
    log_density: NDArray[np.float64] | None,
    log_likelihood: Draws | None,
    model: Model | None,
) -> Any:
    """Posterior and sample statistics, with the log likelihood and the data if available."""
    try:
        import arviz
    except ImportError:
        raise ImportError("to_arviz() needs ArviZ 0.23 or newer; pip install 'hyperprior[arviz]'") from None
    groups: dict[str, dict[str, Any]] = {"posterior": {name: draws[name][None] for name in draws}}
    len_ = draws.block.shape[1]
    # Statistics of the whole fit are repeated for every draw.
    stats = {
        "khat": diagnostics["khat"],
        "elbo": diagnostics["elbo"]["value"],
        "log_evidence": diagnostics["evidence"]["log"],
    }
    groups["sample_stats"] = {name: np.full((1, len_), x) for name, x in stats.items() if x is not None}
    if log_density is not None:
        groups["sample_stats"]["lp"] = log_density[None]
    if log_likelihood is not None:
        groups["log_likelihood"] = {name: x[None] for name, x in log_likelihood.items()}
    if model is not None:
        observed = model.observed
        groups["observed_data"] = {name: x for name, x in model.data.items() if name in observed}
        groups["constant_data"] = {name: x for name, x in model.data.items() if name not in observed}
    from_dict: Any = arviz.from_dict
    # Elements are counted from 1, as in the model. Since ArviZ 1.0, from_dict takes one dict of groups and returns a tree.
    is_old = arviz.__version__.startswith("0.")
    found = from_dict(**groups, index_origin=1) if is_old else from_dict(groups, index_origin=1)
    attributes = {
        "inference_library": "hyperprior",
        "inference_library_version": __version__,
        "verdict": str(diagnostics["verdict"]),
        "method": diagnostics["method"],
        "seed": diagnostics["seed"],
    }
    for group in ("posterior", "sample_stats"):
        found[group].attrs.update(attributes)
    return found
