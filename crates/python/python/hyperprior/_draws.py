"""Draws by name, as views of one block of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Draws(Mapping[str, "NDArray[Any]"]):
    """Arrays by name, each of shape `(draws, *shape)`.

    Continuous ones are views of the engine's memory; discrete ones are converted to integers when first accessed. Element `[i, j]`
    of the model is at `[:, i - 1, j - 1]`. A partly observed array has the shape of the data, with the observed values filled in;
    elements that were neither drawn nor observed are NaN.
    """

    def __init__(
        self,
        values: NDArray[np.float64],
        names: list[str],
        discrete: list[bool],
        observed: Mapping[str, NDArray[np.float64]] | None = None,
    ) -> None:
        values.flags.writeable = False
        #: All draws, a row for each scalar.
        self.block = values
        #: The scalars' names.
        self.names = names
        self.discrete = discrete
        self._rows = {name: row for row, name in enumerate(names)}
        self._arrays: dict[str, list[tuple[tuple[int, ...], int]]] = {}
        for row, name in enumerate(names):
            array, indices = _parse(name)
            self._arrays.setdefault(array, []).append((indices, row))
        self._observed = dict(observed or {})
        self._made: dict[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self._arrays)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def is_discrete(self, name: str) -> bool:
        """Whether its values are integers."""
        return all(self.discrete[row] for _, row in self._arrays[name])

    def _make(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            if name in self._rows:
                row = self._rows[name]
                return self._typed(self.block[row], self.discrete[row])
            raise KeyError(f"there are no draws of `{name}`, only of {', '.join(self._arrays)}")
        elements = self._arrays[name]
        rows = [row for _, row in elements]
        shape = _box([indices for indices, _ in elements])
        known = self._observed.get(name)
        if shape is not None and (known is None or known.shape == shape):
            is_block = rows == list(range(rows[0], rows[0] + len(rows)))
            own = self.block[rows[0] : rows[0] + len(rows)] if is_block else self.block[rows]
            own = np.moveaxis(own.reshape(*shape, own.shape[1]), -1, 0)
            return self._typed(own, self.is_discrete(name))
        # Some elements were not drawn.
        most = known.shape if known is not None else tuple(int(n) for n in np.max([i for i, _ in elements], axis=0))
        whole = np.empty((self.block.shape[1], *most))
        whole[:] = np.nan if known is None else known
        for indices, row in elements:
            place: tuple[Any, ...] = (slice(None), *(i - 1 for i in indices))
            whole[place] = self.block[row]
        is_discrete = self.is_discrete(name) and bool(np.isfinite(whole).all())
        whole.flags.writeable = False
        return self._typed(whole, is_discrete)

    def __repr__(self) -> str:
        return f"<hyperprior draws: {', '.join(f'{name} {self[name].shape}' for name in self)}>"

    def _typed(self, own: NDArray[np.float64], is_discrete: bool) -> NDArray[Any]:
        if not is_discrete:
            return own
        made = own.astype(np.int64)
        made.flags.writeable = False
        return made


def _parse(name: str) -> tuple[str, tuple[int, ...]]:
    array, bracket, rest = name.partition("[")
    return (array, tuple(int(i) for i in rest[:-1].split(","))) if bracket else (name, ())


def _box(indices: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape of the array with exactly these elements, the last index fastest; None if some are missing."""
    if indices == [()]:
        return ()
    shape = indices[-1]
    if any(len(one) != len(shape) for one in indices) or int(np.prod(shape)) != len(indices):
        return None
    expected = np.stack(np.unravel_index(np.arange(len(indices)), shape), axis=1) + 1
    return shape if np.array_equal(expected, np.array(indices)) else None
