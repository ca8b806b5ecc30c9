"""Data of every dtype, and the errors for invalid data."""

from __future__ import annotations

import numpy as np
import pytest

import hyperprior

MODEL = "model { for (i in 1:3) { y[i] ~ dnorm(mu, 1) } mu ~ dnorm(0, 1) }"


def mean(y: object) -> float:
    """The posterior mean of mu given the data."""
    fit = hyperprior.fit(hyperprior.Model(MODEL, {"y": y}), draws=100, steps=50)
    return float(fit.draws("mu").mean())


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float16", "float32", "float64", "bool", "object"])
def test_every_dtype_gives_the_same_result(dtype: str) -> None:
    y = np.array([1, 0, 1]).astype(dtype)
    assert mean(y) == mean([1, 0, 1])


def test_missing_is_nan_none_or_masked() -> None:
    expected = mean([1.0, np.nan, 3.0])
    assert expected != mean([1.0, 2.0, 3.0])
    assert mean([1.0, None, 3.0]) == expected
    assert mean(np.ma.masked_array([1, 2, 3], mask=[False, True, False])) == expected
    pandas = pytest.importorskip("pandas")
    assert mean(pandas.Series([1, pandas.NA, 3], dtype="Int64")) == expected
    # Not contiguous in memory.
    assert mean(np.array([[1.0, 9.0], [np.nan, 9.0], [3.0, 9.0]])[:, 0]) == expected


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"y": ["a", "b", "c"]}, TypeError, "data: `y` has text"),
        ({"y": [1, "b", None]}, TypeError, "`y`"),
        ({"y": [1, 2j, 3]}, TypeError, "data: `y` has values of dtype complex128"),
        ({"y": [[1, 2], [3]]}, ValueError, "data: `y` is not an array: its rows differ in length"),
        ({"y": []}, ValueError, "data: `y` has shape (0,)"),
        ({"y": [1, np.inf, 2]}, ValueError, "data: `y` has an infinite value"),
        ({"y": [2**60, 1, 2]}, ValueError, "data: `y` has an integer above 2**53"),
        ({1: [1, 2, 3]}, TypeError, "names must be strings"),
        ([1, 2, 3], TypeError, "data must be a dict"),
        ({"y": np.array(["2020-01-01"], dtype="datetime64[D]")}, TypeError, "`y` has values of dtype datetime64"),
    ],
)
def test_invalid_data_are_named(data: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        hyperprior.Model(MODEL, data)  # type: ignore[arg-type]
    assert message in str(raised.value)


def test_a_wrong_shape_is_marked_in_the_model() -> None:
    with pytest.raises(hyperprior.Error) as raised:
        hyperprior.Model(MODEL, {"y": [[1, 2, 3], [4, 5, 6]]})
    assert "the model cannot be compiled" in str(raised.value)
    assert "y[i]" in str(raised.value) and "model:1:" in str(raised.value)


def test_an_unknown_distribution_is_marked_in_the_model() -> None:
    with pytest.raises(ValueError) as raised:
        hyperprior.Model("model {\n  mu ~ dnorn(0, 1)\n}")
    message = str(raised.value)
    assert isinstance(raised.value, hyperprior.Error)
    assert "mu ~ dnorn(0, 1)" in message and "dnorm" in message and "model:2:" in message, message
