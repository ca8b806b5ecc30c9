"""Base classes of an estimator, with substitutes if scikit-learn is not installed, and its input checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data

    HAS_SKLEARN = True
except ImportError:
    HAS_SKLEARN = False

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters named after the constructor's arguments."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Returns the parameters."""
            return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

        def set_params(self, **params: Any) -> Any:
            """Sets some of the parameters."""
            for name, value in params.items():
                if name not in self.get_params():
                    raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}")
                setattr(self, name, value)
            return self

    class TransformerMixin:  # type: ignore[no-redef]
        """Fits and transforms in one call."""

        def fit_transform(self, X: Any, y: Any = None) -> Any:
            """Fits to X and transforms it."""
            return self.fit(X, y).transform(X)  # type: ignore[attr-defined]

    class ClassNamePrefixFeaturesOutMixin:  # type: ignore[no-redef]
        """Names of the output features."""

        def get_feature_names_out(self, input_features: Any = None) -> Any:
            """The class name followed by a number."""
            prefix = type(self).__name__.lower()
            return np.asarray([f"{prefix}{i}" for i in range(self._n_features_out)], dtype=object)  # type: ignore[attr-defined]


__all__ = ["BaseEstimator", "ClassNamePrefixFeaturesOutMixin", "Rows", "TransformerMixin", "must_be_fitted", "rows"]

#: Where each row starts, the columns, and the counts.
Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]

#: The largest count: up to here every integer is exact in the engine's single precision.
_COUNT_MAX = 2**24


def must_be_fitted(estimator: Any) -> None:
    """Raises an error if `fit` was not called."""
    if HAS_SKLEARN:
        check_is_fitted(estimator)
    elif not hasattr(estimator, "components_"):
        raise AttributeError(f"this {type(estimator).__name__} is not fitted yet; call fit first")


def rows(estimator: Any, X: Any, reset: bool, convert: Callable[[NDArray[Any]], NDArray[Any]] = lambda counts: counts) -> Rows:
    """Checked counts in compressed sparse rows. With `reset`, later input must have the same columns. `convert` turns other numbers
    into counts."""
    if HAS_SKLEARN:
        X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_min_features=1)
    elif not hasattr(X, "tocsr"):
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions; use a matrix with a row for each document and a column for each term")
    if not HAS_SKLEARN:
        if reset:
            estimator.n_features_in_ = X.shape[1]
        elif X.shape[1] != estimator.n_features_in_:
            name = type(estimator).__name__
            raise ValueError(f"X has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features as input")
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        starts, terms, counts = X.indptr, X.indices, X.data
    else:
        places = np.nonzero(X)
        terms, counts = places[1], X[places]
        starts = np.concatenate([[0], np.cumsum(np.bincount(places[0], minlength=X.shape[0]))])
    return _checked(np.asarray(starts, np.int64), np.asarray(terms, np.int64), convert(counts), type(estimator).__name__)


def _checked(starts: NDArray[np.int64], terms: NDArray[np.int64], counts: NDArray[Any], name: str) -> Rows:
    if counts.dtype.kind not in "biuf":
        raise TypeError(f"X has dtype {counts.dtype}; counts must be integers")
    numbers = np.ascontiguousarray(counts, dtype=np.float64)
    if (numbers < 0).any():
        raise ValueError(f"Negative values in data passed to {name}: counts must be 0 or more")
    if not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
        wrong = numbers[~np.isfinite(numbers) | (numbers != np.floor(numbers))][0]
        raise ValueError(f"X has {wrong:g}, which is not a count: {name} takes integers, such as the output of CountVectorizer")
    if (numbers > _COUNT_MAX).any():
        raise ValueError(f"X has a count of {numbers.max():g}; the largest is {_COUNT_MAX}")
    # Sparse matrices may store zeros.
    kept = numbers > 0
    if not kept.all():
        before = np.concatenate([[0], np.cumsum(kept)])
        starts, terms, numbers = before[starts], terms[kept], numbers[kept]
    return np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(terms, np.int64), np.ascontiguousarray(numbers)
