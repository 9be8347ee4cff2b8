"""Explaining instance forests: the routes of a row, the shares of a label in its leaves, and where a label was lost.

The leaves are those that the router reached. Scores on the route are computed again in double precision, feature by
feature: a projection is linear, so a projected column adds the sum of what its features add.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.explain import Asked, Lost, Rival, Route, Share, Step
from labelwood.packed.routed_forest import Paths, RoutedForest
from labelwood.sparse import CSR, F64

_RIVALS = 5  # preferred labels of a leaf that are named

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]


class RowInForest:
    """One row (prepared, not projected) in a forest; ``paths`` are the leaves it reached."""

    def __init__(self, forest: RoutedForest, row: CSR, paths: Paths, asked: Asked) -> None:
        self._forest, self._asked = forest, asked
        self._columns, self._values = row.indices, row.data.astype(np.float64)
        self._reached = [paths.nodes[paths.ptr[tree] : paths.ptr[tree + 1]].tolist() for tree in range(forest.n_trees)]
        self._projections: dict[int, F64] = {}

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """The routes to the leaves, tree by tree."""
        found, every = [], sum(map(len, self._reached))
        for tree, leaves in enumerate(self._reached):
            weight = 1 / (every if self._forest.routing.leaf_votes else self._forest.n_trees * len(leaves))
            for leaf in leaves:
                steps = tuple(self._step(child, tree) for child in self._forest.path_to(leaf)[1:])
                found.append(Route(tree, leaf, weight, steps))
        return tuple(found)

    def shares(self, label: int) -> tuple[Share, ...]:
        """The amounts that the reached leaves add to a label's score, largest first."""
        found = [
            Share(number, share, route.weight * share)
            for number, route in enumerate(self.routes)
            if (share := self._share(route.leaf, label)) > 0
        ]
        return tuple(sorted(found, key=lambda share: (-share.amount, share.route)))

    def lost(self, label: int) -> tuple[Lost, ...]:
        """Where a label was lost in each tree."""
        holds = self._holds(label)
        return tuple(self._lost_in(tree, leaves, label, holds) for tree, leaves in enumerate(self._reached))

    def _lost_in(self, tree: int, leaves: list[int], label: int, holds: npt.NDArray[np.bool_]) -> Lost:
        forest = self._forest
        if not holds[tree]:
            return Lost(tree, "absent", 0.0, None, ())
        with_it = [leaf for leaf in leaves if holds[leaf]]
        if with_it:
            best = max(with_it, key=lambda leaf: self._share(leaf, label))
            share = self._share(best, label)
            return Lost(tree, "share", share, None, self._preferred(best, share))
        # The label was lost at the deepest node on the route whose other branches have it.
        turns = [
            (depth, taken)
            for leaf in leaves
            for depth, (node, taken) in enumerate(pairwise(forest.path_to(leaf)))
            if holds[node] and not holds[taken]
        ]
        _, taken = max(turns)
        node = int(forest.parent[taken])
        siblings = [child for child in range(forest.child_ptr[node], forest.child_ptr[node + 1]) if holds[child]]
        wanted = max((self._step(child, tree) for child in siblings), key=lambda step: step.score)
        return Lost(tree, "branch", wanted.score, wanted, (Rival(taken, None, self._step(taken, tree).score),))

    def _share(self, leaf: int, label: int) -> float:
        labels, values = self._forest.leaf(leaf)
        at = int(np.searchsorted(labels, label))
        return float(values[at]) if at < len(labels) and labels[at] == label else 0.0

    def _preferred(self, leaf: int, share: float) -> tuple[Rival, ...]:
        labels, values = self._forest.leaf(leaf)
        order = np.argsort(-values.astype(np.float64), kind="stable")[:_RIVALS].tolist()
        return tuple(
            Rival(leaf, self._asked.label_name(int(labels[i])), float(values[i])) for i in order if values[i] > share
        )

    def _holds(self, label: int) -> npt.NDArray[np.bool_]:
        """For every node, True if a leaf below it has the label."""
        forest = self._forest
        entries = np.flatnonzero(forest.leaf_labels == label)
        holds = np.zeros(forest.n_nodes, np.bool_)
        holds[forest.leaves[np.searchsorted(forest.leaf_ptr, entries, side="right") - 1]] = True
        for first, last in reversed(list(pairwise(forest.level_ptr[1:].tolist()))):
            level = np.arange(first, last)
            holds[forest.parent[level[holds[level]]]] = True
        return holds

    def _weights(self, child: int, tree: int) -> F64:
        """The weight of each of the row's features for a child, through the node's projection."""
        columns, weights = self._forest.vector(child)
        routing = self._forest.routing
        if routing.projection == "none":
            found = np.zeros(len(self._columns))
            at = np.searchsorted(columns, self._columns)
            known = at < len(columns)
            known[known] = columns[at[known]] == self._columns[known]
            found[known] = weights[at[known]]
            return found
        number = self._inner_number(int(self._forest.parent[child])) if routing.seed_per_node else tree
        if number not in self._projections:
            seed = int(self._forest.seeds[number])
            self._projections[number] = projection_rows(routing.projection, self._columns, routing.n_columns, seed)
        seen: F64 = self._projections[number][:, columns] @ weights.astype(np.float64)
        return seen

    def _inner_number(self, node: int) -> int:
        return node - int(np.searchsorted(self._forest.leaves, node))

    def _step(self, child: int, tree: int) -> Step:
        forest = self._forest
        node = int(forest.parent[child])
        siblings = range(forest.child_ptr[node], forest.child_ptr[node + 1])
        by_child = {other: self._weights(other, tree) for other in siblings}
        scores = {other: float(forest.bias[other] + self._values @ weights) for other, weights in by_child.items()}
        ((listed, rest),) = self._asked.contributions(self._columns, self._values, by_child[child][None])
        return Step(
            node=node,
            child=child,
            label=None,
            score=scores[child],
            probability=None,
            place=1 + sum(score > scores[child] for score in scores.values()),
            n_children=len(scores),
            bias=float(forest.bias[child]),
            contributions=listed,
            rest=rest,
        )


