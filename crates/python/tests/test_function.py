"""Models defined by Python functions, compared with enumeration and closed forms."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import hyperprior

FIELD = np.array([0.4, -0.3, 0.2])


def spins(z: dict[str, Any]) -> Any:
    """Three coupled spins, and an integer whose mean depends on the first."""
    s = 2 * z["z"] - 1
    coupling = 0.8 * s[:, 0] * s[:, 1] - 0.5 * s[:, 1] * s[:, 2]
    return s @ FIELD + coupling - 0.5 * (z["k"] - 1.0 - s[:, 0]) ** 2


def test_a_discrete_posterior_matches_enumeration() -> None:
    model = hyperprior.Function(spins, {"z": hyperprior.binary(3), "k": hyperprior.integers(0, 4)})
    fit = hyperprior.fit(model, draws=4000)
    states = np.array(list(itertools.product(*[[0, 1]] * 3, range(5))))
    log_p = spins({"z": states[:, :3], "k": states[:, 3]})
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    z, k = fit.draws("z"), fit.draws("k")
    assert z.shape == (4000, 3) and k.shape == (4000,) and z.dtype == np.int64
    code = ((z[:, 0] * 2 + z[:, 1]) * 2 + z[:, 2]) * 5 + k
    drawn = np.bincount(code, minlength=40) / 4000
    ess = fit.summary()["ess"].min()
    band = 5 * np.sqrt(p * (1 - p) / ess)
    # Independent spins would be outside the band.
    alone = np.prod([np.bincount(z[:, i], minlength=2)[states[:, i]] / 4000 for i in range(3)], axis=0)
    alone = alone * np.bincount(k, minlength=5)[states[:, 3]] / 4000
    assert (np.abs(alone - p) > band).any()
    assert (np.abs(drawn - p) < band + 1 / 4000).all(), np.abs(drawn - p).max()
    assert abs(fit.diagnostics["evidence"]["log"] - np.logaddexp.reduce(log_p)) < 0.05
    assert fit.diagnostics["seed"] == 1 and fit.verdict == "trust"


#: ln n! for n below 10,000.
LN_FACTORIAL = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 10_000)))])


def mixed(z: dict[str, Any]) -> Any:
    """n ~ Poisson(4), s ~ Gamma(3, 2), u ~ Beta(3, 2), x | n ~ N(n, 3²), all known in closed form."""
    n, s, u, x = z["n"], z["s"], z["u"], z["x"]
    log_p = n * np.log(4.0) - 4.0 - LN_FACTORIAL[np.minimum(n, 9999)]
    log_p = log_p + 2 * np.log(s) - 2 * s + 2 * np.log(u) + np.log1p(-u)
    return log_p - ((x - n[:, None]) ** 2).sum(axis=1) / 18


def d_mixed(z: dict[str, Any]) -> dict[str, Any]:
    return {"s": 2 / z["s"] - 2, "u": 2 / z["u"] - 1 / (1 - z["u"]), "x": -(z["x"] - z["n"][:, None]) / 9}


LATENTS = {
    "n": hyperprior.counts(),
    "s": hyperprior.positive(),
    "u": hyperprior.unit_interval(),
    "x": hyperprior.real(2),
}


@pytest.mark.parametrize("gradient", [None, d_mixed])
def test_mixed_latents_match_closed_forms(gradient: Any) -> None:
    fit = hyperprior.fit(hyperprior.Function(mixed, LATENTS, gradient), draws=1000, steps=300)
    summary = fit.summary()
    expected = {"n": (4, 2), "s": (1.5, np.sqrt(3) / 2), "u": (0.6, 0.2), "x[1]": (4, np.sqrt(13)), "x[2]": (4, np.sqrt(13))}
    for name, (mean, sd) in expected.items():
        band = 5 * sd / np.sqrt(summary.loc[name, "ess"])
        assert band < 0.3 * sd, (name, summary)
        assert abs(summary.loc[name, "mean"] - mean) < band, (name, summary)
        assert abs(summary.loc[name, "sd"] / sd - 1) < 0.15, (name, summary)
    assert (fit.draws("s") > 0).all() and ((fit.draws("u") > 0) & (fit.draws("u") < 1)).all()
    # The correlation of x and n is 2/√13; a mean-field approximation would miss it.
    assert abs(np.corrcoef(fit.draws("n"), fit.draws("x")[:, 0])[0, 1] - 2 / np.sqrt(13)) < 0.15


def test_a_gradient_is_compared_with_differences() -> None:
    hyperprior.Function(mixed, LATENTS, d_mixed).check()
    wrong = hyperprior.Function(mixed, LATENTS, lambda z: d_mixed(z) | {"s": 0 * z["s"]})
    with pytest.raises(hyperprior.Error, match="gradient disagrees with its log joint for latent .*s"):
        wrong.check()


def test_exceptions_pass_through_unchanged() -> None:
    class Mine(Exception):
        pass

    def fail(z: dict[str, Any]) -> Any:
        raise Mine("here")

    with pytest.raises(Mine, match="here"):
        hyperprior.fit(hyperprior.Function(fail, {"x": hyperprior.real()}))
    for log_joint, error, message in [
        (lambda z: z["x"], ValueError, r"log_joint returned an array of shape \(\d+, 3\)"),
        (lambda z: 0.0, ValueError, r"shape \(\)"),
        (lambda z: ["a"], TypeError, "dtype"),
        (lambda z: z["y"], KeyError, "y"),
    ]:
        with pytest.raises(error, match=message):
            hyperprior.fit(hyperprior.Function(log_joint, {"x": hyperprior.real(3)}))

    def square(z: dict[str, Any]) -> Any:
        return -(z["x"] ** 2).sum(axis=1)

    for gradient, error, message in [
        (lambda z: {}, ValueError, "gradient returned nothing for `x`"),
        (lambda z: {"x": z["x"][:, 0]}, ValueError, "gradient: `x` has shape"),
        (lambda z: 3, TypeError, "gradient returned int"),
    ]:
        with pytest.raises(error, match=message):
            hyperprior.fit(hyperprior.Function(square, {"x": hyperprior.real(3)}, gradient))


def test_declarations_are_checked() -> None:
    def nothing(z: Any) -> Any:
        return 0

    for latents, error, message in [
        ({}, hyperprior.Error, "no latent variables"),
        ({"x": 3}, TypeError, "hyperprior.binary"),
        ({"k": hyperprior.integers(3, 1)}, hyperprior.Error, "lower ≤ upper"),
    ]:
        with pytest.raises(error, match=message):
            hyperprior.Function(nothing, latents)  # type: ignore[arg-type]
    with pytest.raises(hyperprior.Error, match="shape=0"):
        hyperprior.real(0)
    with pytest.raises(ValueError, match="there is no latent `y`"):
        hyperprior.Function(nothing, {"x": hyperprior.real()}, init={"y": 1})
    with pytest.raises(hyperprior.Error, match="init: `s` cannot be -1"):
        hyperprior.fit(hyperprior.Function(nothing, {"s": hyperprior.positive()}, init={"s": -1}))
    with pytest.raises(hyperprior.Error, match="need a model in BUGS"):
        hyperprior.fit(hyperprior.Function(nothing, {"x": hyperprior.real()}), monitor="x")
