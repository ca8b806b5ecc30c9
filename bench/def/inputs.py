"""Writes the 256 documents of the step bench as LDA-C: the first of a corpus, or, without one, made up.

inputs.py FOLDER [DOCS VOCAB]; DOCS is LDA-C, plain or compressed with gzip, VOCAB has a term on each line.
"""

import gzip
import pathlib
import sys

import numpy as np

DOCUMENTS, TERMS = 256, 8000
SEED = 20160519
# Made up: lengths and counts about as in news, terms by Zipf's law, 40 subjects that prefer some terms.
WORDS, SPREAD, SUBJECTS, SHARE = 139, 0.5, 40, 0.9


def given(docs):
    opened = gzip.open if docs.suffix == ".gz" else open
    with opened(docs, "rt") as lines:
        return [line.rstrip("\n") for line, _ in zip((line for line in lines if len(line.split()) > 1), range(DOCUMENTS))]


def made_up():
    rng = np.random.default_rng(SEED)
    common = 1 / (10 + rng.permutation(TERMS))
    subjects = common * rng.gamma(0.03, size=(SUBJECTS, TERMS))
    subjects /= subjects.sum(axis=1, keepdims=True)
    lines = []
    for _ in range(DOCUMENTS):
        words = int(WORDS * np.exp(SPREAD * rng.normal()))
        shares = rng.dirichlet(np.full(SUBJECTS, 0.1)) @ subjects
        counts = rng.multinomial(words, (1 - SHARE) * common / common.sum() + SHARE * shares)
        terms = np.flatnonzero(counts)
        lines.append(" ".join([str(len(terms))] + [f"{term}:{counts[term]}" for term in terms]))
    return lines


def main(folder, docs=None, vocab=None):
    folder.mkdir(parents=True, exist_ok=True)
    lines = given(docs) if docs else made_up()
    terms = vocab.read_text().splitlines() if vocab else [str(v) for v in range(TERMS)]
    (folder / "docs.ldac").write_text("\n".join(lines) + "\n")
    (folder / "vocab.txt").write_text("\n".join(terms) + "\n")
    words = sum(int(pair.split(":")[1]) for line in lines for pair in line.split()[1:])
    nonzeros = sum(int(line.split()[0]) for line in lines)
    print(f"{len(lines)} documents, {len(terms)} terms, {nonzeros} nonzeros, {words} words")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
