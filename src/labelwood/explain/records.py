"""The records that an explanation is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from labelwood.explain.render import as_html, as_text
from labelwood.sparse import F64, I32, TopK

Reason = Literal["listed", "beam", "rank", "branch", "share", "absent"]


@dataclass(frozen=True, init=False)
class Contribution:
    """The contribution of a feature to a score: ``amount = value * weight``; ``name`` is its word, if known."""

    feature: int
    name: str | None
    value: float
    weight: float
    amount: float

    def __init__(self, feature: int, name: str | None, value: float, weight: float, amount: float) -> None:
        # Half the time of the generated method: an explanation has hundreds of contributions.
        own = self.__dict__
        own["feature"], own["name"], own["value"], own["weight"], own["amount"] = feature, name, value, weight, amount


@dataclass(frozen=True)
class Step:
    """One step down a tree: how ``node`` scored ``child``, one of its ``n_children``.

    ``place`` is 1 if no sibling scored higher. ``probability`` is the score through the tree's link, None in forests,
    where the score alone decides. ``label`` is that of a child that is a leaf of a label tree. ``contributions`` are
    the largest in size, ``rest`` the sum of all others.
    """

    node: int
    child: int
    label: Any
    score: float
    probability: float | None
    place: int
    n_children: int
    bias: float
    contributions: tuple[Contribution, ...]
    rest: float


@dataclass(frozen=True)
class Path:
    """The path to a label in one label tree; ``score`` is the product of the probabilities of its steps.

    ``listed`` is true if the tree's search proposed the label; else it counts as 0 in the average of the trees.
    """

    tree: int
    score: float
    listed: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Route:
    """The route of a row to one leaf of an instance tree; ``weight`` is the leaf's weight in the average."""

    tree: int
    leaf: int
    weight: float
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Share:
    """The share of a leaf's training examples that had the label, and the ``amount`` it adds to the score.

    ``route`` is a place in :attr:`Explanation.routes`; ``amount`` is the route's weight times the share.
    """

    route: int
    share: float
    amount: float


@dataclass(frozen=True)
class Reranked:
    """The two parts of a reranked score; see :mod:`labelwood.scoring.rerank`."""

    tree_score: float
    nearness: float


@dataclass(frozen=True)
class Clue:
    """What a ranker's second look noticed, in words, and what it adds to the logarithm of the label's odds."""

    what: str
    amount: float


@dataclass(frozen=True)
class Suggestion:
    """A suggested label: ``paths`` in label trees, ``shares`` (largest first) in forests.

    ``amounts`` is what each member of a blend adds to the score. ``clues`` is what the second look of a ranker saw; the
    score is the logistic function of the sum of their amounts. ``probability`` is the calibrated score, if the model is
    calibrated.
    """

    label: Any
    score: float
    paths: tuple[Path, ...] = ()
    shares: tuple[Share, ...] = ()
    reranked: Reranked | None = None
    amounts: tuple[float, ...] = ()
    clues: tuple[Clue, ...] = ()
    probability: float | None = None


@dataclass(frozen=True)
class Rival:
    """A node or a label that was preferred, and its score."""

    node: int | None
    label: Any
    score: float


@dataclass(frozen=True)
class Lost:
    """What became of a label in one tree: the step at which it was lost, and the rivals that it lost to.

    ``reason`` in label trees: ``listed`` (it was not lost), ``beam`` (the search gave up the branch of ``step`` for the
    ``rivals``, the nodes it kept), ``rank`` (it was reached, but the ``rivals``, labels, score higher; ``step`` is the
    least probable on its path). In forests: ``branch`` (the row took the child ``rivals[0]``, the label's examples are
    below ``step``), ``share`` (the leaf has it, with the score given, below the ``rivals``), ``absent`` (no leaf of the
    tree has it).
    """

    tree: int
    reason: Reason
    score: float
    step: Step | None
    rivals: tuple[Rival, ...]


@dataclass(frozen=True)
class Missed:
    """What became of a label that should have been suggested; ``place`` is its place in a long list, if it has one."""

    label: Any
    score: float
    place: int | None
    lost: tuple[Lost, ...]


@dataclass(frozen=True)
class Member:
    """A member of a blend or a ranker: its method and its own explanation; in a blend, its weight and temperature."""

    method: str
    weight: float | None
    temperature: float | None
    explanation: Explanation


@dataclass(frozen=True)
class Explanation:
    """Why the labels of a row were suggested, best first.

    Forests have ``routes``, blends and rankers ``members``; ``missed`` has the labels that the caller named as missing.
    ``names`` has the names of labels in a vocabulary.
    ``row_is_empty`` is true if no feature of the row is known to the model: every such row gets the same labels.
    ``str`` and ``print`` give it in words, as ``labelwood explain`` does; a notebook shows it as HTML.
    """

    suggestions: tuple[Suggestion, ...]
    routes: tuple[Route, ...] = ()
    missed: tuple[Missed, ...] = ()
    members: tuple[Member, ...] = ()
    row_is_empty: bool = False
    names: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        """The explanation in a notebook."""
        return as_html(self)


@dataclass(frozen=True)
class Place:
    """The score and the place of a label id in a long list of suggestions; None if the list lacks it."""

    label: int
    score: float
    place: int | None


def places_in(top: TopK, labels: Sequence[int]) -> list[Place]:
    """The places of labels in the list of one row."""
    at = {label: place for place, label in enumerate(top.labels[0].tolist()) if label >= 0}
    return [
        Place(label, float(top.scores[0, at[label]]), at[label] + 1) if label in at else Place(label, 0.0, None)
        for label in labels
    ]


@dataclass(frozen=True)
class Asked:
    """What an explanation shows: names of labels and features, and the number of features that a step lists."""

    label_name: Callable[[int], Any]
    feature_name: Callable[[int], str | None]
    n_features: int | None

    def contributions(self, columns: I32, values: F64, weights: F64) -> list[tuple[tuple[Contribution, ...], float]]:
        """For each row of weights, the largest contributions and the sum of the others; columns rise."""
        amounts = values * weights
        rows, places, counts = _largest(amounts, self.n_features)
        listed = amounts[rows, places].tolist()
        shown = columns[places].tolist()
        one_by_one = map(
            Contribution, shown, map(self.feature_name, shown), values[places].tolist(),
            weights[rows, places].tolist(), listed,
        )  # fmt: skip
        totals, n_all = amounts.sum(axis=1).tolist(), np.count_nonzero(amounts, axis=1).tolist()
        found, start = [], 0
        for total, count, n_own in zip(totals, counts.tolist(), n_all, strict=True):
            rest = total - sum(listed[start : start + count]) if count < n_own else 0.0
            found.append((tuple(islice(one_by_one, count)), rest))
            start += count
        return found


def _largest(amounts: F64, n: int | None) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows and places of the n largest amounts of each row by magnitude, and their number in each row.

    Equal amounts stay in their order; zeros are left out.
    """
    size = np.abs(amounts)
    kept = size > 0
    width = size.shape[1]
    if n is not None and 0 < n < width:
        kept &= size >= np.partition(size, width - n, axis=1)[:, width - n, None]
    rows, places = kept.nonzero()
    order = np.lexsort((-size[rows, places], rows))
    rows, places = rows[order], places[order]
    counts = np.bincount(rows, minlength=len(amounts))
    if n is not None and len(rows) and counts.max() > n:  # equal amounts at the end of a list, or n is 0
        first = (np.cumsum(counts) - counts)[rows]
        listed = np.arange(len(rows)) - first < n
        rows, places, counts = rows[listed], places[listed], np.minimum(counts, n)
    return rows, places, counts
