"""Re-ranking for rare labels: tree scores combined with the nearness of a row to the labels' mean rows.

Trees see few rows of a rare label, but its mean row is still a fair classifier. As PfastreXML does at prediction, the
candidates of the trees are ordered by ``share * log(tree score) + (1 - share) * log(nearness)``,
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
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, F64, TopK

CANDIDATES = 100  # labels that the trees propose for every row
SHARE = 0.8
SHARPNESS = 30.0
MEANS = "means."


@dataclass(frozen=True)
class TailReranker:
    """The unit-length mean rows of the labels, ``n_labels x n_features``."""

    means: CSR

    @classmethod
    def learn(cls, X: CSR, Y: CSR, run: RunContext, *, most: int = 0) -> TailReranker:
        """The means of prepared rows; ``most`` is the number of entries kept of each mean (0: all)."""
        with run.phase("label means") as progress:
            indptr, indices, data, _ = _core.label_vectors(X.unit_rows(), Y, most, run.n_threads, progress)
        return cls(CSR(indptr, indices, data, X.n_cols))

    def order(self, X: CSR, top: TopK, k: int, run: RunContext) -> TopK:
        """The best k of the candidates; a score is ``exp`` of the combination, between 0 and 1."""
        with run.phase("rerank", X.n_rows) as progress:
            options = {"share": SHARE, "sharpness": SHARPNESS, "k": k}
            labels, scores = _core.rerank(
                X.unit_rows(), self.means, top.labels, top.scores, options, run.n_threads, progress
            )
        return TopK(labels, scores)

    def nearness(self, X: CSR, rows: npt.NDArray[Any], labels: npt.NDArray[Any]) -> F64:
        """The logarithm of the nearness of each (row, label) pair."""
        unit = X.unit_rows().to_scipy()
        cosines: F64 = unit[rows].multiply(self.means.to_scipy()[labels]).sum(axis=1)
        near: F64 = -np.logaddexp(0, SHARPNESS / 2 * (2 - 2 * cosines))
        return near

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What to save."""
        return {MEANS + name: getattr(self.means, name) for name in ("indptr", "indices", "data")}

    @classmethod
    def restore(cls, arrays: Mapping[str, Any], n_labels: int, n_features: int) -> TailReranker:
        """The inverse of :meth:`arrays`; checks every invariant."""
        indptr: Any = arrays[MEANS + "indptr"]
        indices: Any = arrays[MEANS + "indices"]
        data: Any = arrays[MEANS + "data"]
        types = (indptr.dtype, indices.dtype, data.dtype)
        if types != (np.int64, np.int32, np.float32) or indptr.shape != (n_labels + 1,):
            raise FormatError(f"the means must be {n_labels} rows of int64, int32 and float32")
        return cls(CSR(indptr, indices, data, n_features).check())
