"""Deep exponential families as a scikit-learn estimator."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _hyperprior, _progress
from ._arguments import among, number, text, whole
from ._estimator import BaseEstimator, ClassNamePrefixFeaturesOutMixin, Rows, TransformerMixin, must_be_fitted, rows
from ._hyperprior import Error

_SEED_MAX = 2**64 - 1
_FAMILIES = ("poisson", "bernoulli", "gaussian", "gamma")
_WEIGHT_POSTERIORS = ("gamma", "log-normal", "point")


class DEF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Topics of word counts: a deep exponential family, trained by variational inference that keeps the dependence between latents.

    ```python
    topics = hyperprior.DEF(layers=(50, 10), epochs=30).fit(counts)
    topics.topics(5)
    ```

    Args:
        layers: The widths of the layers, the one next to the words first; `"bernoulli:30"` also sets the layer's family.
        family: The family of the other layers: poisson, bernoulli, gaussian or gamma.
        method: The variational model of a document: hvm, mean-field, conway-maxwell, mixture:J,
            conway-maxwell-mixture:J, low-rank:R or flow:L,M. hvm compares the others with mean-field on validation
            documents; `method_` is its choice.
        epochs: Number of passes over all documents.
        seed: The random seed; the same seed gives the same numbers as `hyperprior topics`.
        weights: The approximate posterior of the weights: gamma, log-normal or point.
        words: The distribution of the counts of words: poisson, or negative-binomial for words that come in bursts.
        batch: Documents in a minibatch.
        draws: Draws of a document's latents per step: 1, 2, 4 or 8.
        gamma_shape: The shape of the latents of gamma layers.
        amortize: Number of hidden units of an inference network; by default each document has its own parameters.
        steps: Optimisation steps for the latents of a document in `transform`.
        vocabulary: The terms of the columns, for `topics`; by default the names or numbers of the columns.
        progress: True, False, a function to call, or None for a progress bar in a terminal or notebook.

    Attributes:
        components_: Posterior mean weights of the terms, a row for each topic; the topic that explains most comes first.
        layer_weights_: Posterior mean weights between layers, a row for each latent of the upper layer.
        objective_: The objective per word, epoch by epoch.
        elbo_: The bound per word at the end.
        n_features_in_: The number of terms.
    """

    def __init__(
        self,
        layers: Sequence[int | str] = (100, 30, 15),
        family: str = "poisson",
        method: str = "hvm",
        epochs: int = 60,
        seed: int = 1,
        *,
        weights: str = "gamma",
        words: str = "poisson",
        batch: int = 256,
        draws: int = 4,
        gamma_shape: float = 0.3,
        amortize: int | None = None,
        steps: int = 300,
        vocabulary: Sequence[str] | None = None,
        progress: bool | _progress.Callback | None = None,
    ) -> None:
        self.layers = layers
        self.family = family
        self.method = method
        self.epochs = epochs
        self.seed = seed
        self.weights = weights
        self.words = words
        self.batch = batch
        self.draws = draws
        self.gamma_shape = gamma_shape
        self.amortize = amortize
        self.steps = steps
        self.vocabulary = vocabulary
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> DEF:
        """Trains on counts, a row for each document."""
        settings = self._settings()
        counts = self._rows(X, reset=True)
        terms = self._terms()
        self._trained = self._watched(lambda report: _hyperprior.Trained.fit(counts, terms, settings, report))
        self._summary = json.loads(self._trained.topics)
        layers = [self._summary["topics"], *self._summary["themes"]]
        #: The latents of each layer in the order of the summary.
        self._orders = [[one["latent"] for one in layer] for layer in layers]
        self.components_: NDArray[np.float64] = self._trained.weights(0)[self._orders[0]]
        self.layer_weights_ = [
            self._trained.weights(i + 1)[np.ix_(above, below)]
            for i, (below, above) in enumerate(zip(self._orders, self._orders[1:], strict=False))
        ]
        self.objective_ = np.asarray(self._trained.history)
        self.elbo_: float = self._trained.elbo
        self.method_: str = self._trained.method
        self.vocabulary_ = terms
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The activity of each topic in each document: E z of the lowest layer, a column for each topic."""
        return self.activations(X)[0]

    def activations(self, X: Any) -> list[NDArray[np.float64]]:
        """E z of every layer, the lowest first: an array for each, with a row for each document."""
        must_be_fitted(self)
        counts = self._rows(X, reset=False)
        steps, seed = whole("steps", self.steps, 1), whole("seed", self.seed, 0, _SEED_MAX)
        found, _ = self._watched(lambda report: self._trained.infer(counts, steps, seed, report))
        return [own[:, order] for own, order in zip(found, self._orders, strict=True)]

    def perplexity(self, X: Any, hide: str = "types") -> float:
        """The perplexity of one half of each document given the other. `hide` is `types` or `words`: what is hidden.

        Lower is better: predicting a hidden word is as hard as guessing among that many equally likely words.
        """
        return float(self._heldout(X, hide)["perplexity"])

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the log perplexity, in nats per hidden word; larger is better."""
        return -math.log(self.perplexity(X))

    def topics(self, n: int = 10, vocabulary: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The topics, the one that explains most first: `share`, the share of words that it explains, and its top `n` `words`."""
        must_be_fitted(self)
        return [{"share": one["share"], "words": self._words(one, n, vocabulary)} for one in self._summary["topics"]]

    def themes(self, layer: int = 1, n: int = 10, vocabulary: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The latents of a layer above the lowest: `uses`, the latents below that they raise, and their top `n` `words`."""
        must_be_fitted(self)
        whole("layer", layer, 1, max(len(self._summary["themes"]), 1))
        themes = self._summary["themes"][layer - 1] if self._summary["themes"] else []
        return [
            {"uses": [used["number"] - 1 for used in one["uses"]], "words": self._words(one, n, vocabulary)} for one in themes
        ]

    def save(self, path: Any) -> None:
        """Writes the `model` file of a run of `hyperprior topics`, for `hyperprior topics infer`."""
        must_be_fitted(self)
        with open(path, "wb") as file:
            file.write(self._trained.model())

    def _rows(self, X: Any, reset: bool) -> Rows:
        return rows(self, X, reset)

    def _words(self, summary: dict[str, Any], n: int, vocabulary: Sequence[str] | None) -> list[str]:
        words = [one["word"] for one in summary["words"][: whole("n", n, 1, 100)]]
        if vocabulary is None:
            return words
        if len(vocabulary) != len(self.vocabulary_):
            raise ValueError(f"vocabulary has {len(vocabulary)} terms, but there are {len(self.vocabulary_)} columns")
        places = {term: i for i, term in enumerate(self.vocabulary_)}
        return [str(vocabulary[places[word]]) for word in words]

    def _heldout(self, X: Any, hide: str) -> dict[str, float]:
        must_be_fitted(self)
        counts = self._rows(X, reset=False)
        seed = whole("seed", self.seed, 0, _SEED_MAX)
        found: dict[str, float] = self._watched(lambda report: self._trained.heldout(counts, hide, seed, report))
        if found["hidden"] == 0:
            raise Error("no document has two different words, so none could be hidden; score longer documents")
        return found

    def _watched(self, work: Any) -> Any:
        report = _progress.callback(self.progress)
        try:
            return work(report)
        finally:
            _progress.finish(report)

    def _terms(self) -> list[str]:
        if self.vocabulary is not None:
            terms = [str(term) for term in self.vocabulary]
            if len(terms) != self.n_features_in_:
                raise ValueError(f"vocabulary has {len(terms)} terms, but X has {self.n_features_in_} columns")
            return terms
        own = getattr(self, "feature_names_in_", None)
        return [str(term) for term in own] if own is not None else [str(i) for i in range(self.n_features_in_)]

    def _settings(self) -> str:
        if isinstance(self.layers, (int, str)):
            layers: Sequence[int | str] = [self.layers]
        else:
            layers = self.layers
        settings: dict[str, Any] = {
            "layers": [_layer(one, among("family", self.family, _FAMILIES)) for one in layers],
            "method": text("method", self.method),
            "epochs": whole("epochs", self.epochs, 1, 2**32 - 1),
            "seed": whole("seed", self.seed, 0, _SEED_MAX),
            "weights": among("weights", self.weights, _WEIGHT_POSTERIORS),
            "words": among("words", self.words, ("poisson", "negative-binomial")),
            "batch": whole("batch", self.batch, 1),
            "draws": whole("draws", self.draws, 1),
            "gamma_shape": number("gamma_shape", self.gamma_shape),
            "amortize": None if self.amortize is None else whole("amortize", self.amortize, 1),
        }
        return json.dumps(settings)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _layer(one: int | str, family: str) -> dict[str, Any]:
    if isinstance(one, str):
        own, colon, width = one.partition(":")
        if not colon or not width.strip().isdigit():
            raise Error(f"layers: `{one}` is not a layer; use a width, such as 30, or a family and a width, such as bernoulli:30")
        return {"family": among("layers", own.strip(), _FAMILIES), "width": whole("layers", int(width), 1, 4096)}
    return {"family": family, "width": whole("layers", one, 1, 4096)}
