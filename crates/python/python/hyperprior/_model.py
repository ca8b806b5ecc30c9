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
        data: Its data by name: numbers, lists or arrays of any real dtype. NaN, None and masked values are missing.
        init: Starting values by name, for some of the latents.
        dialect: Whose reading of the language to follow where two exist: `jags` or `openbugs`.
        eliminate: Which discrete latents are summed out exactly: `auto`, `none`, or names.

    Raises:
        Error: The model cannot be compiled; what is wrong is drawn over its text.
        TypeError: Something in the data is no number.
        ValueError: An array in the data has no shape that can be used.
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
            # The file's name, or its folder's where the file's says nothing.
            name = path.parent.name if path.stem == "model" and path.parent.name else path.stem
            code = path.read_text(encoding="utf-8")
        self.code: str = text("code", code)
        if "{" not in self.code:
            raise Error(f"{self.code!r} is no model: `model {{ ... }}` is. For a file give its pathlib.Path")
        self._how = (text("dialect", dialect), names("eliminate", eliminate) or "auto")
        #: The data as they were understood.
        self.data = arrays(data, "data")
        self._start = arrays(init, "init") if init is not None else None
        self.name = name
        self._program = self._compiled()
        if self._program.drawn:
            warnings.warn(self._program.drawn, stacklevel=2)

    def _compiled(self) -> Program:
        return Program(self.code, self.name, self.data, self._start, *self._how)

    def with_data(self, data: Mapping[str, Any]) -> Model:
        """The same model with other data, and without starting values."""
        other = Model.__new__(Model)
        changed = {"data": arrays(data, "data"), "_start": None, "_how": (self._how[0], "auto")}
        other.__setstate__(self.__getstate__() | changed)
        return other

    def __getstate__(self) -> dict[str, Any]:
        # What was compiled is compiled again.
        return {key: value for key, value in self.__dict__.items() if key != "_program"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._program = self._compiled()

    @property
    def observed(self) -> list[str]:
        """The names in the data that have a law in the model, as `y`."""
        return list(dict.fromkeys(name.partition("[")[0] for name in self._program.observed_names()))

    @property
    def latents(self) -> list[str]:
        """The latents in few words, such as `z[1:150]`."""
        return self._program.latents()

    def __repr__(self) -> str:
        return f"<hyperprior.Model {self.name}: {self._program.observed()} observed numbers; latents {', '.join(self.latents)}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])}</p><pre>{escape(self.code)}</pre>"