def murmur3(keys: npt.ArrayLike, seed: int) -> U32:
    """MurmurHash3 (x86, 32 bits) of four-byte keys."""
    key = np.asarray(keys).astype(np.uint32)
    hashed = np.uint32(seed) ^ (_rotate(key * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593))
    hashed = _rotate(hashed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    hashed = hashed ^ np.uint32(4)
    hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashed ^ (hashed >> np.uint32(16))


def _rotate(x: U32, bits: int) -> U32:
    return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))


def mix64(x: U64) -> U64:
    """Steele's splitmix64, the generator of every kernel."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def projection_rows(kind: str, inputs: npt.NDArray[Any], n_columns: int, seed: int) -> F64:
    """The rows of a projection matrix for the given input columns."""
    if kind == "hash":
        hashed = murmur3(inputs, seed)
        matrix = np.zeros((len(inputs), n_columns))
        target = (hashed.astype(np.uint64) * np.uint64(n_columns)) >> np.uint64(32)
        matrix[np.arange(len(inputs)), target.astype(np.int64)] = np.where(hashed & np.uint32(1), 1.0, -1.0)
        return matrix
    row, column = inputs.astype(np.uint64)[:, None], np.arange(n_columns, dtype=np.uint64)
    seeded = mix64(np.array([seed], np.uint64))[0]
    bits = mix64(seeded ^ mix64((row << np.uint64(32)) | column))
    u = ((bits >> np.uint64(40)) + np.uint64(1)).astype(np.float64) * 2.0**-24
    v = (bits & np.uint64(0xFFFFFF)).astype(np.float64) * 2.0**-24
    normal: F64 = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)
    return normal
