"""Explaining label trees: the path to a label, the contribution of each feature, and where a label was lost.

Scores are computed again in double precision from the packed weights. They agree with the search up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.explain import Asked, Explanation, Lost, Missed, Path, Place, Rival, Step, Suggestion
from labelwood.hybrid import as_sparse
from labelwood.packed.label_tree import NodeWeights, PackedTree
from labelwood.sparse import CSR, F64, I32, TopK


@dataclass(frozen=True)
class Members:
    """The labels that one tree proposes for the row and their scores, best first."""

    labels: list[int]
    scores: list[float]

    def items(self) -> list[tuple[int, float]]:
        """Labels with their scores."""
        return list(zip(self.labels, self.scores, strict=True))


class RowInTree:
    """One prepared row in one label tree; ``leaf_labels`` maps the leaves of a frozen tree to label ids."""

    def __init__(
        self, packed: PackedTree, row: CSR, asked: Asked, *, number: int, leaf_labels: I32 | None = None
    ) -> None:
        self._packed, self._asked, self._number = packed, asked, number
        row = as_sparse(row)
        self._columns, self._values = row.indices, row.data.astype(np.float64)
        label = packed.tree.label
        self._label = label if leaf_labels is None else _renamed(label, leaf_labels)
        # Paths to several labels share nodes and steps.
        self._weights: dict[int, tuple[npt.NDArray[np.intp], F64]] = {}
        self._scores: dict[int, F64] = {}
        self._log_probabilities: dict[int, list[float]] = {}
        self._steps: dict[int, Step] = {}

    def path(self, label: int, members: Members) -> Path | None:
        """The path to a label; the best, if several leaves answer as it, and None if the tree lacks it."""
        leaves = (self._label == label).nonzero()[0].tolist()
        if not leaves:
            return None
        best = max(leaves, key=self.log_score) if len(leaves) > 1 else leaves[0]
        steps = tuple(self._step(child) for child in self._nodes_to(best))
        return Path(self._number, math.exp(self.log_score(best)), label in members.labels, steps)

    def lost(self, label: int, members: Members, k: int, beam_width: int | None) -> Lost:
        """Where a label was lost on its way to the first k; ``beam_width`` None: the search was exact."""
        path = self.path(label, members)
        if path is None:
            return Lost(self._number, "absent", 0.0, None, ())
        if label in members.labels[:k]:
            return Lost(self._number, "listed", path.score, None, ())
        nodes = [step.child for step in path.steps]
        if beam_width is not None and not path.listed:
            for step, kept in zip(path.steps[:-1], self._beams(beam_width), strict=False):
                if step.child not in kept:
                    rivals = tuple(Rival(node, None, float(np.exp(self.log_score(node)))) for node in kept)
                    reached = float(np.exp(self.log_score(step.child)))
                    return Lost(self._number, "beam", reached, step, rivals)
        weakest = path.steps[int(np.argmin([self._log_probability(node) for node in nodes]))]
        winners = tuple(Rival(None, self._asked.label_name(other), score) for other, score in members.items()[:k])
        return Lost(self._number, "rank", path.score, weakest, winners)

    def log_score(self, node: int) -> float:
        """The logarithm of the product of the probabilities from the root to a node."""
        return sum(self._log_probability(child) for child in self._nodes_to(node))

    def _beams(self, width: int) -> list[list[int]]:
        """The inner nodes that a beam search keeps on each level below the root, best first."""
        tree, levels, beam = self._packed.tree, [], [0]
        while beam:
            children = [child for node in beam for child in range(tree.child_ptr[node], tree.child_ptr[node + 1])]
            inner = [child for child in children if tree.label[child] < 0]
            beam = sorted(inner, key=lambda node: (-self.log_score(node), node))[:width]
            levels.append(beam)
        return levels

    def _nodes_to(self, node: int) -> list[int]:
        """The nodes on the path, without the root."""
        parent, nodes = self._packed.tree.parent, []
        while node != 0:
            nodes.append(node)
            node = parent.item(node)
        return nodes[::-1]

    def _weights_of(self, node: int) -> tuple[npt.NDArray[np.intp], F64]:
        if node not in self._weights:
            self._weights[node] = weights_of_node(self._packed, node, self._columns)
        return self._weights[node]

    def _children_scores(self, node: int) -> F64:
        if node not in self._scores:
            matched, weights = self._weights_of(node)
            first, last = self._packed.tree.child_ptr[node : node + 2]
            bias = self._packed.node_weights.bias[first:last].astype(np.float64)
            self._scores[node] = bias + self._values[matched] @ weights
        return self._scores[node]

    def _log_probability(self, child: int) -> float:
        node = int(self._packed.tree.parent[child])
        if node not in self._log_probabilities:
            found = log_probability(self._children_scores(node), self._packed.link)
            self._log_probabilities[node] = found.tolist()
        return self._log_probabilities[node][child - int(self._packed.tree.child_ptr[node])]

    def _step(self, child: int) -> Step:
        if child not in self._steps:
            self._steps[child] = self._new_step(child)
        return self._steps[child]

    def _new_step(self, child: int) -> Step:
        packed, asked = self._packed, self._asked
        node = int(packed.tree.parent[child])
        place = child - int(packed.tree.child_ptr[node])
        scores = self._children_scores(node)
        matched, weights = self._weights_of(node)
        listed, rest = asked.contributions(self._columns[matched], self._values[matched], weights[:, place])
        label = int(self._label[child])
        return Step(
            node=node,
            child=child,
            label=asked.label_name(label) if label >= 0 else None,
            score=float(scores[place]),
            probability=math.exp(self._log_probability(child)),
            place=1 + int(np.count_nonzero(scores > scores[place])),
            n_children=len(scores),
            bias=float(packed.node_weights.bias[child]),
            contributions=listed,
            rest=rest,
        )


def weights_of_node(packed: PackedTree, node: int, columns: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], F64]:
    """The ascending ``columns`` that an inner node uses, as positions, and their weights [columns used, children]."""
    weights, inner = packed.node_weights, int(packed.tree.inner_of[node])
    own = weights.features[weights.feature_ptr[inner] : weights.feature_ptr[inner + 1]]
    n_children = int(packed.tree.child_ptr[node + 1] - packed.tree.child_ptr[node])
    known = np.empty(0, np.intp)
    found: F64 = np.zeros((0, n_children))
    if len(own) > 0:
        at = own.searchsorted(columns)
        (known,) = (own.take(at, mode="clip") == columns).nonzero()
        found = _rows(weights, inner, at[known], n_children)
    first_of_vector = packed.n_features - packed.n_columns
    (of_vector,) = (columns >= first_of_vector).nonzero()
    if len(of_vector) == 0:
        return known, found
    dense = weights.vector_block(packed.tree, node)[columns[of_vector] - first_of_vector]
    return np.concatenate([known, of_vector]), np.concatenate([found, dense.astype(np.float64)])


def _rows(node_weights: NodeWeights, inner: int, positions: npt.NDArray[np.intp], n_children: int) -> F64:
    start, stop = (int(bound) for bound in node_weights.weight_ptr[inner : inner + 2])
    if node_weights.dense:
        block = node_weights.weights[start:stop].reshape(-1, n_children)
        found: F64 = (block if len(positions) == len(block) else block[positions]).astype(np.float64)
        return found
    first, last = (int(bound) for bound in node_weights.feature_ptr[inner : inner + 2])
    bounds = np.append(node_weights.row_start[first:last].astype(np.int64), stop - start)
    own = node_weights.weights_of(inner)
    weights = np.zeros((len(positions), n_children))
    for place, position in enumerate(positions.tolist()):
        pairs = slice(bounds[position], bounds[position + 1])
        weights[place, node_weights.child[start:stop][pairs]] = own[pairs]
    return weights


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
    suggestions = tuple(
        Suggestion(
            asked.label_name(label),
            score,
            tuple(
                path for view, own in zip(views, members, strict=True) if (path := view.path(label, own)) is not None
            ),
        )
        for label, score in members_of(top).items()
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


def _renamed(label: I32, leaf_labels: I32) -> I32:
    """The model's label of each node, -1 for inner nodes."""
    found, leaves = np.full_like(label, -1), label >= 0
    found[leaves] = leaf_labels[label[leaves]]
    return found


def log_probability(margin: npt.NDArray[Any], link: int) -> npt.NDArray[Any]:
    """The logarithm of the sigmoid (``link`` 0) or of exp(-max(0, 1 - margin)^link)."""
    if link == 0:
        negative: npt.NDArray[Any] = np.logaddexp(0.0, -margin)
    else:
        negative = np.maximum(0.0, 1.0 - margin) ** link
    return -negative
