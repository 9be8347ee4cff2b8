"""The training rows most similar to a row vote for their labels: an inverted index, without training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import FormatError
from labelwood.hybrid import words_of
from labelwood.packed.base import PicklesFieldsOnly, restored_csr
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, TopK, from_scipy

PREFIX = "similar."
_TERMS = 20  # entries of a row that are compared, the largest
_COMMON = 0.05  # share of the rows from which a column says too little to be looked up
_FEW = 100  # rows of a column that is never too common


@dataclass(frozen=True)
class SimilarRows(PicklesFieldsOnly):
    """Training rows by column, and their labels.

    ``postings`` has, in row c, the training rows with column c and their values there; of each training row the 20
    largest entries are kept, of the row scaled to unit length. Columns in more than a twentieth of the rows are left
    out. ``labels`` is the label matrix. ``n_neighbors`` training rows vote.
    """

    postings: CSR
    labels: CSR
    n_neighbors: int

    @classmethod
    def learn(cls, X: CSR, Y: CSR, n_neighbors: int) -> SimilarRows:
        """The index of training rows."""
        rows = words_of(X).unit_rows()
        kept = _core.keep_largest(rows.indptr, np.abs(rows.data), _TERMS)
        columns = rows.indices[kept]
        known = np.bincount(columns, minlength=X.n_cols) <= max(_FEW, _COMMON * X.n_rows)
        kept = kept[known[columns]]
        owners = np.searchsorted(rows.indptr, kept, side="right") - 1
        indptr = np.searchsorted(owners, np.arange(X.n_rows + 1)).astype(np.int64)
        small = CSR(indptr, rows.indices[kept], rows.data[kept], X.n_cols)
        return cls(from_scipy(small.to_scipy().T.tocsr()), Y, n_neighbors)

    def lists(self, X: CSR, width: int, run: RunContext) -> tuple[TopK, TopK]:
        """The labels of similar rows by their share of the votes, and by the similarity of the nearest row.

        A vote is a squared similarity.
        """
        with run.phase("similar rows", X.n_rows) as progress:
            voted, votes, nearest, similarities = _core.vote_of_similar_rows(
                X, self.postings, self.labels, _TERMS, self.n_neighbors, width, run.n_threads, progress
            )
        return TopK(voted, votes), TopK(nearest, similarities)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What to save."""
        found: dict[str, npt.NDArray[Any]] = {"indptr": self.postings.indptr, "indices": self.postings.indices}
        found |= {
            "data": self.postings.data,
            "labels.indptr": self.labels.indptr,
            "labels.indices": self.labels.indices,
        }
        return {PREFIX + name: array for name, array in found.items()}

    @classmethod
    def restore(cls, arrays: Mapping[str, Any], n_neighbors: int, n_labels: int, n_features: int) -> SimilarRows:
        """The inverse of :meth:`arrays`; checks every invariant."""
        indices = arrays[PREFIX + "labels.indices"]
        ones = {**arrays, PREFIX + "labels.data": np.ones(len(indices), np.float32)}
        labels = restored_csr(ones, PREFIX + "labels.", n_labels)
        postings = restored_csr(arrays, PREFIX, labels.n_rows)
        if postings.n_rows != n_features:
            raise FormatError(f"the index of similar rows must have {n_features} columns; got {postings.n_rows}")
        return cls(postings, labels, n_neighbors)
