"""Numbers as people have them, made into arrays that a model can take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Above this, neighbouring whole numbers are the same double.
_WHOLE_MAX = 2**53


def arrays(given: Mapping[str, Any] | None, whose: str) -> dict[str, NDArray[np.float64]]:
    """Every array of `data` or `init`; NaN where a value is missing."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{whose} is a dict of names and numbers, not {_kind(given)}")
    return {_name(name, whose): array(name, value, whose) for name, value in given.items()}


def array(name: str, value: Any, whose: str) -> NDArray[np.float64]:
    """One of them."""
    where = f"{whose}: `{name}`"
    mask = np.ma.getmaskarray(value) if isinstance(value, np.ma.MaskedArray) else None
    try:
        found = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{where} is no array: its rows differ in length; fill them up with NaN") from error
    if found.dtype == object:
        found = _of_objects(found, where)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{where} has {_dtype(found)}; numbers are needed, with NaN or None where one is missing")
    if found.dtype.kind in "iu" and found.size and max(abs(int(found.max())), abs(int(found.min()))) > _WHOLE_MAX:
        raise ValueError(f"{where} has a whole number above 2**53, which a double cannot hold")
    out = np.array(found, dtype=np.float64, order="C")
    if mask is not None:
        out[mask] = np.nan
    if out.size == 0:
        raise ValueError(f"{where} has shape {out.shape}, so it holds nothing; leave it out")
    if np.isinf(out).any():
        raise ValueError(f"{where} has an infinite value; use NaN where a value is missing")
    return out


def _of_objects(found: NDArray[Any], where: str) -> NDArray[np.float64]:
    out = np.empty(found.shape)
    for place, value in np.ndenumerate(found):
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            out[place] = np.nan
        elif isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
            out[place] = value
        elif isinstance(value, (list, tuple, np.ndarray)):
            raise ValueError(f"{where} is no array: its rows differ in length; fill them up with NaN")
        else:
            raise TypeError(f"{where} has {value!r}, {_kind(value)}; numbers are needed, with NaN or None where one is missing")
    return out


def _name(name: Any, whose: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{whose}: names are strings, not {_kind(name)} such as {name!r}")
    return name


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"


def _dtype(found: NDArray[Any]) -> str:
    return "text" if found.dtype.kind in "US" else f"values of dtype {found.dtype}"
