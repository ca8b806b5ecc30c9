"""The latents of a function: their shapes and supports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._arguments import whole

Shape = "int | tuple[int, ...]"


@dataclass(frozen=True)
class Latent:
    """An array of latents with the same support, from `binary`, `counts`, `integers`, `real`, `positive` or `unit_interval`."""

    support: str
    shape: tuple[int, ...]
    lower: float = 0.0
    upper: float = 0.0

    @property
    def is_discrete(self) -> bool:
        """Whether the values are integers."""
        return self.support in ("integers", "counts")

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for length in self.shape:
            size *= length
        return size


def binary(shape: Any = ()) -> Latent:
    """Zero or one."""
    return Latent("integers", _shape(shape), 0.0, 1.0)


def integers(lower: int, upper: int, shape: Any = ()) -> Latent:
    """Integers from `lower` to `upper`, inclusive."""
    least, most = whole("lower", lower, -(2**53), 2**53), whole("upper", upper, -(2**53), 2**53)
    return Latent("integers", _shape(shape), float(least), float(most))


def counts(shape: Any = ()) -> Latent:
    """Integers from zero up."""
    return Latent("counts", _shape(shape))


def real(shape: Any = ()) -> Latent:
    """Real numbers."""
    return Latent("real", _shape(shape))


def positive(shape: Any = ()) -> Latent:
    """Numbers above zero."""
    return Latent("positive", _shape(shape))


def unit_interval(shape: Any = ()) -> Latent:
    """Numbers between zero and one."""
    return Latent("unit", _shape(shape))


def _shape(shape: Any) -> tuple[int, ...]:
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(whole("shape", length, 1) for length in lengths)
