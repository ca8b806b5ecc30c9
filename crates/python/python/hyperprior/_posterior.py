"""What a fit leaves behind."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._arguments import names, whole
from ._draws import Draws
from ._hyperprior import Error
from ._model import Model

if TYPE_CHECKING:
    from ._function import Function

#: The columns of a summary, and what they are called in `summary.json`.
_COLUMNS = {"mean": "mean", "sd": "sd", "5%": "q05", "median": "median", "95%": "q95", "mcse": "mcse", "ess": "ess"}
#: Rows that are shown of a summary.
_ROWS = 20


def _number(x: float | None, digits: str) -> str:
    # What is not a finite number is nothing in JSON.
    return "-" if x is None else format(x, digits)


class Drawn:
    """Draws, and what they say."""

    def __init__(self, found: Mapping[str, Any], observed: Mapping[str, NDArray[np.float64]] | None = None) -> None:
        self._draws = Draws(found["values"], found["names"], found["discrete"], observed)
        self._told: dict[str, Any] = json.loads(found["summary"])
        told: dict[str, dict[str, Any]] = self._told.pop("parameters")
        self._parameters = {name: told[name] for name in self._draws.names}

    def draws(self, name: str | None = None) -> Any:
        """The draws of one name, of shape `(draws, *shape)`, or a mapping with those of every name.

        Arrays of real numbers are views, and cannot be written to; those of discrete variables hold whole numbers. `name` may be
        that of an array or of an element as BUGS writes it, `beta[2]`.
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
            raise ImportError("summary() gives a pandas data frame; pip install 'hyperprior[pandas]'") from None
        rows = {column: [one[key] for one in self._parameters.values()] for column, key in _COLUMNS.items()}
        return pandas.DataFrame(rows, index=pandas.Index(self._parameters.keys(), name="name"))

    @property
    def names(self) -> list[str]:
        """The names that there are draws of."""
        return list(self._draws)

    @property
    def warnings(self) -> list[str]:
        """What has to be known before the numbers are believed."""
        return list(self._told["warnings"])

    def _head(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        warned = "".join(f"\nWarning: {warning}." for warning in self.warnings)
        return f"{self._head()}{warned}\n\n{self._table()}"

    def _repr_html_(self) -> str:
        warned = "".join(f"<p>Warning: {escape(warning)}.</p>" for warning in self.warnings)
        return f"<p>{escape(self._head())}</p>{warned}{self._table_html()}"

    def _rows(self) -> list[list[str]]:
        # Continuous ones are few and first asked for.
        is_discrete = dict(zip(self._draws.names, self._draws.discrete, strict=True))
        shown = sorted(self._parameters.items(), key=lambda item: is_discrete[item[0]])[:_ROWS]
        return [[name, *(_number(one[key], ".4g") for key in _COLUMNS.values())] for name, one in shown]

    def _table(self) -> str:
        rows = [["name", *_COLUMNS], *self._rows()]
        widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
        lines = ["  ".join([row[0].ljust(widths[0]), *(x.rjust(w) for x, w in zip(row[1:], widths[1:], strict=True))]) for row in rows]
        return "\n".join(line.rstrip() for line in lines) + self._more()

    def _more(self) -> str:
        more = len(self._parameters) - _ROWS
        return f"\n... and {more} more" if more > 0 else ""

    def _table_html(self) -> str:
        head = "".join(f"<th>{column}</th>" for column in ("", *_COLUMNS))
        body = "".join("<tr>" + "".join(f"<td>{escape(x)}</td>" for x in row) + "</tr>" for row in self._rows())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(self._more().strip())}</p>"


class Posterior(Drawn):
    """The posterior of a model: draws, what they say, and how far to trust them."""

    def __init__(self, model: Model | Function, found: Mapping[str, Any]) -> None:
        super().__init__(found, model.data if isinstance(model, Model) else None)
        #: What was fitted.
        self.model = model
        #: The log density of each draw on the line, up to a constant; None where nothing was approximated.
        self.log_density: NDArray[np.float64] | None = found["log_density"]
        #: The bound, step by step.
        self.trace: NDArray[np.float64] = found["trace"]
        own = found.get("log_likelihood")
        #: The log likelihood of each observation in each draw, where `loo` was asked for.
        self.log_likelihood = Draws(own["values"], own["names"], own["discrete"]) if own is not None else None

    @property
    def diagnostics(self) -> dict[str, Any]:
        """All of `summary.json` but the parameters: elbo, evidence, khat, verdict, warnings, plan, course and what else there is."""
        return self._told

    @property
    def verdict(self) -> str:
        """What may be believed: `trust`, `means-only` or `distrust`."""
        return str(self._told["verdict"])

    def to_arviz(self) -> Any:
        """The draws for ArviZ, as one chain.

        Raises:
            ImportError: ArviZ is not installed.
        """
        from ._arviz import to_arviz

        return to_arviz(self)

    def predict(
        self,
        new_data: Mapping[str, Any],
        carry: str | Sequence[str] | None = None,
        monitor: str | Sequence[str] | None = None,
        draws: int | None = None,
        seed: int = 1,
    ) -> Prediction:
        """What the fit foretells of new data, as `hyperprior predict` does.

        The parameters have the fit's draws; everything else that is not observed in the new data is drawn from its law given them.

        Args:
            new_data: All data of the model; responses that are to be foretold are NaN or left out.
            carry: What has the fit's draws; what does not go row by row with the data, where it is not given.
            monitor: What to keep; everything that is not carried over, where it is not given.
            draws: How many draws; as many as the fit has, where it is not given.
            seed: The random seed.
        """
        if not isinstance(self.model, Model):
            raise Error("predict needs a model in BUGS: a Function does not say how its data come about")
        new = self.model.with_data(new_data)
        named = (None if carry is None else names("carry", carry), None if monitor is None else names("monitor", monitor))
        len_ = whole("draws", draws, 1) if draws is not None else None
        kept = (self._draws.block, self._draws.names)
        found = self.model._program.predict(new._program, kept, named, (len_, whole("seed", seed, 0, 2**64 - 1)))
        prediction = Prediction(found, new.data)
        for warning in prediction.warnings:
            warnings.warn(warning, stacklevel=2)
        return prediction

    def _head(self) -> str:
        told = self._told
        khat = "" if told["khat"] is None else f", k-hat {told['khat']:.2f}"
        bound, evidence = _number(told["elbo"]["value"], ".2f"), _number(told["evidence"]["log"], ".2f")
        if self.verdict == "distrust":
            evidence = f"at least {evidence}, not to be trusted"
        return (
            f"{told['model']}: {self._draws.block.shape[1]} draws by {told['method']}, verdict {self.verdict}, "
            f"ELBO {bound}, log evidence {evidence}{khat}"
        )


class Prediction(Drawn):
    """What a fit foretells of new data."""

    @property
    def elpd(self) -> dict[str, Any] | None:
        """The log predictive density of the observations that the fit has not seen, its standard error and their number."""
        elpd: dict[str, Any] | None = self._told["elpd"]
        return elpd

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What was carried over, what was drawn anew, `elpd` and the warnings."""
        return self._told

    def _head(self) -> str:
        carried = ", ".join(self._told["carried"]) or "nothing"
        return f"{self._told['model']}: {self._told['draws']} draws; carried over: {carried}"

