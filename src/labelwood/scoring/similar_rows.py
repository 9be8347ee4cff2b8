"""The training rows most similar to a row vote for their labels, without training.

Words are compared through an inverted index, vectors with those of all training rows, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import FormatError
from labelwood.hybrid import Hybrid, as_layout, inverse, widened, words_of
from labelwood.packed.base import PicklesFieldsOnly, restored_csr
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, I32, TopK, from_scipy

PREFIX = "similar."
_TERMS = 20  # entries of a row that are compared, the largest
_COMMON = 0.05  # share of the rows from which a column says too little to be looked up
_BLOCK = 4096  # rows that are widened at a time
_MOST_VOTED = 1000  # labels of similar rows among which the allowed ones are looked for
_FEW = 100  # rows of a column that is never too common


@dataclass(frozen=True)
class SimilarRows(PicklesFieldsOnly):
    """Training rows by column, and their labels.

    ``postings`` has, in row c, the training rows with column c and their values there; of each training row the 20
    largest entries are kept, of the row scaled to unit length. Columns in more than a twentieth of the rows are left
    out. ``labels`` is the label matrix. ``n_neighbors`` training rows vote. ``vectors`` are the vectors of the training
    rows, of unit length; None if rows have none.
    """

    postings: CSR
    labels: CSR
    n_neighbors: int
    vectors: npt.NDArray[np.float16] | None = None

    @property
    def n_lists(self) -> int:
        """The lists of labels for a row: two by words, two by vectors."""
        return 2 * (self._has_words + (self.vectors is not None))

    @property
    def _has_words(self) -> bool:
        return self.vectors is None or self.postings.n_rows > self.vectors.shape[1]

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
        return cls(from_scipy(small.to_scipy().T.tocsr()), Y, n_neighbors, _unit_vectors(X))

    def lists(self, X: CSR, width: int, run: RunContext) -> list[TopK]:
        """The labels of similar rows by their share of the votes, then by the similarity of the nearest row.

        Each of the two by words, by vectors, or by both. A vote is a squared similarity.
        """
        by_votes, by_nearest = [], []
        if self._has_words:
            with run.phase("similar rows", X.n_rows) as progress:
                found = _core.vote_of_similar_rows(
                    X, self.postings, self.labels, _TERMS, self.n_neighbors, width, run.n_threads, progress
                )
            by_votes.append(TopK(*found[:2]))
            by_nearest.append(TopK(*found[2:]))
        if self.vectors is not None:
            n_columns = self.vectors.shape[1]
            rows = as_layout(X, self.postings.n_rows - n_columns, n_columns)
            assert isinstance(rows, Hybrid)
            bits = self.vectors.view(np.uint16)
            with run.phase("similar vectors", X.n_rows) as progress:
                found = _core.vote_of_similar_vectors(
                    widened(rows.vectors), bits, self.labels, self.n_neighbors, width, run.n_threads, progress
                )
            by_votes.append(TopK(*found[:2]))
            by_nearest.append(TopK(*found[2:]))
        return [*by_votes, *by_nearest]

    def votes(self, X: CSR, width: int, run: RunContext) -> list[TopK]:
        """The allowed labels of similar rows by their share of the votes: by words, by vectors, or by both."""
        n_votes = self.n_lists // 2
        if run.allowed is None:
            return self.lists(X, width, run)[:n_votes]
        found = self.lists(X, min(self.labels.n_cols, max(width, _MOST_VOTED)), run)[:n_votes]
        allowed = [within(top, run.allowed) for top in found]
        return [TopK(top.labels[:, :width].copy(), top.scores[:, :width].copy()) for top in allowed]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What to save."""
        found: dict[str, npt.NDArray[Any]] = {"indptr": self.postings.indptr, "indices": self.postings.indices}
        found |= {
            "data": self.postings.data,
            "labels.indptr": self.labels.indptr,
            "labels.indices": self.labels.indices,
        }
        if self.vectors is not None:
            found["vectors"] = self.vectors
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
        vectors = arrays.get(PREFIX + "vectors")
        if vectors is not None and not _are_sound(vectors, labels.n_rows, n_features):
            raise FormatError(f"the vectors of similar rows must be {labels.n_rows} finite rows of float16")
        return cls(postings, labels, n_neighbors, vectors)


def _unit_vectors(X: CSR) -> npt.NDArray[np.float16] | None:
    """The vectors of rows, of unit length; None if rows have none."""
    if not isinstance(X, Hybrid):
        return None
    found = np.empty(X.vectors.shape, np.float16)
    for start in range(0, X.n_rows, _BLOCK):
        part = X.rows(start, min(start + _BLOCK, X.n_rows))
        found[start : start + _BLOCK] = widened(part.vectors) * inverse(part.lengths())[:, None]
    return found


def _are_sound(vectors: npt.NDArray[Any], n_rows: int, n_features: int) -> bool:
    has_shape = vectors.dtype == np.float16 and vectors.ndim == 2 and len(vectors) == n_rows
    return has_shape and 1 <= vectors.shape[1] <= n_features and bool(np.isfinite(vectors).all())


def within(top: TopK, allowed: I32) -> TopK:
    """The lists without the labels that are not allowed."""
    kept = np.isin(top.labels, allowed)
    order = np.argsort(~kept, axis=1, kind="stable")
    labels, scores = np.where(kept, top.labels, -1), np.where(kept, top.scores, 0)
    return TopK(np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1).astype(np.float32))
