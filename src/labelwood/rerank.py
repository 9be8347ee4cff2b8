"""Re-ranking for the tail: tree scores combined with how near a row is to the labels' mean rows.

Trees see few rows of a rare label; its mean row is a fair classifier of it all the same. As PfastreXML does at
prediction, the candidates of the trees are ordered by ``share * log(tree score) + (1 - share) * log(nearness)``,
where ``nearness = 1 / (1 + exp(sharpness / 2 * distance^2))`` of unit-length rows and unit-length means.
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
from labelwood.progress import Run
from labelwood.sparse import CSR, I32, TopK

CANDIDATES = 100  # labels that the trees propose for every row
SHARE = 0.8
SHARPNESS = 30.0
_PREFIX = "means."


@dataclass(frozen=True)
class TailReranker:
    """The unit-length mean rows of the labels, ``n_labels x n_features``."""

    means: CSR

    @classmethod
    def learn(cls, X: CSR, Y: CSR, run: Run, *, most: int = 0) -> TailReranker:
        """The means of prepared rows; ``most`` keeps the largest entries of each (0: all)."""
        unit = _core.unit_rows(X.indptr, X.indices, X.data)
        with run.phase("label means") as progress:
            indptr, indices, data = _core.label_vectors(
                X.indptr, X.indices, unit, X.n_cols, Y.indptr, Y.indices, Y.n_cols, most, run.n_threads,
                progress,
            )  # fmt: skip
        return cls(CSR(indptr, indices, data, X.n_cols))

    def order(self, X: CSR, top: TopK, k: int) -> TopK:
        """The best k of the candidates; scores are ``exp`` of the combination, so they fall from 1 to 0."""
        rows = np.repeat(np.arange(X.n_rows), top.labels.shape[1]).reshape(top.labels.shape)
        known = top.labels >= 0
        nearness = self.nearness(X, rows[known], top.labels[known])
        combined = np.full(top.labels.shape, -np.inf)
        with np.errstate(divide="ignore"):
            combined[known] = SHARE * np.log(top.scores[known]) + (1 - SHARE) * nearness
        scores = np.exp(combined).astype(np.float32)
        best = np.lexsort((np.where(known, top.labels, np.iinfo(np.int32).max), -scores), axis=1)[:, :k]
        labels: I32 = np.take_along_axis(np.where(scores > 0, top.labels, -1), best, axis=1)
        lacking = ((0, 0), (0, k - labels.shape[1]))  # no more than the candidates are ordered
        return TopK(
            np.pad(labels, lacking, constant_values=-1),
            np.pad(np.take_along_axis(scores, best, axis=1), lacking),
        )

    def nearness(self, X: CSR, rows: npt.NDArray[Any], labels: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The logarithm of how near rows are to labels, of each (row, label) pair."""
        near: npt.NDArray[np.float64] = -np.logaddexp(
            0, SHARPNESS / 2 * (2 - 2 * self._cosines(X, rows, labels))
        )
        return near

    def _cosines(self, X: CSR, rows: npt.NDArray[Any], labels: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Of each (row, label) pair, in pieces that fit in memory."""
        unit = CSR(X.indptr, X.indices, _core.unit_rows(X.indptr, X.indices, X.data), X.n_cols).to_scipy()
        means = self.means.to_scipy()
        found = np.empty(len(rows))
        for start in range(0, len(rows), 1 << 16):
            part = slice(start, start + (1 << 16))
            found[part] = unit[rows[part]].multiply(means[labels[part]]).sum(axis=1)
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What to save."""
        return {_PREFIX + name: getattr(self.means, name) for name in ("indptr", "indices", "data")}

    @classmethod
    def restore(cls, arrays: Mapping[str, Any], n_labels: int, n_features: int) -> TailReranker:
        """The inverse of :meth:`arrays`; checks every invariant."""
        indptr: Any = arrays[_PREFIX + "indptr"]
        indices: Any = arrays[_PREFIX + "indices"]
        data: Any = arrays[_PREFIX + "data"]
        types = (indptr.dtype, indices.dtype, data.dtype)
        if types != (np.int64, np.int32, np.float32) or indptr.shape != (n_labels + 1,):
            raise FormatError(f"the means must be {n_labels} rows of int64, int32 and float32")
        return cls(CSR(indptr, indices, data, n_features).check())
