"""Rows with vectors: a sparse matrix with dense columns beside it, such as words and a sentence embedding.

A dense matrix is a hybrid without sparse columns. The vectors stay in the type in which they came (float32, float16 or
bfloat16) and where they are, also in a mapped file: kernels widen a few rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR, F32, F64, TopK

_BLOCK = 4096  # rows that are widened at a time


@dataclass(frozen=True)
class Hybrid(CSR):
    """A CSR matrix with ``vectors``, dense columns [rows, width] to the right of the sparse ones.

    ``n_cols`` counts both. ``indptr``, ``indices`` and ``data`` are the sparse part. The vectors are float32, float16,
    or the bits of bfloat16 as uint16; they are finite and lie row by row in memory.
    """

    vectors: npt.NDArray[Any]
    factors: F32 | None = None  # by which kernels multiply the vectors when they read them; None: 1

    @property
    def dense_part(self) -> npt.NDArray[Any]:
        """The vectors."""
        return self.vectors

    @property
    def vector_factors(self) -> F32 | None:
        """The factors of the vectors."""
        return self.factors

    @property
    def width(self) -> int:
        """Number of dense columns."""
        return int(self.vectors.shape[1])

    @property
    def n_sparse(self) -> int:
        """Sparse columns."""
        return self.n_cols - self.width

    @property
    def nnz(self) -> int:
        """Number of stored entries, dense ones included."""
        return len(self.indices) + self.vectors.size

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays."""
        return super().nbytes + self.vectors.nbytes

    @property
    def sparse(self) -> CSR:
        """The sparse part."""
        return CSR(self.indptr, self.indices, self.data, self.n_sparse)

    def check(self) -> Hybrid:
        """Check every invariant and return self."""
        self.sparse.check()
        check_vectors(self.vectors, "CSR")
        if len(self.vectors) != self.n_rows:
            raise LabelwoodError(f"CSR: {self.n_rows} sparse rows have {len(self.vectors)} vectors")
        return self

    def rows(self, start: int, stop: int) -> Hybrid:
        """Return rows ``start`` to ``stop``; indices, data and vectors are views."""
        return self._with_factors(beside(self.sparse.rows(start, stop), self.vectors[start:stop]), slice(start, stop))

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Hybrid:
        """Return a copy of the given rows, in the given order."""
        return self._with_factors(beside(self.sparse.take(rows), self.vectors[rows]), rows)

    def _with_factors(self, part: Hybrid, rows: Any) -> Hybrid:
        return part if self.factors is None else replace(part, factors=self.factors[rows])

    def to_scipy(self) -> Any:
        """Return the matrix as a scipy array, dense columns included."""
        return self.to_csr().to_scipy()

    def unit_rows(self) -> CSR:
        """The rows scaled to unit length, as a sparse matrix."""
        return self.to_csr().unit_rows()

    def blocks(self) -> Iterator[CSR]:
        """Some rows at a time as a sparse matrix, so that the whole never is one."""
        for start in range(0, max(self.n_rows, 1), _BLOCK):
            yield self.rows(start, min(start + _BLOCK, self.n_rows)).to_csr()

    def to_csr(self) -> CSR:
        """The same matrix with sparse columns only; zeros of the vectors are dropped."""
        wide = widened(self.vectors)
        if self.factors is not None:
            wide = wide * self.factors[:, None]
        kept = wide != 0
        counts = np.diff(self.indptr) + kept.sum(axis=1)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
        lengths = np.stack([np.diff(self.indptr), kept.sum(axis=1)], axis=1).ravel()
        is_dense = np.repeat(np.tile([False, True], self.n_rows), lengths)
        indices[~is_dense], data[~is_dense] = self.indices, self.data
        indices[is_dense] = self.n_sparse + np.nonzero(kept)[1]
        data[is_dense] = wide[kept]
        return CSR(indptr, indices, data, self.n_cols)

    def unit_factors(self, sparse_factors: F32, vector_weight: float) -> tuple[F32, F32]:
        """The factors of the sparse parts and of the vectors that make every row of unit length.

        ``sparse_factors`` scale the sparse parts to unit length. A vector is ``vector_weight`` times as long as the
        sparse part of its row, unless one of them is zero.
        """
        of_vectors = inverse(self.lengths()) * vector_weight
        total = inverse(np.sqrt((sparse_factors > 0).astype(np.float64) + (of_vectors > 0) * vector_weight**2))
        return (sparse_factors * total).astype(np.float32), (of_vectors * total).astype(np.float32)

    def scaled(self, sparse_factors: F32 | None, vector_factors: F32 | None) -> Hybrid:
        """The rows times factors; those of the vectors are kept beside them."""
        data = self.data
        if sparse_factors is not None:
            data = data * np.repeat(sparse_factors, np.diff(self.indptr))
        return Hybrid(self.indptr, self.indices, data, self.n_cols, self.vectors, vector_factors)

    def lengths(self) -> F64:
        """The length of each vector."""
        return _core.vector_lengths(self)


