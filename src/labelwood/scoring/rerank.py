"""Re-ranking for rare labels: tree scores combined with the nearness of a row to the labels' mean rows.

Trees see few rows of a rare label, but its mean row is still a fair classifier. As PfastreXML does at prediction, the
candidates of the trees are ordered by ``share * log(tree score) + (1 - share) * log(nearness)``,
where ``nearness = 1 / (1 + exp(sharpness / 2 * distance^2))`` of unit-length rows and the labels' means.
Jain, Prabhu and Varma, Extreme multi-label loss functions, KDD 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import FormatError
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, F32, F64, TopK

CANDIDATES = 100  # labels that the trees propose for every row
SHARE = 0.8
SHARPNESS = 30.0
MEANS = "means."
_PAIRS = 50_000  # (row, label) pairs whose cosines are taken at once


@dataclass(frozen=True)
class TailReranker:
    """The directions of the labels' mean rows (``n_labels x n_features``, unit length) and the means' lengths.

    Means scaled to unit length have the length 1. ``share`` is the weight of the trees.
    """

    means: CSR
    lengths: F32
    share: float = SHARE

    @classmethod
    def learn(
        cls, X: CSR, Y: CSR, run: RunContext, *, most: int = 0, unit: bool = True, share: float = SHARE
    ) -> TailReranker:
        """The means of prepared rows; ``most`` is the number of entries kept of each mean (0: all)."""
        rows = X.unit_rows()
        with run.phase("label means") as progress:
            indptr, indices, data, _ = _core.label_vectors(rows, Y, most, run.n_threads, progress)
        means = CSR(indptr, indices, data, X.n_cols)
        return cls(means, np.ones(Y.n_cols, np.float32) if unit else _lengths(rows, Y, means), share)

    def order(self, X: CSR, top: TopK, k: int, run: RunContext) -> TopK:
        """The best k of the candidates; a score is ``exp`` of the combination, between 0 and 1."""
        with run.phase("rerank", X.n_rows) as progress:
            options = {"share": self.share, "sharpness": SHARPNESS, "k": k}
            labels, scores = _core.rerank(
                X.unit_rows(), self.means, self.lengths, top.labels, top.scores, options, run.n_threads, progress
            )
        return TopK(labels, scores)

    def nearness(self, X: CSR, rows: npt.NDArray[Any], labels: npt.NDArray[Any]) -> F64:
        """The logarithm of the nearness of each (row, label) pair."""
        lengths = self.lengths[labels].astype(np.float64)
        distance = 1 + lengths**2 - 2 * lengths * _cosines(X.unit_rows(), self.means, rows, labels)
        near: F64 = -np.logaddexp(0, SHARPNESS / 2 * distance)
        return near

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What to save; the lengths only if they are not all 1."""
        found = {MEANS + name: getattr(self.means, name) for name in ("indptr", "indices", "data")}
        return found if (self.lengths == 1).all() else {**found, MEANS + "lengths": self.lengths}

    @classmethod
    def restore(
        cls, arrays: Mapping[str, Any], n_labels: int, n_features: int, *, share: float = SHARE
    ) -> TailReranker:
        """The inverse of :meth:`arrays`; checks every invariant."""
        indptr: Any = arrays[MEANS + "indptr"]
        indices: Any = arrays[MEANS + "indices"]
        data: Any = arrays[MEANS + "data"]
        lengths: Any = arrays.get(MEANS + "lengths", np.ones(n_labels, np.float32))
        types = (indptr.dtype, indices.dtype, data.dtype, lengths.dtype)
        shapes = (indptr.shape, lengths.shape)
        if types != (np.int64, np.int32, np.float32, np.float32) or shapes != ((n_labels + 1,), (n_labels,)):
            raise FormatError(f"the means must be {n_labels} rows of int64, int32 and float32")
        if not ((lengths >= 0) & (lengths <= 1 + 1e-3)).all():
            raise FormatError("the lengths of the means must be between 0 and 1")
        return cls(CSR(indptr, indices, data, n_features).check(), lengths, share)


def _cosines(rows: CSR, means: CSR, which: npt.NDArray[Any], labels: npt.NDArray[Any]) -> F64:
    """The cosine of each pair of a unit-length row and the direction of a mean."""
    found: F64 = rows.to_scipy()[which].multiply(means.to_scipy()[labels]).sum(axis=1)
    return found


def _lengths(rows: CSR, Y: CSR, means: CSR) -> F32:
    """The length of each label's mean row: the mean of its rows' projections on the mean's direction."""
    which, labels = np.repeat(np.arange(Y.n_rows), np.diff(Y.indptr)), Y.indices
    sums = np.zeros(Y.n_cols)
    for at in range(0, len(labels), _PAIRS):
        part = slice(at, at + _PAIRS)
        np.add.at(sums, labels[part], _cosines(rows, means, which[part], labels[part]))
    return (sums / np.maximum(np.bincount(labels, minlength=Y.n_cols), 1)).clip(0).astype(np.float32)
