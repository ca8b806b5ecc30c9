"""The built-in corpus."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _hyperprior


class Counts(NamedTuple):
    """Word counts as a compressed sparse row matrix: a row for each document, a column for each term."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    data: NDArray[np.float64]
    names: list[str]
    vocabulary: list[str]

    def __repr__(self) -> str:
        documents, terms = self.shape
        return f"<hyperprior.Counts: {documents} documents, {terms} terms, {len(self.data)} nonzero counts>"

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of documents and terms."""
        return len(self.names), len(self.vocabulary)

    def tocsr(self) -> Any:
        """A SciPy sparse matrix that shares the memory of the counts."""
        try:
            from scipy.sparse import csr_matrix
        except ImportError:
            raise ImportError("tocsr() needs SciPy; pip install 'hyperprior[sklearn]'") from None
        return csr_matrix((self.data, self.indices, self.indptr), shape=self.shape, copy=False)


def bible() -> Counts:
    """The King James Bible, one document for each of its 1189 chapters."""
    return Counts(*_hyperprior.bible())
