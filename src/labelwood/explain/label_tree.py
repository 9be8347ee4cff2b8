"""Explaining label trees: the path to a label, the contribution of each feature, and where a label was lost.

Scores are computed again in double precision from the packed weights. They agree with the search up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.explain import Asked, Explanation, Lost, Missed, Path, Place, Rival, Step, Suggestion
from labelwood.explain.tree_weights import TreeWeights
from labelwood.hybrid import as_sparse
from labelwood.sparse import CSR, F64, TopK


@dataclass(frozen=True)
class Members:
    """The labels that one tree proposes for the row and their scores, best first."""

    labels: list[int]
    scores: list[float]

    def items(self) -> list[tuple[int, float]]:
        """Labels with their scores."""
        return list(zip(self.labels, self.scores, strict=True))


class _Opened(NamedTuple):
    """An inner node whose children were scored: its first child, and per child weights [columns], bias, score."""

    first: int
    weights: F64
    biases: F64
    scores: F64
    log_probabilities: list[float]


class RowInTree:
    """One prepared row in one label tree.

    Nodes and steps are computed together where it is possible: a call of NumPy takes longer than the sums of a node.
    """

    def __init__(self, weights: TreeWeights, row: CSR, asked: Asked, *, number: int) -> None:
        self._weights, self._asked, self._number = weights, asked, number
        row = as_sparse(row)
        self._columns, self._values = row.indices, row.data.astype(np.float64)
        # Paths to several labels share nodes and steps.
        self._opened: dict[int, _Opened] = {}
        self._steps: dict[int, Step] = {}

    def paths(self, labels: Sequence[int], members: Members) -> list[Path | None]:
        """The path to each label; the best, if several leaves answer as it, and None if the tree lacks it."""
        ways = [[self._nodes_to(leaf) for leaf in self._weights.leaves_of(label)] for label in labels]
        self._open(node for several in ways for way in several for node in (0, *way[:-1]))
        best = [
            max(several, key=self._log_product) if len(several) > 1 else next(iter(several), None) for several in ways
        ]
        self._add_steps(way for way in best if way is not None)
        return [
            None if way is None else self._path(way, listed=label in members.labels)
            for label, way in zip(labels, best, strict=True)
        ]

    def _path(self, way: list[int], *, listed: bool) -> Path:
        score = math.exp(self._log_product(way))
        return Path(self._number, score, listed, tuple(self._steps[child] for child in way))

    def lost(self, label: int, members: Members, k: int, beam_width: int | None) -> Lost:
        """Where a label was lost on its way to the first k; ``beam_width`` None: the search was exact."""
        (path,) = self.paths([label], members)
        if path is None:
            return Lost(self._number, "absent", 0.0, None, ())
        if label in members.labels[:k]:
            return Lost(self._number, "listed", path.score, None, ())
        nodes = [step.child for step in path.steps]
        if beam_width is not None and not path.listed:
            for step, kept in zip(path.steps[:-1], self._beams(beam_width), strict=False):
                if step.child not in kept:
                    rivals = tuple(Rival(node, None, math.exp(self.log_score(node))) for node in kept)
                    reached = math.exp(self.log_score(step.child))
                    return Lost(self._number, "beam", reached, step, rivals)
        weakest = path.steps[int(np.argmin([self._log_probability(node) for node in nodes]))]
        winners = tuple(Rival(None, self._asked.label_name(other), score) for other, score in members.items()[:k])
        return Lost(self._number, "rank", path.score, weakest, winners)

    def log_score(self, node: int) -> float:
        """The logarithm of the product of the probabilities from the root to a node whose ancestors are open."""
        return self._log_product(self._nodes_to(node))

    def _log_product(self, way: Iterable[int]) -> float:
        """The sum over the nodes of a path, which begins below the root."""
        total, parent = 0.0, 0
        for child in way:
            opened = self._opened[parent]
            total += opened.log_probabilities[child - opened.first]
            parent = child
        return total

    def _beams(self, width: int) -> list[list[int]]:
        """The inner nodes that a beam search keeps on each level below the root, best first."""
        tree, levels, beam = self._weights.tree, [], [0]
        while beam:
            self._open(beam)
            children = [child for node in beam for child in range(tree.child_ptr[node], tree.child_ptr[node + 1])]
            inner = [child for child in children if tree.label[child] < 0]
            beam = sorted(inner, key=lambda node: (-self.log_score(node), node))[:width]
            levels.append(beam)
        return levels

    def _nodes_to(self, node: int) -> list[int]:
        """The nodes on the path, without the root."""
        parent, nodes = self._weights.tree.parent, []
        while node != 0:
            nodes.append(node)
            node = parent.item(node)
        return nodes[::-1]

    def _open(self, nodes: Iterable[int]) -> None:
        """Score the children of inner nodes, those of all nodes at once."""
        fresh = [node for node in dict.fromkeys(nodes) if node not in self._opened]
        if not fresh:
            return
        weights, biases = self._weights.of_children(fresh, self._columns)
        scores = biases + weights @ self._values
        logs = log_probability(scores, self._weights.link).tolist()
        child_ptr, begin = self._weights.tree.child_ptr, 0
        for node in fresh:
            first = child_ptr.item(node)
            own = slice(begin, begin + child_ptr.item(node + 1) - first)
            self._opened[node] = _Opened(first, weights[own], biases[own], scores[own], logs[own])
            begin = own.stop

    def _log_probability(self, child: int) -> float:
        opened = self._opened[self._weights.tree.parent.item(child)]
        return opened.log_probabilities[child - opened.first]

    def _add_steps(self, ways: Iterable[list[int]]) -> None:
        """Make the steps of paths whose nodes are open, all at once."""
        known = self._steps
        nodes = {child: node for way in ways for node, child in zip((0, *way), way, strict=False) if child not in known}
        if not nodes:
            return
        fresh, opened = list(nodes), [self._opened[node] for node in nodes.values()]
        places = [child - one.first for child, one in zip(fresh, opened, strict=True)]
        weights = np.array([one.weights[place] for one, place in zip(opened, places, strict=True)])
        found = self._asked.contributions(self._columns, self._values, weights)
        labels = self._weights.label[fresh].tolist()
        scores = [one.scores.item(place) for one, place in zip(opened, places, strict=True)]
        sizes = [len(one.scores) for one in opened]
        better = np.concatenate([one.scores for one in opened]) > np.repeat(scores, sizes)
        ranks = np.add.reduceat(better, list(accumulate([0, *sizes[:-1]])), dtype=np.int64).tolist()
        for i, child in enumerate(fresh):
            one, place = opened[i], places[i]
            self._steps[child] = Step(
                node=nodes[child],
                child=child,
                label=self._asked.label_name(labels[i]) if labels[i] >= 0 else None,
                score=scores[i],
                probability=math.exp(one.log_probabilities[place]),
                place=1 + ranks[i],
                n_children=sizes[i],
                bias=one.biases.item(place),
                contributions=found[i][0],
                rest=found[i][1],
            )


def members_of(top: TopK) -> Members:
    """The list of one tree for one row, without padding."""
    known = top.labels[0] >= 0
    return Members(top.labels[0, known].tolist(), top.scores[0, known].tolist())


def explain_row(
    views: Sequence[RowInTree],
    members: Sequence[Members],
    top: TopK,
    asked: Asked,
    *,
    beam_width: int | None,
    missed: Sequence[Place],
) -> Explanation:
    """The explanation of a row, from its view and list in each tree and from the list of all trees together."""
    suggested = members_of(top)
    paths = [view.paths(suggested.labels, own) for view, own in zip(views, members, strict=True)]
    suggestions = tuple(
        Suggestion(asked.label_name(label), score, tuple(path for path in ways if path is not None))
        for (label, score), *ways in zip(suggested.items(), *paths, strict=True)
    )
    k = top.labels.shape[1]
    lost = tuple(
        Missed(
            asked.label_name(place.label),
            place.score,
            place.place,
            tuple(view.lost(place.label, own, k, beam_width) for view, own in zip(views, members, strict=True)),
        )
        for place in missed
    )
    return Explanation(suggestions, missed=lost)


def log_probability(margin: npt.NDArray[Any], link: int) -> npt.NDArray[Any]:
    """The logarithm of the sigmoid (``link`` 0) or of exp(-max(0, 1 - margin)^link)."""
    if link == 0:
        negative: npt.NDArray[Any] = np.logaddexp(0.0, -margin)
    else:
        negative = np.maximum(0.0, 1.0 - margin) ** link
    return -negative
