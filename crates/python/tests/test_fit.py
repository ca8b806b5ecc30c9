"""Fits of models in BUGS: the same numbers as the command, and how they are presented."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, example

import hyperprior

COIN = "model { theta ~ dbeta(1, 1) y ~ dbin(theta, 10) }"


@pytest.fixture(scope="module")
def coal() -> hyperprior.Posterior:
    return hyperprior.fit(hyperprior.Model(ROOT / "examples/coal/model.bug", example("coal")), seed=3, loo=True)


def test_numbers_equal_those_of_the_command(coal: hyperprior.Posterior, run: Any) -> None:
    expected = run("fit", "examples/coal/model.bug", "--data", "examples/coal/data.json", "--seed", "3", "--loo")
    parameters = expected.pop("parameters")
    found = dict(coal.diagnostics)
    assert expected.pop("wall_seconds") > 0 and found.pop("wall_seconds") > 0
    assert found == expected
    summary = coal.summary()
    assert list(summary.index) == list(parameters)
    for name, one in parameters.items():
        assert summary.loc[name, "mean"] == one["mean"] and summary.loc[name, "95%"] == one["q95"]
        assert summary.loc[name, "ess"] == one["ess"] and summary.loc[name, "mcse"] == one["mcse"]
    assert list(summary.columns) == ["mean", "sd", "5%", "median", "95%", "mcse", "ess"]


def test_draws_are_views_of_one_block(coal: hyperprior.Posterior) -> None:
    draws = coal.draws()
    block = draws.block
    for name in draws:
        if not draws.is_discrete(name):
            assert np.shares_memory(draws[name], block), name
            assert not draws[name].flags.writeable
        else:
            assert draws[name].dtype == np.int64
        assert draws[name].shape[0] == 4000
        assert coal.draws(name) is draws[name]
    assert [one.shape[0] for one in draws.values()] == [4000] * len(draws)
    with pytest.raises(KeyError, match="there are no draws of `nothing`"):
        coal.draws("nothing")


def test_arrays_have_the_shapes_of_the_model() -> None:
    code = """model {
        for (i in 1:2) { for (j in 1:3) { m[i, j] ~ dnorm(10 * i + j, 100) } }
        for (i in 1:4) { y[i] ~ dnorm(m[1, 1], 1) }
    }"""
    fit = hyperprior.fit(hyperprior.Model(code, {"y": [11, np.nan, 11, np.nan]}), draws=400)
    m = fit.draws("m")
    assert m.shape == (400, 2, 3) and np.shares_memory(m, fit.draws().block)
    assert np.allclose(m.mean(axis=0), [[11, 12, 13], [21, 22, 23]], atol=0.1)
    assert np.array_equal(fit.draws("m[2,3]"), m[:, 1, 2])
    y = fit.draws("y")
    assert y.shape == (400, 4) and (y[:, [0, 2]] == 11).all() and np.isfinite(y[:, [1, 3]]).all()
    part = hyperprior.fit(hyperprior.Model(code, {"y": [11, np.nan, 11, np.nan]}), draws=400, monitor=["m[1,1]", "m[2,2:3]"])
    assert part.names == ["m"] and part.draws("m").shape == (400, 2, 3)
    assert np.array_equal(part.draws("m")[:, 0, 0], m[:, 0, 0]) and np.isnan(part.draws("m")[:, 1, 0]).all()


def test_a_closed_form_is_recovered() -> None:
    fit = hyperprior.fit(hyperprior.Model(COIN, {"y": 7}))
    theta = fit.draws("theta")
    # Beta(8, 4), within five standard errors.
    sd = np.sqrt(8 * 4 / (12**2 * 13))
    assert abs(theta.mean() - 8 / 12) < 5 * sd / np.sqrt(fit.summary().loc["theta", "ess"])
    assert abs(fit.diagnostics["evidence"]["log"] - np.log(1 / 11)) < 0.02
    assert fit.verdict == "trust" and fit.log_density is not None and fit.log_density.shape == (4000,)


def test_the_prior_and_the_exact_posterior() -> None:
    prior = hyperprior.fit(hyperprior.Model(COIN), draws=2000)
    assert prior.diagnostics["method"] == "prior" and prior.draws("y").dtype == np.int64
    assert abs(prior.draws("y").mean() - 5) < 5 * np.sqrt(10 / 2000)
    exact = hyperprior.fit(hyperprior.Model("model { z ~ dbern(0.3) y ~ dnorm(z, 1) }", {"y": 1.0}), draws=1000)
    assert exact.diagnostics["method"] == "exact" and exact.log_density is None
    assert "exact" in repr(exact)


def test_invalid_arguments_are_explained() -> None:
    model = hyperprior.Model(COIN, {"y": 7})
    for arguments, error, message in [
        ({"method": "gibbs"}, hyperprior.Error, "gibbs"),
        ({"method": "mixture:5000"}, hyperprior.Error, "at most 1000"),
        ({"draws": 3}, hyperprior.Error, "draws=3"),
        ({"draws": 10.5}, TypeError, "draws must be an integer"),
        ({"seed": -1}, hyperprior.Error, "seed=-1"),
        ({"accuracy": 0}, hyperprior.Error, "accuracy=0"),
        ({"budget": "soon"}, TypeError, "budget must be a number"),
        ({"correct": "all"}, hyperprior.Error, "use none, resample or resample-move"),
        ({"monitor": "thetta"}, hyperprior.Error, "did you mean `theta`?"),
        ({"monitor": "y"}, hyperprior.Error, "`y` is observed"),
        ({"prior": "cubic"}, hyperprior.Error, "cubic"),
        ({"bound": "importance:0"}, hyperprior.Error, "importance:J"),
        ({"linear_response": True}, hyperprior.Error, 'method="mean-field"'),
    ]:
        with pytest.raises(error) as raised:
            hyperprior.fit(model, **arguments)  # type: ignore[arg-type]
        assert message in str(raised.value), str(raised.value)
        assert "--" not in str(raised.value)
    with pytest.raises(hyperprior.Error, match="nothing in the model is unknown"):
        hyperprior.fit(hyperprior.Model(COIN, {"y": 7, "theta": 0.5}))
    with pytest.raises(TypeError, match="a hyperprior.Model"):
        hyperprior.fit(COIN)  # type: ignore[arg-type]
    with pytest.raises(hyperprior.Error, match="eliminate: there is no latent `w`"):
        hyperprior.Model(COIN, {"y": 7}, eliminate="w")


def test_predictions_equal_those_of_the_command(tmp_path: Any, run: Any) -> None:
    folder = tmp_path / "run"
    common = ("examples/coal/model.bug", "--data", "examples/coal/data.json")
    run("fit", *common, "--draws", "500", "--steps", "200", "--out", str(folder))
    data = example("coal")
    fit = hyperprior.fit(hyperprior.Model(ROOT / "examples/coal/model.bug", data), draws=500, steps=200)
    expected = run("predict", str(folder), "--data", "examples/coal/data.json", "--draws", "300", "--seed", "5")
    found = fit.predict(data, draws=300, seed=5)
    assert found.elpd == expected["elpd"] and found.diagnostics["reused"] == expected["reused"]
    for name, one in expected["parameters"].items():
        assert found.summary().loc[name, "mean"] == one["mean"], name
    with pytest.raises(hyperprior.Error, match="reuse: "):
        fit.predict(data, reuse="nothing")


def test_new_observations_are_predicted() -> None:
    code = "model { for (i in 1:n) { y[i] ~ dnorm(mu, 1) } mu ~ dnorm(0, 0.01) }"
    fit = hyperprior.fit(hyperprior.Model(code, {"n": 4, "y": [4.0, 5.0, 6.0, 5.0]}))
    found = fit.predict({"n": 2, "y": [5.0, np.nan]})
    y = found.draws("y")
    assert y.shape == (4000, 2) and (y[:, 0] == 5).all() and list(found.summary().index) == ["y[2]"]
    # y_new ~ N(m, 1 + v), with v = 1/4.01 and m = 20 v.
    v = 1 / 4.01
    spread = np.sqrt(1 + v)
    assert abs(y[:, 1].mean() - 20 * v) < 5 * spread / np.sqrt(4000)
    exact = -0.5 * np.log(2 * np.pi * (1 + v)) - 0.5 * (5 - 20 * v) ** 2 / (1 + v)
    assert found.elpd is not None and abs(found.elpd["value"] - exact) < 0.02
    assert "reused: mu" in repr(found) and "<table>" in found._repr_html_()


def test_a_fit_is_shown(coal: hyperprior.Posterior) -> None:
    assert repr(coal).startswith("coal: 4000 draws by ") and "verdict" in repr(coal)
    assert "<table>" in coal._repr_html_() and "&lt;" not in coal._repr_html_()
    assert "hyperprior.Model coal" in repr(coal.model)


def test_without_pandas_or_arviz_the_error_names_the_extra(coal: hyperprior.Posterior, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"hyperprior\[pandas\]"):
        coal.summary()
    with pytest.raises(ImportError, match=r"hyperprior\[arviz\]"):
        coal.to_arviz()


def test_progress_is_reported() -> None:
    reports: list[tuple[Any, ...]] = []
    model = hyperprior.Model(ROOT / "examples/coal/model.bug", example("coal"))
    loud = hyperprior.fit(model, draws=100, steps=20_000, progress=lambda *one: reports.append(one))
    assert reports and all(0 <= done <= of for _, done, of, _ in reports)
    assert {work for work, *_ in reports} & {"fit", "search", "start", "moves"}
    assert loud.diagnostics["steps"] > 0

    def fail(*_: object) -> None:
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        hyperprior.fit(model, draws=100, steps=20_000, progress=fail)


LINE = "model { for (i in 1:n) { y[i] ~ dnorm(a + b * x[i], 4) } a ~ dnorm(0, 0.01) b ~ dnorm(0, 0.01) }"


def test_a_posterior_can_be_pickled() -> None:
    model = hyperprior.Model(LINE, {"n": 3, "x": [1, 2, 3], "y": [1.1, 1.9, 3.2]})
    fit = hyperprior.fit(model, draws=100)
    again = pickle.loads(pickle.dumps(fit))
    assert np.array_equal(again.draws("b"), fit.draws("b")) and again.verdict == fit.verdict
    assert repr(again) == repr(fit) and repr(again.model) == repr(model)
    ahead = {"n": 1, "x": [9], "y": [None]}
    assert np.array_equal(again.predict(ahead).draws("y"), fit.predict(ahead).draws("y"))
    assert np.array_equal(hyperprior.fit(copy.deepcopy(model), draws=100).draws("a"), fit.draws("a"))


def test_predictions_are_in_order() -> None:
    fit = hyperprior.fit(hyperprior.Model(LINE, {"n": 3, "x": [1, 2, 3], "y": [1.1, 1.9, 3.2]}), draws=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Left out or missing: both are predicted.
        absent = fit.predict({"n": 12, "x": np.arange(12)})
        missing = fit.predict({"n": 12, "x": np.arange(12), "y": [None] * 12})
    names = [f"y[{i}]" for i in range(1, 13)]
    assert list(absent.summary().index) == list(missing.summary().index) == names
    assert np.array_equal(absent.draws("y"), missing.draws("y"))


def test_groups_that_are_resimulated_are_reported() -> None:
    code = "model { for (i in 1:n) { y[i] ~ dnorm(a[g[i]], 4) } for (j in 1:J) { a[j] ~ dnorm(m, 1) } m ~ dnorm(0, 0.01) }"
    fit = hyperprior.fit(hyperprior.Model(code, {"n": 4, "J": 2, "g": [1, 1, 2, 2], "y": [1.0, 1.2, 3.0, 3.1]}), draws=100)
    with pytest.warns(UserWarning, match="`a` is resimulated, since it has 3 elements here and 2 in the fit"):
        found = fit.predict({"n": 1, "J": 3, "g": [3], "y": [None]})
    assert "`a` is resimulated" in repr(found)


def test_arrays_with_missing_values_have_the_shape_of_the_data() -> None:
    y = np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, 6.0]])
    code = """model {
        for (i in 1:2) { for (j in 1:3) { y[i, j] ~ dnorm(m, 1) } }
        m ~ dnorm(0, 0.01) k[1] ~ dbern(0.5) k[2] ~ dbern(0.5)
    }"""
    fit = hyperprior.fit(hyperprior.Model(code, {"y": y, "k": [None, 1.0]}), draws=100)
    own = fit.draws("y")
    assert own.shape == (100, 2, 3)
    assert np.array_equal(own[:, ~np.isnan(y)], np.broadcast_to(y[~np.isnan(y)], (100, 4)))
    assert np.isfinite(own).all() and own[:, 0, 1].std() > 0 and own[:, 1, 0].std() > 0
    assert fit.draws("k").shape == (100, 2) and fit.draws("k").dtype == np.int64 and (fit.draws("k")[:, 1] == 1).all()


def test_continuous_parameters_are_shown_first() -> None:
    code = "model { for (i in 1:30) { z[i] ~ dbern(p) y[i] ~ dnorm(3 * z[i], 0.2) } p ~ dbeta(1, 1) }"
    fit = hyperprior.fit(hyperprior.Model(code, {"y": np.linspace(-1, 4, 30)}), draws=100)
    assert repr(fit).split("\n\n")[1].splitlines()[1].startswith("p ")


def test_a_path_given_as_a_string_is_explained() -> None:
    with pytest.raises(hyperprior.Error, match=r"give the pathlib\.Path of a file"):
        hyperprior.Model("nosuch.bug")
    with pytest.raises(TypeError, match=r"fit\(hyperprior\.Model\(code, data\)\)"):
        hyperprior.fit(LINE)  # type: ignore[arg-type]
