"""The compiled half of the package."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Progress = Callable[[str, int, int, float | None], None] | None
_Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]

SIZE_MAX: int

class Error(ValueError): ...

class Program:
    drawn: str
    @property
    def warnings(self) -> list[str]: ...
    def __new__(
        cls,
        source: str,
        name: str,
        data: Mapping[str, NDArray[np.float64]],
        init: Mapping[str, NDArray[np.float64]] | None,
        dialect: str,
        eliminated: str,
    ) -> Program: ...
    def latents(self) -> list[str]: ...
    def observed(self) -> int: ...
    def observed_names(self) -> list[str]: ...
    def fit(self, settings_json: str, monitor: str, checks: Mapping[str, bool], progress: _Progress) -> dict[str, Any]: ...
    def predict(
        self,
        new: Program,
        saved: tuple[NDArray[np.float64], list[str]],
        named: tuple[str | None, str | None],
        size_and_seed: tuple[int | None, int],
    ) -> dict[str, Any]: ...

class Function:
    def __new__(
        cls,
        latents: list[tuple[str, list[int], str, float, float]],
        log_joint: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        gradient: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None,
    ) -> Function: ...
    def fit(self, settings_json: str, init: list[float | None] | None, name: str, progress: _Progress) -> dict[str, Any]: ...
    def check(self, seed: int) -> None: ...

class Trained:
    topics: str
    history: list[float]
    elbo: float
    def __new__(cls, saved: bytes, topics: str, history: list[float], elbo: float) -> Trained: ...
    @staticmethod
    def fit(rows: _Rows, vocabulary: list[str], settings_json: str, progress: _Progress) -> Trained: ...
    def model(self) -> bytes: ...
    def weights(self, layer: int) -> NDArray[np.float64]: ...
    def infer(
        self, rows: _Rows, steps: int, seed: int, progress: _Progress
    ) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]: ...
    def heldout(self, rows: _Rows, hide: str, seed: int, progress: _Progress) -> dict[str, float]: ...

def bible() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], list[str], list[str]]: ...
def split(rows: _Rows, vocabulary: list[str], share: float, seed: int) -> tuple[list[int], list[int], float]: ...
