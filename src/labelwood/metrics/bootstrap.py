"""Confidence intervals: of means over rows by the bootstrap, of shares by Wilson's formula.

Intervals exist for the metrics that are means over rows: P, R, nDCG. Two models are compared on the same rows by the
interval of their difference, which is much narrower than the two separate intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.metrics.definitions import PER_ROW
from labelwood.metrics.inputs import Lists, Truth, read
from labelwood.metrics.judged import judge
from labelwood.sparse import F64

_NORMAL = 1.959963984540054  # 95 % of a normal distribution lie within this many standard deviations


class Interval(NamedTuple):
    """A mean and its confidence interval."""

    mean: float
    low: float
    high: float


def share_interval(hits: float, count: float) -> Interval:
    """The share ``hits / count`` of independent trials and its 95 % interval (Wilson, 1927).

    >>> [round(value, 3) for value in share_interval(8, 10)]
    [0.8, 0.49, 0.943]
    """
    share = hits / count
    middle = (share + _NORMAL**2 / (2 * count)) / (1 + _NORMAL**2 / count)
    half = _NORMAL * np.sqrt(share * (1 - share) / count + _NORMAL**2 / (4 * count**2)) / (1 + _NORMAL**2 / count)
    return Interval(share, min(share, max(0.0, float(middle - half))), max(share, min(1.0, float(middle + half))))


def bootstrap_intervals(
    Y: Truth, top: Lists, ks: Sequence[int], *, n_resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> dict[str, Interval]:
    """Return ``{"P@1": Interval(...), ...}`` for every metric that is a mean over rows.

    >>> from labelwood.sparse import TopK, from_lists
    >>> Y = from_lists([[0], [1], [0], [1]], n_cols=2)
    >>> top = TopK(np.array([[0], [1], [0], [0]], np.int32), np.ones((4, 1), np.float32))
    >>> bootstrap_intervals(Y, top, [1])["P@1"]
    Interval(mean=0.75, low=0.25, high=1.0)
    """
    return _intervals(_per_row(Y, top, ks), n_resamples, confidence, seed)


def paired_intervals(
    first: tuple[Truth, Lists], second: tuple[Truth, Lists], ks: Sequence[int], *, n_resamples: int = 1000,
    confidence: float = 0.95, seed: int = 0,
) -> dict[str, Interval]:  # fmt: skip
    """Compare two predictions of the same rows by second - first; each comes with the truth in its own label ids."""
    one, other = _per_row(*first, ks), _per_row(*second, ks)
    sizes = [len(per_row["P@" + str(ks[0])]) for per_row in (one, other)]
    if sizes[0] != sizes[1]:
        raise LabelwoodError(f"metrics: both predictions must be of the same rows; got {sizes[0]} and {sizes[1]}")
    return _intervals({name: other[name] - one[name] for name in one}, n_resamples, confidence, seed)


def _per_row(Y: Truth, top: Lists, ks: Sequence[int]) -> dict[str, F64]:
    given = read(Y, top)
    judged = judge(given.truth, given.top)
    return {f"{name}@{k}": metric(judged, k) for name, metric in PER_ROW.items() for k in ks}


def _intervals(values: dict[str, F64], n_resamples: int, confidence: float, seed: int) -> dict[str, Interval]:
    if n_resamples < 1 or not 0 < confidence < 1:
        raise LabelwoodError(
            "metrics: n_resamples must be at least 1 and confidence between 0 and 1; "
            f"got {n_resamples} and {confidence}"
        )
    table = np.stack(list(values.values()), axis=1)
    n_rows, random = len(table), np.random.default_rng(seed)
    means = np.empty((n_resamples, table.shape[1]))
    for number in range(n_resamples):
        drawn = np.bincount(random.integers(n_rows, size=n_rows), minlength=n_rows)
        means[number] = drawn @ table / n_rows
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return {
        name: Interval(float(column.mean()), float(low[place]), float(high[place]))
        for place, (name, column) in enumerate(values.items())
    }
