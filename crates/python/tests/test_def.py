"""Deep exponential families: scikit-learn's conventions, and the same numbers as the command."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import hyperprior
from hyperprior import _hyperprior

sklearn = pytest.importorskip("sklearn")
from scipy import sparse  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.feature_extraction.text import CountVectorizer  # noqa: E402
from sklearn.model_selection import cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils.estimator_checks import check_estimators_pickle, parametrize_with_checks  # noqa: E402

from hyperprior._estimator import rows  # noqa: E402

SKY = ["cloud moon star sun", "moon moon star", "sun star cloud cloud", "star sun moon cloud"] * 10
TABLE = ["bread oil salt wine", "wine wine bread", "salt oil bread bread", "wine salt oil"] * 10
SMALL = {"layers": (4, 2), "epochs": 20, "seed": 1, "steps": 60}


@pytest.fixture(scope="module")
def bible() -> hyperprior.Counts:
    return hyperprior.bible()


def test_the_bible_is_built_in(bible: hyperprior.Counts) -> None:
    counts = bible.tocsr()
    assert counts.shape == bible.shape == (1189, len(bible.vocabulary))
    assert bible.names[0] == "Genesis 1" and np.shares_memory(counts.data, bible.data)


def test_numbers_equal_those_of_the_command(bible: hyperprior.Counts, run: Any) -> None:
    expected = run("topics", "bible", "--layers", "12,3", "--epochs", "3", "--seed", "2", "--top-words", "8", "--heldout", "0.02")
    parts = (bible.indptr, bible.indices, bible.data)
    train, test, unigram = _hyperprior.split(parts, bible.vocabulary, 0.02, 2)
    counts = bible.tocsr()
    model = hyperprior.DEF(layers=(12, 3), method=expected["method"], epochs=3, seed=2, vocabulary=bible.vocabulary)
    model.fit(counts[train])
    assert len(test) == expected["heldout_documents"] and unigram == expected["unigram_perplexity"]
    assert [one["words"] for one in model.topics(8)] == expected["topics"]
    themes = [[{"uses": [u + 1 for u in one["uses"]], "words": one["words"]} for one in model.themes(1, 8)]]
    assert themes == expected["upper"]
    assert model.elbo_ == expected["elbo"]
    assert model.perplexity(counts[test]) == pytest.approx(expected["heldout_perplexity"], rel=1e-12)
    assert model.perplexity(counts[test], hide="words") == pytest.approx(expected["completion_perplexity"], rel=1e-12)
    assert model.score(counts[test]) == -np.log(model.perplexity(counts[test]))


def test_topics_separate_words_that_never_occur_together() -> None:
    vectorizer = CountVectorizer()
    counts = vectorizer.fit_transform(SKY + TABLE)
    model = hyperprior.DEF(**SMALL).fit(counts)
    active = model.transform(counts)
    assert active.shape == (80, 4) and model.components_.shape == (4, 8) and model.layer_weights_[0].shape == (2, 4)
    words = vectorizer.get_feature_names_out()
    of_sky = {"cloud", "moon", "star", "sun"}
    for place, topic in enumerate(model.topics(3, words)):
        top = [words[v] for v in np.argsort(-model.components_[place], kind="stable")[:3]]
        assert topic["words"] == top
        if topic["share"] > 0.1:
            assert len({word in of_sky for word in topic["words"]}) == 1, topic
            is_sky = topic["words"][0] in of_sky
            means = active[:40, place].mean(), active[40:, place].mean()
            assert (means[0] > means[1]) == is_sky
    # Dense arrays, other dtypes and other sparse formats give the same result.
    for other in (counts.toarray(), counts.astype(np.float32), counts.tocoo(), sparse.csr_array(counts), counts.tocsc()):
        assert np.array_equal(model.transform(other), active)


def test_a_pipeline_can_be_cross_validated() -> None:
    rng = np.random.default_rng(1)
    text = [" ".join(rng.permutation((line + " " + rng.choice(SKY + TABLE)).split())) for line in SKY + TABLE]
    pipeline = make_pipeline(CountVectorizer(), hyperprior.DEF(**SMALL))
    scores = cross_val_score(pipeline, rng.permutation(text), cv=3, error_score="raise")
    # Guessing among eight words at random would score -ln 8.
    assert scores.shape == (3,) and (scores > -np.log(8)).all(), scores
    pipeline.set_params(def__layers=(3,)).fit(text)
    assert list(pipeline.get_feature_names_out()) == ["def0", "def1", "def2"]


def test_pickles_and_clones_give_the_same_results() -> None:
    counts = CountVectorizer().fit_transform(SKY + TABLE)
    model = hyperprior.DEF(**SMALL).fit(counts)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.transform(counts), model.transform(counts))
    other = clone(model).fit(counts)
    assert np.array_equal(other.components_, model.components_)
    assert not np.array_equal(clone(model).set_params(seed=2).fit(counts).components_, model.components_)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"layers": (0,)}, "layers=0"),
        ({"layers": ("cubic:3",)}, "cubic"),
        ({"layers": ("3",)}, "is not a layer"),
        ({"method": "nuts"}, "mean-field, conway-maxwell, hvm"),
        ({"epochs": 0}, "epochs=0"),
        ({"draws": 3}, "use 1, 2, 4 or 8 draws"),
        ({"weights": "heavy"}, "heavy"),
        ({"vocabulary": ["one"]}, "vocabulary has 1 terms"),
    ],
)
def test_invalid_settings_are_explained(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hyperprior.DEF(**(SMALL | params)).fit(np.eye(4, dtype=int) + 1)


def test_numbers_that_are_not_counts_are_refused() -> None:
    for X, message in [([[0.5, 1.0]], "which is not a count"), ([[-1, 2]], "Negative values"), ([[1e9, 1]], "the largest is")]:
        with pytest.raises(ValueError, match=message):
            hyperprior.DEF(**SMALL).fit(np.array(X))
    with pytest.raises(ValueError, match="at least one document must have a word"):
        hyperprior.DEF(**SMALL).fit(np.zeros((3, 2), dtype=int))


class Rounded(hyperprior.DEF):
    """Rounds the input up to counts: scikit-learn's checks mostly use other numbers. Negative numbers are unchanged."""

    def _rows(self, X: Any, reset: bool) -> Any:
        return rows(self, X, reset, lambda x: np.where(x < 0, x, np.ceil(x)))


