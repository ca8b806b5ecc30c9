"""Export to ArviZ."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import ROOT, example

import hyperprior

arviz = pytest.importorskip("arviz")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def fitted() -> hyperprior.Posterior:
    return hyperprior.fit(hyperprior.Model(ROOT / "examples/coal/model.bug", example("coal")), draws=1000, loo=True)


def test_the_groups_have_the_draws(fitted: hyperprior.Posterior) -> None:
    found = fitted.to_arviz()
    for name in fitted.names:
        assert np.array_equal(found["posterior"][name].to_numpy()[0], fitted.draws(name))
    assert dict(found["posterior"].sizes)["chain"] == 1 and dict(found["posterior"].sizes)["draw"] == 1000
    assert fitted.log_density is not None
    assert np.array_equal(found["sample_stats"]["lp"].to_numpy()[0], fitted.log_density)
    assert (found["sample_stats"]["khat"] == fitted.diagnostics["khat"]).all()
    assert found["posterior"].attrs["verdict"] == fitted.verdict
    assert np.array_equal(found["observed_data"]["y"].to_numpy(), example("coal")["y"])
    assert list(found["observed_data"].data_vars) == ["y"] and list(found["constant_data"].data_vars) == ["n"]
    # Counted from 1, as in the model.
    assert found["posterior"]["lambda"].sel(lambda_dim_0=2).equals(found["posterior"]["lambda"][..., 1])


def test_plots_are_drawn(fitted: hyperprior.Posterior) -> None:
    found = fitted.to_arviz()
    is_old = arviz.__version__.startswith("0.")
    for name in ("plot_trace", "plot_posterior" if is_old else "plot_dist", "plot_forest"):
        drawn = getattr(arviz, name)(found)
        # Since ArviZ 1.0 it is a collection of plots, with the figure in its tree.
        figure = np.ravel(drawn)[0].figure if is_old else drawn.viz["figure"].item()
        figure.canvas.draw()
        assert figure.axes
        matplotlib.pyplot.close("all")


def test_loo_by_arviz_agrees_with_the_fit(fitted: hyperprior.Posterior) -> None:
    found = arviz.loo(fitted.to_arviz(), var_name="y", reff=1.0)
    own = fitted.diagnostics["loo"]
    elpd = found.elpd_loo if hasattr(found, "elpd_loo") else found.elpd
    assert abs(elpd - own["elpd_loo"]) < 0.1 * own["elpd_loo_standard_error"]
