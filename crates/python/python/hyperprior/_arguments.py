"""Arguments as people give them, checked by name."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from ._hyperprior import Error


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number within its ends."""
    try:
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if found < least or (most is not None and found > most):
        ends = f"{least} or more" if most is None else f"from {least} to {most}"
        raise Error(f"{name}={found}: write a whole number, {ends}")
    return found


def number(name: str, value: Any, is_zero_allowed: bool = False) -> float:
    """A number above zero, or from zero."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is a number, not {value!r}") from None
    if not math.isfinite(found) or found < 0.0 or (found == 0.0 and not is_zero_allowed):
        raise Error(f"{name}={found:g}: write a number {'0 or more' if is_zero_allowed else 'above 0'}")
    return found


def text(name: str, value: Any) -> str:
    """A word."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is text, not {value!r}")
    return value


def among(name: str, value: Any, known: Iterable[str]) -> str:
    """One of some words."""
    found = text(name, value)
    if found not in known:
        raise Error(f"{name}=`{found}` is not known; use {', '.join(known)}")
    return found


def names(name: str, value: Any) -> str:
    """Names, as one text with commas or one by one."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, Iterable):
        return ",".join(text(name, one) for one in value)
    raise TypeError(f"{name} is a name or a list of them, not {value!r}")
