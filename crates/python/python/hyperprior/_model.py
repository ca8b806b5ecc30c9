"""A model in BUGS with its data."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from ._arguments import names, text
from ._data import arrays
from ._hyperprior import Error, Program


class Model:
    """A model in BUGS, compiled with its data.

    ```python
    model = hyperprior.Model("model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }", {"y": 7})
    ```

    Args:
        code: The model's text, or the path of its file.
        data: The data by name: numbers, lists or arrays of any real dtype. NaN, None and masked values are missing.
        init: Starting values by name, for some of the latents.
        dialect: The dialect of the language, where they differ: `jags` or `openbugs`.
        eliminate: Which discrete latents to marginalise exactly: `auto`, `none`, or names.

    Raises:
        Error: The model cannot be compiled; the message marks the place in its text.
        TypeError: The data contain something other than numbers.
        ValueError: An array in the data is empty or ragged, or has an infinite value.
    """

    def __init__(
        self,
        code: str | os.PathLike[str],
        data: Mapping[str, Any] | None = None,
        init: Mapping[str, Any] | None = None,
        dialect: str = "jags",
        eliminate: str | list[str] = "auto",
    ) -> None:
        name = "model"
        if isinstance(code, os.PathLike):
            path = Path(code)
            # The file's name, or its folder's for a file called `model`.
            name = path.parent.name if path.stem == "model" and path.parent.name else path.stem
            code = path.read_text(encoding="utf-8")
        self.code: str = text("code", code)
        if "{" not in self.code:
            raise Error(f"{self.code!r} is not a model: write `model {{ ... }}`, or give the pathlib.Path of a file")
        self._options = (text("dialect", dialect), names("eliminate", eliminate) or "auto")
        #: The data as arrays of floats.
        self.data = arrays(data, "data")
        self._start = arrays(init, "init") if init is not None else None
        self.name = name
        self._program = self._compiled()
        if self._program.drawn:
            warnings.warn(self._program.drawn, stacklevel=2)

    def _compiled(self) -> Program:
        return Program(self.code, self.name, self.data, self._start, *self._options)

    def with_data(self, data: Mapping[str, Any]) -> Model:
        """The same model with other data and no starting values."""
        other = Model.__new__(Model)
        changed = {"data": arrays(data, "data"), "_start": None, "_options": (self._options[0], "auto")}
        other.__setstate__(self.__getstate__() | changed)
        return other

    def __getstate__(self) -> dict[str, Any]:
        # The compiled program is not pickled but compiled again.
        return {key: value for key, value in self.__dict__.items() if key != "_program"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._program = self._compiled()

    @property
    def observed(self) -> list[str]:
        """The names in the data that the model gives a distribution, such as `y`."""
        return list(dict.fromkeys(name.partition("[")[0] for name in self._program.observed_names()))

    @property
    def latents(self) -> list[str]:
        """The latents as ranges, such as `z[1:150]`."""
        return self._program.latents()

    def __repr__(self) -> str:
        return f"<hyperprior.Model {self.name}: {self._program.observed()} observed values; latents {', '.join(self.latents)}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])}</p><pre>{escape(self.code)}</pre>"