def beside(sparse: CSR, vectors: npt.NDArray[Any]) -> Hybrid:
    """Sparse rows with vectors to their right."""
    return Hybrid(sparse.indptr, sparse.indices, sparse.data, sparse.n_cols + vectors.shape[1], vectors)


def without_words(vectors: npt.NDArray[Any]) -> Hybrid:
    """Vectors alone."""
    nothing = np.empty(0, np.int32), np.empty(0, np.float32)
    return Hybrid(np.zeros(len(vectors) + 1, np.int64), *nothing, vectors.shape[1], vectors)


def widened(vectors: npt.NDArray[Any]) -> F32:
    """Vectors as float32."""
    if vectors.dtype == np.uint16:
        wide: F32 = (vectors.astype(np.uint32) << 16).view(np.float32)
        return wide
    return vectors.astype(np.float32, copy=False)


def check_vectors(vectors: npt.NDArray[Any], owner: str, what: str = "X") -> None:
    """Refuse vectors with NaN or infinity, some rows at a time."""
    for start in range(0, len(vectors), _BLOCK):
        finite = np.isfinite(widened(vectors[start : start + _BLOCK])).all(axis=1)
        if not finite.all():
            first = start + int(np.argmin(finite))
            raise LabelwoodError(
                f"{owner}: {what} must be finite; it contains NaN or infinity: see row {first} (the first is 0)"
            )


def inverse(lengths: F64) -> F64:
    """1 / length, 0 for rows of zeros."""
    found: F64 = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 1e-38)
    return found


def as_layout(X: CSR, n_sparse: int, width: int) -> CSR:
    """The rows with ``n_sparse`` sparse columns and ``width`` dense ones, whatever they are now."""
    if width == X.width and n_sparse == X.n_cols - X.width:
        return X
    whole = X.to_csr() if isinstance(X, Hybrid) else X
    if width == 0:
        return whole
    rows, is_dense = np.repeat(np.arange(X.n_rows), np.diff(whole.indptr)), whole.indices >= n_sparse
    vectors = np.zeros((X.n_rows, width), np.float32)
    vectors[rows[is_dense], whole.indices[is_dense] - n_sparse] = whole.data[is_dense]
    indptr = np.concatenate([[0], np.cumsum(~is_dense)])[whole.indptr].astype(np.int64)
    return beside(CSR(indptr, whole.indices[~is_dense], whole.data[~is_dense], n_sparse), vectors)


def as_sparse(X: CSR) -> CSR:
    """The rows with sparse columns only."""
    return X.to_csr() if isinstance(X, Hybrid) else X


def words_of(X: CSR) -> CSR:
    """The rows without their vectors, with as many columns as before."""
    return CSR(X.indptr, X.indices, X.data, X.n_cols) if isinstance(X, Hybrid) else X


def topk_in_blocks(X: CSR, topk: Callable[[CSR], TopK]) -> TopK:
    """The answers of a model that takes sparse rows; a hybrid is turned into sparse rows block by block."""
    if not isinstance(X, Hybrid):
        return topk(X)
    labels, scores = zip(*(topk(block) for block in X.blocks()), strict=True)
    return TopK(np.concatenate(labels), np.concatenate(scores))
