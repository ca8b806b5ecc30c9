"""Posteriors of discrete and continuous latent variables that keep their dependence.

`Model` is a model in BUGS with its data, `Function` a model defined by a Python function; `fit` fits either.
`DEF` is a deep exponential family for word counts, with the interface of a scikit-learn estimator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._corpus import Counts, bible
from ._fit import fit
from ._function import Function
from ._hyperprior import Error
from ._latents import Latent, binary, counts, integers, positive, real, unit_interval
from ._model import Model
from ._posterior import Posterior, Prediction
from ._version import __version__

if TYPE_CHECKING:
    from ._def import DEF

__all__ = [
    "DEF",
    "Counts",
    "Error",
    "Function",
    "Latent",
    "Model",
    "Posterior",
    "Prediction",
    "__version__",
    "bible",
    "binary",
    "counts",
    "fit",
    "integers",
    "positive",
    "real",
    "unit_interval",
]


def __getattr__(name: str) -> Any:
    # Importing scikit-learn takes a second, and only DEF needs it.
    if name == "DEF":
        from ._def import DEF

        return DEF
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
