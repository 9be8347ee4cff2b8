"""One answer of a batch model, trained a while ago, an online model that has seen every row, and the nearest rows.

A label that the batch model scores ``p`` and the online model ``q`` gets ``m = w p^(1/t) + (1 - w) q``. The weight
``w`` of the batch model is ``weight * share^newness``: ``share`` is the part of the label's examples that the batch
model was trained on. A label that appeared since gets ``m = boost q``. So the newer a label, the more the online model
counts. If the nearest rows give a label the share ``n`` of their votes, its score is ``(1 - v) m + v n``, where ``v``
is ``nearness``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.packed.label_tree import average
from labelwood.sparse import CSR, F64, I32, Arrays, TopK

# From labels to the part of their examples that the batch model was trained on, 0 for -1.
Share = Callable[[I32], F64]

DEPTHS = (1, 3, 5)
WIDTH = 10  # labels that each model lists for a row
_GRID = {
    "weight": (0.0, 0.15, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0),
    "temperature": (0.7, 1.0, 1.4, 2.0, 3.0, 4.0),
    "newness": (0.0, 0.1, 0.25, 1.0),
    "boost": (1.0, 1.5, 2.0, 3.0, 5.0),
    "nearness": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85),
}
_ADDED_LATER = {"nearness": 0.0}
_ROUNDS = 2
_DEVIATION = 0.3  # of the quality of a row, about


class Lists(NamedTuple):
    """The labels that each part lists for some rows, equally wide."""

    batch: TopK
    online: TopK
    nearest: TopK


@dataclass(frozen=True)
class NewnessMix:
    """How the two models are mixed."""

    weight: float = 0.7
    temperature: float = 2.0
    newness: float = 0.0
    boost: float = 1.0
    nearness: float = 0.0

    def amounts(self, lists: Lists, share: Share) -> Lists:
        """What each part adds to the scores of its labels."""
        batch, online, nearest = lists
        from_batch = self._weights(batch, share) * np.clip(batch.scores, 0.0, 1.0) ** (1 / self.temperature)
        known = share(online.labels) > 0
        of_new = np.minimum(self.boost * online.scores, 1.0)
        from_online = np.where(known, (1 - self._weights(online, share)) * online.scores, of_new)
        rest = 1 - self.nearness
        return Lists(
            _amounts(batch, rest * from_batch), _amounts(online, rest * from_online),
            _amounts(nearest, self.nearness * nearest.scores),
        )  # fmt: skip

    def combine(self, lists: Lists, share: Share, k: int) -> TopK:
        """The best k labels of each row."""
        return average([TopK(top.labels, len(lists) * top.scores) for top in self.amounts(lists, share)], k)

    def _weights(self, top: TopK, share: Share) -> F64:
        shares = share(top.labels)
        weights: F64 = np.where(shares > 0, self.weight * shares**self.newness, 0.0)
        return weights

    def saved(self) -> dict[str, float]:
        """The mix as JSON values."""
        return {one.name: float(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def restore(cls, saved: Any) -> NewnessMix:
        """The inverse of :meth:`saved`."""
        given = {**_ADDED_LATER, **saved} if isinstance(saved, dict) else {}
        if any(given.get(name) not in grid for name, grid in _GRID.items()):
            raise FormatError(f"the mix of a living model must have {', '.join(_GRID)}; got {saved!r}")
        return cls(**{name: given[name] for name in _GRID})


@dataclass(frozen=True)
class Judgement:
    """Progressive quality over some rows: the mean of P@1, P@3 and P@5, and the number of rows that have labels.

    ``new_hits`` is the number of labels new to the batch model that were right and among the first five.
    """

    quality: float
    n_rows: int
    new_hits: int = 0


def quality_of(top: TopK, truth: CSR, share: Share | None = None) -> Judgement:
    """The quality of lists of at least five labels; rows without labels do not count."""
    rows = np.repeat(np.arange(truth.n_rows, dtype=np.int64), np.diff(truth.indptr))
    n_cols = max(truth.n_cols, int(top.labels.max(initial=0)) + 1)
    labels = top.labels[:, : max(DEPTHS)]
    asked = np.arange(truth.n_rows, dtype=np.int64)[:, None] * n_cols + labels
    hits = np.isin(asked, rows * n_cols + truth.indices) & (labels >= 0)
    labelled = np.flatnonzero(np.diff(truth.indptr))
    if len(labelled) == 0:
        return Judgement(0.0, 0)
    means = [hits[labelled, :k].sum() / (k * len(labelled)) for k in DEPTHS]
    new_hits = 0 if share is None else int((hits & (share(labels) == 0)).sum())
    return Judgement(float(np.mean(means)), len(labelled), new_hits)


def search_newness_mix(start: NewnessMix, lists: Lists, share: Share, truth: CSR) -> tuple[NewnessMix, Judgement]:
    """The best mix of lists that were made before their rows were learned: a coordinate search over a grid.

    A mix that finds fewer of the new labels than the online model alone is worse by these labels. The nearest rows
    count only if they gain more than the standard error of the quality.
    """
    judged: dict[NewnessMix, Judgement] = {}
    alone = quality_of(lists.online, truth, share).new_hits
    shares = {id(top.labels): share(top.labels) for top in (lists.batch, lists.online)}

    def listed(labels: I32) -> F64:
        return shares[id(labels)]

    def value(mix: NewnessMix) -> float:
        if mix not in judged:
            judged[mix] = quality_of(mix.combine(lists, listed, max(DEPTHS)), truth, share)
        found = judged[mix]
        n_rows = max(found.n_rows, 1)
        needed = _DEVIATION / n_rows**0.5 if mix.nearness else 0.0
        return found.quality - max(0, alone - found.new_hits) / n_rows - needed

    best = start
    for _ in range(_ROUNDS):
        before = best
        for name, grid in _GRID.items():
            best = max([best, *(replace(best, **{name: one}) for one in grid)], key=value)
        if best == before:
            break
    value(best)
    return best, judged[best]


def _amounts(top: TopK, scores: npt.NDArray[np.floating]) -> TopK:
    return TopK(top.labels, np.where(top.labels >= 0, scores, 0.0).astype(np.float32))


class RecentLists:
    """The labels that each part listed for the last rows, before the rows were learned."""

    def __init__(self, lists: Lists | None = None) -> None:
        self.lists = lists or Lists(*(no_lists(0) for _ in Lists._fields))

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.lists.online.labels)

    def append(self, lists: Lists, *, n_kept: int) -> None:
        """Add the lists of further rows; then keep those of the last ``n_kept`` rows."""
        self.lists = Lists(*(_last(old, new, n_kept) for old, new in zip(self.lists, lists, strict=True)))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The lists as arrays."""
        lists = self.lists._asdict()
        return {f"{name}_{part}": array for name, top in lists.items() for part, array in top._asdict().items()}

    @classmethod
    def restore(cls, arrays: Arrays, n_rows: int, n_labels: int) -> RecentLists:
        """The inverse of :meth:`arrays`; checks every invariant."""
        if not {"nearest_labels", "nearest_scores"} & arrays.keys():  # saved before the nearest rows were asked
            arrays = {**arrays, **{f"nearest_{part}": array for part, array in no_lists(n_rows)._asdict().items()}}
        found = [TopK(arrays[f"{name}_labels"], arrays[f"{name}_scores"]) for name in Lists._fields]
        for labels, scores in found:
            fits = labels.shape == scores.shape == (n_rows, WIDTH)
            if not fits or labels.dtype != np.int32 or scores.dtype != np.float32 or not np.isfinite(scores).all():
                raise FormatError(f"the lists of the recent rows must be {n_rows} lists of {WIDTH} labels and scores")
            if not ((labels >= -1) & (labels < n_labels)).all():
                raise FormatError("the lists of the recent rows must hold labels")
        return cls(Lists(*found))


def no_lists(n_rows: int, width: int = WIDTH) -> TopK:
    """Lists without labels."""
    return TopK(np.full((n_rows, width), -1, np.int32), np.zeros((n_rows, width), np.float32))


def _last(old: TopK, new: TopK, count: int) -> TopK:
    joined = [np.concatenate([one, other[:, :WIDTH]]) for one, other in zip(old, new, strict=True)]
    return TopK(*(np.ascontiguousarray(array[max(0, len(array) - count) :]) for array in joined))
