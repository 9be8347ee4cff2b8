"""Progressive validation: every example is predicted before it is learned."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR, F64, I32


@dataclass(frozen=True)
class Progressive:
    """The result of progressive validation, row by row.

    ``hits[i, j]`` is true if the label predicted at rank j for row i, before it was learned, is right. ``constant[i]``
    is the same for a predictor that always names the most frequent label so far.
    """

    hits: npt.NDArray[np.bool_]
    constant: npt.NDArray[np.bool_]

    @property
    def accuracy(self) -> float:
        """Share of rows whose first prediction was right."""
        return float(self.hits[:, 0].mean())

    def precision(self, k: int) -> float:
        """P@k over all rows."""
        return float(self.hits[:, :k].mean())

    @property
    def entropy_reduction(self) -> float:
        """log2(accuracy) - log2(accuracy of the constant predictor)."""
        return float(self.entropy_reduction_curve()[-1])

    def accuracy_curve(self) -> F64:
        """Accuracy over the rows up to each row."""
        return _running_mean(self.hits[:, 0])

    def entropy_reduction_curve(self) -> F64:
        """The entropy reduction up to each row; NaN until both predictors have been right once."""
        ours, theirs = _running_mean(self.hits[:, 0]), _running_mean(self.constant)
        curve = np.full(len(ours), np.nan)
        known = (ours > 0) & (theirs > 0)
        curve[known] = np.log2(ours[known]) - np.log2(theirs[known])
        return curve

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw accuracy and entropy reduction against rows seen, and write the picture to ``path``."""
        try:
            from matplotlib.figure import Figure  # noqa: PLC0415 - an optional dependency
        except ImportError:
            raise LabelwoodError("plot: matplotlib is needed; pip install 'labelwood[plots]'") from None
        figure = Figure(figsize=(7, 5), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        rows = np.arange(1, len(self.hits) + 1)
        above.plot(rows, self.accuracy_curve(), label="model")
        above.plot(rows, _running_mean(self.constant), label="most frequent label")
        above.set_ylabel("accuracy")
        above.legend()
        below.plot(rows, self.entropy_reduction_curve())
        below.set_ylabel("entropy reduction (bits)")
        below.set_xlabel("examples seen")
        figure.savefig(path)


def judge_progressive(predicted: I32, truth: CSR, known_counts: npt.NDArray[np.int64]) -> Progressive:
    """The result from predicted labels [rows, k] and true ones; ``known_counts`` are counts before the first row."""
    rows = np.repeat(np.arange(truth.n_rows, dtype=np.int64), np.diff(truth.indptr))
    keys = rows * truth.n_cols + truth.indices
    asked = np.arange(truth.n_rows, dtype=np.int64)[:, None] * truth.n_cols + predicted
    hits = np.isin(asked, keys) & (predicted >= 0)
    counts: list[Any] = np.pad(known_counts, (0, truth.n_cols - len(known_counts))).tolist()
    best = int(np.argmax(counts)) if any(counts) else -1
    constant = np.zeros(truth.n_rows, bool)
    bounds, labels = truth.indptr.tolist(), truth.indices.tolist()
    for row in range(truth.n_rows):
        own = labels[bounds[row] : bounds[row + 1]]
        constant[row] = best in own
        for label in own:
            counts[label] += 1
            if best < 0 or counts[label] > counts[best]:
                best = label
    return Progressive(hits, constant)


def _running_mean(right: npt.NDArray[np.bool_]) -> F64:
    return np.cumsum(right) / np.arange(1, len(right) + 1)
