"""Calibration: maps from a score to the probability that a label with this score is right.

A map is learnt on held-out rows, from the labels that the model lists for them. There are two kinds: *Platt*, a
logistic curve of the score's log-odds (two numbers), and *isotonic*, the best non-decreasing steps (Zadrozny and Elkan,
KDD 2002), interpolated between the middles of the steps so that different scores stay different. There is one map for
all labels, or one per group of labels: in a label tree the labels of one depth, because a score is a product along a
path. :func:`choose` takes the map of least log-loss on rows that it was not learnt from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.sparse import F64, I32, I64, TopK

Bool = npt.NDArray[np.bool_]

KINDS = ("platt", "isotonic")
_FEWEST = 1000  # a group with fewer listed labels uses the map of all labels
_TINY = 1e-6  # no probability is nearer to 0 or 1 than this
_GRID = 129  # points by which a logistic curve is stored
_STEEPEST = 40.0  # log-odds at the ends of the grid
_ROUNDS = 50
_PREFIX = "calibration."


@dataclass(frozen=True)
class Calibration:
    """Rising polylines from score to probability; the points ``ptr[g]`` to ``ptr[g + 1]`` are the map of group g.

    ``group`` is the group of each label. Labels past its end are in group 0, whose map is that of all labels.
    """

    kind: str
    ptr: I64
    x: F64
    y: F64
    group: I32

    @property
    def n_groups(self) -> int:
        """Number of maps."""
        return len(self.ptr) - 1

    @property
    def keeps_order(self) -> bool:
        """True if the map never changes the order of labels: there is only one map."""
        return self.n_groups == 1

    def apply(self, labels: I32, scores: npt.NDArray[Any]) -> F64:
        """The probabilities of scored labels, arrays of one shape."""
        groups = self._groups_of(labels)
        found = np.empty(scores.shape)
        for group in range(self.n_groups):
            inside = groups == group
            span = slice(self.ptr[group], self.ptr[group + 1])
            found[inside] = np.interp(scores[inside], self.x[span], self.y[span])
        return found

    def _groups_of(self, labels: I32) -> npt.NDArray[Any]:
        if self.n_groups == 1 or not len(self.group):
            return np.zeros(labels.shape, np.int32)
        known = (labels >= 0) & (labels < len(self.group))
        return np.where(known, self.group[np.where(known, labels, 0)], 0)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What to save, besides ``kind``."""
        return {_PREFIX + name: getattr(self, name) for name in ("ptr", "x", "y", "group")}

    @classmethod
    def restore(cls, kind: str, arrays: Mapping[str, npt.NDArray[Any]]) -> Calibration:
        """The inverse of :meth:`arrays`; checks every invariant."""
        ptr, x, y, group = (arrays[_PREFIX + name] for name in ("ptr", "x", "y", "group"))
        types = [array.dtype.name for array in (ptr, x, y, group)] == ["int64", "float64", "float64", "int32"]
        flat = all(array.ndim == 1 for array in (ptr, x, y, group))
        if not (types and flat and len(ptr) > 1 and len(x) == len(y) and ptr[0] == 0 and ptr[-1] == len(x)):
            raise FormatError("calibration: ptr, x, y and group do not fit together")
        if not ((ptr[1:] > ptr[:-1]).all() and ((group >= 0) & (group < len(ptr) - 1)).all()):
            raise FormatError("calibration: every group must have points, every label one of the groups")
        if not (np.isfinite(x).all() and ((y >= 0) & (y <= 1)).all()):
            raise FormatError("calibration: scores must be finite, probabilities between 0 and 1")
        starts = np.zeros(len(x), np.bool_)
        starts[ptr[:-1]] = True
        if not ((np.diff(x) > 0) | starts[1:]).all():
            raise FormatError("calibration: the scores of a group must rise")
        return cls(kind, ptr, x, y, group)


@dataclass(frozen=True)
class Listed:
    """The labels that a model listed for held-out rows: row, label, score, and True if the label is right."""

    rows: I64
    labels: I32
    scores: F64
    hits: Bool

    @classmethod
    def of(cls, top: TopK, hits: Bool) -> Listed:
        """All labels of the lists; ``hits`` [rows, k] says which are right."""
        rows, places = np.nonzero(top.labels >= 0)
        return cls(rows, top.labels[rows, places], top.scores[rows, places].astype(np.float64), hits[rows, places])

    def take(self, kept: Bool) -> Listed:
        """The entries where ``kept`` is true."""
        return Listed(self.rows[kept], self.labels[kept], self.scores[kept], self.hits[kept])


def learn(listed: Listed, kind: str, group: I32 | None = None) -> Calibration:
    """The map of one kind for all labels, and with ``group`` one for every group with enough listed labels."""
    points = [_points(listed, kind)]
    groups = np.zeros(0, np.int32)
    if group is not None:
        groups = np.zeros(len(group), np.int32)
        of_listed = group[listed.labels]
        for value in np.unique(group).tolist():
            inside = of_listed == value
            if inside.sum() >= _FEWEST and 0 < listed.hits[inside].sum() < inside.sum():
                groups[group == value] = len(points)
                points.append(_points(listed.take(inside), kind))
    ptr = np.cumsum([0, *(len(x) for x, _ in points)]).astype(np.int64)
    x, y = (np.concatenate(parts) for parts in zip(*points, strict=True))
    return Calibration(kind, ptr, x, y, groups)


