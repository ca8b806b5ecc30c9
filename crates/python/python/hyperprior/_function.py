"""A model defined by a Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _hyperprior
from ._data import array
from ._latents import Latent

#: The latents by name, with the draws along the first axis.
Values = dict[str, NDArray[Any]]


class Function:
    """A model as a function: log p(x, z) for many draws of the latents at once.

    ```python
    def log_joint(z):
        return -0.5 * ((z["x"] - z["k"][:, None]) ** 2).sum(axis=1)

    model = hyperprior.Function(log_joint, {"k": hyperprior.integers(0, 4), "x": hyperprior.real(3)})
    ```

    Args:
        log_joint: Takes a dict of arrays of shape `(draws, *shape)`, integers if discrete, and returns an array of `draws` log
            densities, up to a constant. Minus infinity or NaN means that a draw is impossible.
        latents: The latents by name.
        gradient: Takes the same and returns a dict of the derivatives with respect to the continuous latents, with the same shapes.
            The default is central differences: two evaluations for each number, and about ten of the sixteen digits.
        init: Starting values by name, for some of the latents.
        name: The name of the model.
    """

    def __init__(
        self,
        log_joint: Callable[[Values], Any],
        latents: Mapping[str, Latent],
        gradient: Callable[[Values], Mapping[str, Any]] | None = None,
        init: Mapping[str, Any] | None = None,
        name: str = "function",
    ) -> None:
        if not callable(log_joint):
            raise TypeError(f"log_joint must be a function, not {log_joint!r}")
        if gradient is not None and not callable(gradient):
            raise TypeError(f"gradient must be a function, not {gradient!r}")
        if not isinstance(latents, Mapping):
            raise TypeError(f"latents must be a dict from names to latents, not {latents!r}")
        for key, latent in latents.items():
            if not isinstance(key, str) or not isinstance(latent, Latent):
                raise TypeError(f"latents: {key!r} is {latent!r}; use a dict such as {{'z': hyperprior.binary(3)}}")
        self.name = name
        self.latents = dict(latents)
        self._log_joint, self._gradient = log_joint, gradient
        self._function = self._built()
        self._start = self._starting(init)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_function"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._function = self._built()

    def _built(self) -> _hyperprior.Function:
        parts = [(key, list(one.shape), one.support, one.lower, one.upper) for key, one in self.latents.items()]
        return _hyperprior.Function(parts, self._evaluate, self._derive if self._gradient is not None else None)

    def check(self, seed: int = 1) -> None:
        """Compares the gradient with central differences of the log joint, at random points.

        Raises:
            Error: They disagree; it gives the latent's name and both numbers.
        """
        self._function.check(seed)

    def _values(self, z: NDArray[np.float64]) -> Values:
        values, first = {}, 0
        for name, latent in self.latents.items():
            own = z[first : first + latent.size]
            own = own.reshape(*latent.shape, -1) if len(latent.shape) != 1 else own
            # The draws come first; not copied, since this is called very often.
            own = own.transpose(len(latent.shape), *range(len(latent.shape)))
            values[name] = own.astype(np.int64) if latent.is_discrete else own
            first += latent.size
        return values

    def _evaluate(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        found = _numbers("log_joint", self._log_joint(self._values(z)))
        if found.shape != (z.shape[1],):
            raise ValueError(
                f"log_joint returned an array of shape {found.shape} for {z.shape[1]} draws; it must be "
                f"({z.shape[1]},), one log density for each draw: sum over the axes after the first"
            )
        return found

    def _derive(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        assert self._gradient is not None
        found = self._gradient(self._values(z))
        if not isinstance(found, Mapping):
            raise TypeError(f"gradient returned {type(found).__name__}; use a dict with an array for each continuous latent")
        out, first = np.zeros(z.shape), 0
        for name, latent in self.latents.items():
            if not latent.is_discrete:
                if name not in found:
                    raise ValueError(f"gradient returned nothing for `{name}`")
                own = _numbers(f"gradient: `{name}`", found[name])
                if own.shape != (z.shape[1], *latent.shape):
                    raise ValueError(f"gradient: `{name}` has shape {own.shape}, not {(z.shape[1], *latent.shape)}")
                out[first : first + latent.size] = np.moveaxis(own, 0, -1).reshape(latent.size, z.shape[1])
            first += latent.size
        return out

    def _starting(self, init: Mapping[str, Any] | None) -> list[float | None] | None:
        if init is None:
            return None
        for name in init:
            if name not in self.latents:
                raise ValueError(f"init: there is no latent `{name}`; the latents are {', '.join(self.latents)}")
        start: list[float | None] = []
        for name, latent in self.latents.items():
            if name not in init:
                start.extend([None] * latent.size)
                continue
            own = array(name, init[name], "init")
            if own.shape != latent.shape:
                raise ValueError(f"init: `{name}` has shape {own.shape}, not {latent.shape}")
            start.extend(None if np.isnan(x) else float(x) for x in own.ravel())
        return start

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}{list(one.shape) or ''}: {one.support}" for name, one in self.latents.items())
        return f"<hyperprior.Function {self.name}: {parts}>"


def _numbers(whose: str, found: Any) -> NDArray[np.float64]:
    out = np.asarray(found)
    if out.dtype.kind not in "biuf":
        raise TypeError(f"{whose} returned an array of dtype {out.dtype}; it must return real numbers")
    return np.asarray(out, dtype=np.float64, order="C")
