"""Converts data and starting values to arrays of floats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Above this, floats do not represent every integer.
_INTEGER_MAX = 2**53


def arrays(given: Mapping[str, Any] | None, whose: str) -> dict[str, NDArray[np.float64]]:
    """The arrays of `data` or `init`; missing values are NaN."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{whose} must be a dict from names to numbers, not {_kind(given)}")
    return {_name(name, whose): array(name, value, whose) for name, value in given.items()}


def array(name: str, value: Any, whose: str) -> NDArray[np.float64]:
    """One array of `data` or `init`."""
    where = f"{whose}: `{name}`"
    mask = np.ma.getmaskarray(value) if isinstance(value, np.ma.MaskedArray) else None
    try:
        found = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{where} is not an array: its rows differ in length; pad them with NaN") from error
    if found.dtype == object:
        found = _of_objects(found, where)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{where} has {_dtype(found)}; use numbers, and NaN or None for missing values")
    if found.dtype.kind in "iu" and found.size and max(abs(int(found.max())), abs(int(found.min()))) > _INTEGER_MAX:
        raise ValueError(f"{where} has an integer above 2**53, which a float cannot represent exactly")
    out = np.array(found, dtype=np.float64, order="C")
    if mask is not None:
        out[mask] = np.nan
    if out.size == 0:
        raise ValueError(f"{where} has shape {out.shape}, so it is empty; leave it out")
    if np.isinf(out).any():
        raise ValueError(f"{where} has an infinite value; use NaN for missing values")
    return out


def _of_objects(found: NDArray[Any], where: str) -> NDArray[np.float64]:
    out = np.empty(found.shape)
    for place, value in np.ndenumerate(found):
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            out[place] = np.nan
        elif isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
            out[place] = value
        elif isinstance(value, (list, tuple, np.ndarray)):
            raise ValueError(f"{where} is not an array: its rows differ in length; pad them with NaN")
        else:
            raise TypeError(f"{where} has {value!r}, {_kind(value)}; use numbers, and NaN or None for missing values")
    return out


def _name(name: Any, whose: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{whose}: names must be strings, not {_kind(name)} such as {name!r}")
    return name


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _dtype(found: NDArray[Any]) -> str:
    return "text" if found.dtype.kind in "US" else f"values of dtype {found.dtype}"
