"""Checks of arguments, with errors that name them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from ._hyperprior import Error


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """An integer between bounds."""
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if found < least or (most is not None and found > most):
        bounds = f"{least} or more" if most is None else f"from {least} to {most}"
        raise Error(f"{name}={found}: use an integer, {bounds}")
    return found


def number(name: str, value: Any, is_zero_allowed: bool = False) -> float:
    """A positive number, or zero if allowed."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}") from None
    if not math.isfinite(found) or found < 0.0 or (found == 0.0 and not is_zero_allowed):
        raise Error(f"{name}={found:g}: use a number, {'0 or more' if is_zero_allowed else 'above 0'}")
    return found


def text(name: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {value!r}")
    return value


def among(name: str, value: Any, known: Iterable[str]) -> str:
    """One of the known words."""
    found = text(name, value)
    if found not in known:
        raise Error(f"{name}=`{found}` is not known; use {', '.join(known)}")
    return found


def names(name: str, value: Any) -> str:
    """A list of names, or a string with commas between them, as a string."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, Iterable):
        return ",".join(text(name, one) for one in value)
    raise TypeError(f"{name} must be a name or a list of names, not {value!r}")
