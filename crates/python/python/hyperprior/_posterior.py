"""The result of a fit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._arguments import names, whole
from ._arviz import to_arviz
from ._draws import Draws
from ._hyperprior import Error
from ._model import Model

if TYPE_CHECKING:
    from ._function import Function

#: The columns of a summary, and what they are called in `summary.json`.
_COLUMNS = {"mean": "mean", "sd": "sd", "5%": "q05", "median": "median", "95%": "q95", "mcse": "mcse", "ess": "ess"}
#: The number of rows of a summary that are shown.
_ROWS = 20


def _number(x: float | None, digits: str) -> str:
    # JSON has no NaN and no infinity: both are null.
    return "-" if x is None else format(x, digits)


class Drawn:
    """Draws and their summary."""

    def __init__(self, found: Mapping[str, Any], observed: Mapping[str, NDArray[np.float64]] | None = None) -> None:
        self._draws = Draws(found["values"], found["names"], found["discrete"], observed)
        self._summary: dict[str, Any] = json.loads(found["summary"])
        parameters: dict[str, dict[str, Any]] = self._summary.pop("parameters")
        self._parameters = {name: parameters[name] for name in self._draws.names}

    def draws(self, name: str | None = None) -> Any:
        """The draws of one variable, of shape `(draws, *shape)`, or a mapping with those of all variables.

        Arrays of continuous variables are read-only views; those of discrete variables are integers. `name` is an array, or an
        element in the notation of BUGS, such as `beta[2]`.
        """
        return self._draws if name is None else self._draws[name]

    def summary(self) -> Any:
        """A pandas data frame with a row for each scalar: mean, sd, 5%, median, 95%, mcse, ess.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("summary() needs pandas; pip install 'hyperprior[pandas]'") from None
        rows = {column: [one[key] for one in self._parameters.values()] for column, key in _COLUMNS.items()}
        return pandas.DataFrame(rows, index=pandas.Index(self._parameters.keys(), name="name"))

    @property
    def names(self) -> list[str]:
        """The names of the variables with draws."""
        return list(self._draws)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the result."""
        return list(self._summary["warnings"])

    def _head(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        warned = "".join(f"\nWarning: {warning}." for warning in self.warnings)
        return f"{self._head()}{warned}\n\n{self._table()}"

    def _repr_html_(self) -> str:
        warned = "".join(f"<p>Warning: {escape(warning)}.</p>" for warning in self.warnings)
        return f"<p>{escape(self._head())}</p>{warned}{self._table_html()}"

    def _rows(self) -> list[list[str]]:
        # Continuous variables first: they are few and of most interest.
        is_discrete = dict(zip(self._draws.names, self._draws.discrete, strict=True))
        shown = sorted(self._parameters.items(), key=lambda item: is_discrete[item[0]])[:_ROWS]
        return [[name, *(_number(one[key], ".4g") for key in _COLUMNS.values())] for name, one in shown]

    def _table(self) -> str:
        rows = [["name", *_COLUMNS], *self._rows()]
        widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
        cells = [[row[0].ljust(widths[0]), *(x.rjust(w) for x, w in zip(row[1:], widths[1:], strict=True))] for row in rows]
        lines = ["  ".join(row) for row in cells]
        return "\n".join(line.rstrip() for line in lines) + self._more()

    def _more(self) -> str:
        more = len(self._parameters) - _ROWS
        return f"\n... and {more} more" if more > 0 else ""

    def _table_html(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in ("", *_COLUMNS))
        body = "".join("<tr>" + "".join(f"<td>{escape(x)}</td>" for x in row) + "</tr>" for row in self._rows())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(self._more().strip())}</p>"


class Posterior(Drawn):
    """The posterior of a model: draws, summaries and diagnostics."""

    def __init__(self, model: Model | Function, found: Mapping[str, Any]) -> None:
        super().__init__(found, model.data if isinstance(model, Model) else None)
        #: The model that was fitted.
        self.model = model
        #: The log density of each draw on the unconstrained scale, up to a constant; None if the posterior is exact.
        self.log_density: NDArray[np.float64] | None = found["log_density"]
        #: Estimates of the ELBO, step by step.
        self.trace: NDArray[np.float64] = found["trace"]
        pointwise = found.get("log_likelihood")
        #: The log likelihood of each observation in each draw, with `loo=True`.
        self.log_likelihood = (
            Draws(pointwise["values"], pointwise["names"], pointwise["discrete"]) if pointwise is not None else None
        )

    @property
    def diagnostics(self) -> dict[str, Any]:
        """Everything in `summary.json` except the parameters: elbo, evidence, khat, verdict, warnings, fit_history and more."""
        return self._summary

    @property
    def verdict(self) -> str:
        """How far to trust the result: `trust`, `means-only` or `distrust`."""
        return str(self._summary["verdict"])

    def to_arviz(self) -> Any:
        """The draws for ArviZ, as one chain.

        Raises:
            ImportError: ArviZ is not installed.
        """
        model = self.model if isinstance(self.model, Model) else None
        return to_arviz(self._draws, self._summary, self.log_density, self.log_likelihood, model)

    def predict(
        self,
        new_data: Mapping[str, Any],
        reuse: str | Sequence[str] | None = None,
        monitor: str | Sequence[str] | None = None,
        draws: int | None = None,
        seed: int = 1,
    ) -> Prediction:
        """Posterior predictions for new data, as by `hyperprior predict`.

        The parameters keep the fit's draws; everything else that is not observed in the new data is simulated given them.

        Args:
            new_data: All data of the model, with NaN for the values to predict; arrays to predict entirely can be left out.
            reuse: Variables that keep the fit's draws; by default, those not indexed by rows of the data.
            monitor: Quantities to save; by default all that are not reused.
            draws: Number of draws; by default as many as the fit has.
            seed: The random seed.
        """
        if not isinstance(self.model, Model):
            raise Error("predict needs a model in BUGS: a Function does not say how its data are generated")
        new = self.model.with_data(new_data)
        named = (None if reuse is None else names("reuse", reuse), None if monitor is None else names("monitor", monitor))
        len_ = whole("draws", draws, 1) if draws is not None else None
        saved = (self._draws.block, self._draws.names)
        found = self.model._program.predict(new._program, saved, named, (len_, whole("seed", seed, 0, 2**64 - 1)))
        prediction = Prediction(found, new.data)
        for warning in prediction.warnings:
            warnings.warn(warning, stacklevel=2)
        return prediction

    def _head(self) -> str:
        summary = self._summary
        khat = "" if summary["khat"] is None else f", k-hat {summary['khat']:.2f}"
        bound, evidence = _number(summary["elbo"]["value"], ".2f"), _number(summary["evidence"]["log"], ".2f")
        if self.verdict == "distrust":
            evidence = f"at least {evidence} (unreliable)"
        return (
            f"{summary['model']}: {self._draws.block.shape[1]} draws by {summary['method']}, verdict {self.verdict}, "
            f"ELBO {bound}, log evidence {evidence}{khat}"
        )


class Prediction(Drawn):
    """Posterior predictions for new data."""

    @property
    def elpd(self) -> dict[str, Any] | None:
        """The log predictive density of the new observations, its standard error and their number."""
        elpd: dict[str, Any] | None = self._summary["elpd"]
        return elpd

    @property
    def diagnostics(self) -> dict[str, Any]:
        """The variables reused and resimulated, `elpd` and the warnings."""
        return self._summary

    def _head(self) -> str:
        reused = ", ".join(self._summary["reused"]) or "nothing"
        return f"{self._summary['model']}: {self._summary['draws']} draws; reused: {reused}"
