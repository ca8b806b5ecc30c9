"""Posteriors over discrete and continuous hidden variables that keep the dependence between them.

`Model` is a model in BUGS with its data, `Function` one that is a function of Python; `fit` finds the posterior of either.
`DEF` is a deep exponential family for counts of words, by scikit-learn's conventions.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from ._corpus import Counts, bible
from ._fit import fit
from ._function import Function
from ._hyperprior import Error
from ._latents import Latent, binary, counts, integers, positive, real, unit_interval
from ._model import Model
from ._posterior import Posterior, Prediction

if TYPE_CHECKING:
    from ._def import DEF

try:
    __version__ = version("hyperprior")
except PackageNotFoundError:  # run from a folder that was never installed
    __version__ = "0"

__all__ = [
    "DEF",
    "Counts",
    "Error",
    "Function",
    "Latent",
    "Model",
    "Posterior",
    "Prediction",
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
    # scikit-learn takes a second to import, and only this needs it.
    if name == "DEF":
        from ._def import DEF

        return DEF
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