def choose(
    listed: Listed, group: I32 | None, kinds: tuple[str, ...] = KINDS, *, grouped: bool | None = None
) -> tuple[Calibration, dict[str, float]]:
    """The map of least log-loss on rows that it was not learnt from, and the log-loss of every map tried.

    A map learnt from the even rows is judged on the odd rows, and the reverse. ``group`` (a number for each label) adds
    maps by group; ``grouped`` True tries only these, False none of them.
    """
    several = group is not None and len(np.unique(group)) > 1
    ways = [False, True] if grouped is None and several else [bool(grouped)]
    losses: dict[str, float] = {}
    tried = {f"{kind}, {'by group' if way else 'global'}": (kind, way) for way in ways for kind in kinds}
    odd = listed.rows % 2 == 1
    for name, (kind, way) in tried.items():
        total = 0.0
        for part in (odd, ~odd):
            there = listed.take(~part)
            found = learn(listed.take(part), kind, group if way else None)
            total += log_loss(found.apply(there.labels, there.scores), there.hits) * len(there.rows)
        losses[name] = total / max(len(listed.rows), 1)
    kind, way = tried[min(losses, key=losses.__getitem__)]
    return learn(listed, kind, group if way else None), losses


def log_loss(probabilities: F64, hits: Bool) -> float:
    """The mean negative logarithm of the probability given to the outcome."""
    clipped = np.clip(probabilities, _TINY, 1 - _TINY)
    return float(-np.where(hits, np.log(clipped), np.log1p(-clipped)).mean()) if len(hits) else 0.0


def _points(listed: Listed, kind: str) -> tuple[F64, F64]:
    scores, hits = listed.scores, listed.hits
    if not len(scores):
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])
    return _platt(scores, hits) if kind == "platt" else _isotonic(scores, hits)


def _log_odds(scores: F64) -> F64:
    clipped = np.clip(scores, 1e-12, 1 - 1e-7)
    odds: F64 = np.log(clipped) - np.log1p(-clipped)
    return odds


def _platt(scores: F64, hits: Bool) -> tuple[F64, F64]:
    """Newton's method for the slope and offset, with Platt's targets, which never reach 0 or 1."""
    n_right = int(hits.sum())
    target = np.where(hits, (n_right + 1) / (n_right + 2), 1 / (len(hits) - n_right + 2))
    z = _log_odds(scores)
    slope, offset = 1.0, 0.0
    for _ in range(_ROUNDS):
        p = _sigmoid(slope * z + offset)
        weight, gap = np.maximum(p * (1 - p), 1e-12), p - target
        by_slope, by_offset = (gap * z).sum(), gap.sum()
        steep, mixed, flat = (weight * z * z).sum() + 1e-6, (weight * z).sum(), weight.sum() + 1e-6
        # Solved by hand: LAPACK ends the process if there is no memory for its work space.
        step = np.array([flat * by_slope - mixed * by_offset, steep * by_offset - mixed * by_slope])
        step /= steep * flat - mixed * mixed
        size = np.abs(step).max()
        slope, offset = np.array([slope, offset]) - step * min(1.0, 2.0 / max(size, 1e-12))
        if size < 1e-8:
            break
    slope = max(float(slope), 1e-3)  # the curve must rise
    grid = np.linspace(_log_odds(np.array([0.0]))[0], _log_odds(np.array([1.0]))[0], _GRID)
    x = _sigmoid(grid)
    x[0], x[-1] = 0.0, 1.0
    return x, _sigmoid(slope * grid + offset)


def _sigmoid(z: F64) -> F64:
    p: F64 = 1 / (1 + np.exp(-np.clip(z, -_STEEPEST, _STEEPEST)))
    return p


def _isotonic(scores: F64, hits: Bool) -> tuple[F64, F64]:
    """The steps of the best non-decreasing map, each by its mean score, and the ends 0 and 1."""
    from sklearn.isotonic import isotonic_regression  # noqa: PLC0415 - only learning needs it

    values, where, counts = np.unique(scores, return_inverse=True, return_counts=True)
    shares = np.bincount(where, weights=hits) / counts
    fitted = np.asarray(isotonic_regression(shares, sample_weight=counts), np.float64)
    step = np.concatenate([[0], np.cumsum(np.diff(fitted) > 0)])
    weight = np.bincount(step, weights=counts)
    x = np.bincount(step, weights=values * counts) / weight
    # Half a label of doubt: a step whose n labels are all right is not certain.
    y = (np.bincount(step, weights=fitted * counts) + 0.5 * shares.mean()) / (weight + 0.5)
    y = np.maximum.accumulate(y)
    if x[-1] < 1:
        x, y = np.append(x, 1.0), np.append(y, y[-1] + (1 - y[-1]) / (weight[-1] + 2))
    if x[0] > 0:
        x, y = np.append(0.0, x), np.append(0.0, y)
    return x, np.clip(y, 0, 1)
