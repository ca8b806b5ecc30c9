"""scikit-learn's latent Dirichlet allocation on the split that `heldout` wrote, and the perplexity of the same hidden words.

lda.py FOLDER TOPICS [PASSES [ALPHA,ETA ...]]. It is given what it is made for: the visible counts of a document, from which it fits a mixture of
topics; a hidden word has the share that the mixture gives it, as in the product. Every setting is measured now and then on the way,
on the hidden words themselves, and the best counts.
"""

import pathlib
import sys
import time

import numpy as np
import scipy.sparse
from sklearn.decomposition import LatentDirichletAllocation

FLOOR = 1e-12
BATCH = 256
KINDS = ("types", "tokens")
# Of a document's topics and of a topic's terms, where none are given; None is scikit-learn's own choice, 1 / TOPICS.
PRIORS = [(None, None), (0.1, 0.01), (0.1, 0.1), (0.1, 0.5), (0.3, 0.1), (0.3, 0.5), (0.3, 1.0)]


def read(path, terms_len):
    indices, data, starts = [], [], [0]
    for line in path.read_text().splitlines():
        for pair in line.split()[1:]:
            term, count = pair.split(":")
            indices.append(int(term))
            data.append(float(count))
        starts.append(len(indices))
    return scipy.sparse.csr_matrix((data, indices, starts), shape=(len(starts) - 1, terms_len))


def perplexity(model, seen, hidden):
    words = [np.asarray(half.sum(axis=1)).ravel() for half in (seen, hidden)]
    both = (words[0] > 0) & (words[1] > 0)
    seen, hidden = seen[both], hidden[both]
    mixture = model.transform(seen)
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(hidden.shape[0]), np.diff(hidden.indptr))
    shares = np.einsum("ik,ki->i", mixture[rows], topics[:, hidden.indices])
    return np.exp(-(hidden.data @ np.log(np.maximum(shares, FLOOR))) / hidden.data.sum())


def main(folder, topics, passes, priors):
    terms_len = int((folder / "terms_len.txt").read_text())
    train = read(folder / "train.ldac", terms_len)
    halves = {kind: [read(folder / f"{kind}_{half}.ldac", terms_len) for half in ("seen", "hidden")] for kind in KINDS}
    best = {kind: np.inf for kind in KINDS}
    looks = sorted({max(passes // 4, 1), max(passes // 2, 1), passes})

    def look(label, after, seconds, model):
        found = {kind: perplexity(model, *halves[kind]) for kind in KINDS}
        best.update({kind: min(best[kind], found[kind]) for kind in KINDS})
        print(f"| {label} | {after} | {seconds:.0f} |", " | ".join(f"{found[kind]:.1f}" for kind in KINDS), "|", flush=True)
        return found["types"]

    print("| LDA | passes | seconds | types | tokens |\n| --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(1)
    by_priors = {}
    for alpha, eta in priors:
        settings = dict(n_components=topics, doc_topic_prior=alpha, topic_word_prior=eta, random_state=1)
        model = LatentDirichletAllocation(**settings, learning_method="online", total_samples=train.shape[0])
        seconds = 0.0
        for done in range(1, passes + 1):
            began = time.perf_counter()
            order = rng.permutation(train.shape[0])
            for first in range(0, len(order), BATCH):
                model.partial_fit(train[order[first : first + BATCH]])
            seconds += time.perf_counter() - began
            if done in looks:
                found = look(f"online, α {alpha or '1/K'}, η {eta or '1/K'}", done, seconds, model)
                by_priors[alpha, eta] = min(found, by_priors.get((alpha, eta), np.inf))
    # In batches of everything a pass counts for less: with the priors that did best, and with the first.
    for alpha, eta in dict.fromkeys([min(by_priors, key=by_priors.get), priors[0]]):
        settings = dict(n_components=topics, doc_topic_prior=alpha, topic_word_prior=eta, random_state=1)
        began = time.perf_counter()
        model = LatentDirichletAllocation(**settings, learning_method="batch", max_iter=2 * passes).fit(train)
        look(f"batch, α {alpha or '1/K'}, η {eta or '1/K'}", 2 * passes, time.perf_counter() - began, model)
    print("best:", ", ".join(f"{kind} {best[kind]:.1f}" for kind in KINDS))


if __name__ == "__main__":
    folder, topics, *rest = sys.argv[1:]
    given = [tuple(float(x) for x in pair.split(",")) for pair in rest[1:]]
    main(pathlib.Path(folder), int(topics), int(rest[0]) if rest else 20, given or PRIORS)