@parametrize_with_checks([Rounded(layers=(3, 2), epochs=2, steps=20, batch=16)])
def test_scikit_learn_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


def test_without_rounding_the_checks_fail() -> None:
    """A check that uses other numbers than counts fails with that error."""
    with pytest.raises(ValueError, match="which is not a count"):
        check_estimators_pickle("DEF", hyperprior.DEF(layers=(3,), epochs=1))


def test_scikit_learn_is_optional() -> None:
    """With NumPy alone the estimator has its own versions of scikit-learn's methods."""
    code = """
import sys
for name in ("sklearn", "scipy", "pandas", "arviz"):
    sys.modules[name] = None
import numpy as np, hyperprior
model = hyperprior.DEF(layers=(2,), epochs=2, steps=20)
counts = np.array([[1, 0, 2], [0, 3, 1], [2, 2, 0]])
try:
    model.transform(counts)
except AttributeError as error:
    print(error)
print(model.fit_transform(counts).shape, list(model.get_feature_names_out()), model.get_params()["layers"])
try:
    model.transform(counts[:, :2])
except ValueError as error:
    print(error)
try:
    hyperprior.bible().tocsr()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "this DEF is not fitted yet; call fit first",
        "(3, 2) ['def0', 'def1'] (2,)",
        "X has 2 features, but DEF is expecting 3 features as input",
        "tocsr() needs SciPy; pip install 'hyperprior[sklearn]'",
    ], done.stdout + done.stderr
