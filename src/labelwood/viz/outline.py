"""A tree of a model for people to look at: the size, balance, labels and words of every node.

:func:`outline` makes an :class:`Outline` of any fitted model; :mod:`labelwood.viz.render` turns it into a page, a
drawing or JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.estimator import FittedModel
from labelwood.packed.label_tree import LabelledTree
from labelwood.packed.routed_forest import RoutedForest
from labelwood.viz.node_words import forest_words, label_tree_words
from labelwood.vocabulary.shown_names import ShownNames

N_WORDS = 8
N_LABELS = 8

Shares = list[tuple[int, float]]


@dataclass(frozen=True)
class Outline:
    """One tree, nodes numbered breadth-first as in the model (those of a forest's tree from 0).

    The children of ``u`` are ``child_ptr[u] .. child_ptr[u + 1]``. ``label`` is the label id of a leaf of a label tree,
    else -1. ``size`` counts the labels below a node, in a forest the leaves. ``balance`` is the entropy of how the size
    divides among the children over its maximum: 1 is even, 0 one-sided. ``labels`` are the most frequent labels below,
    with their counts in training; in a forest the most probable ones, with their mean share in the leaves. ``words``
    are the features that speak most for a node, with their weights. ``label_uris`` are the labels themselves if
    ``label_names`` are names from the model's vocabulary, else empty.
    """

    method: str
    kind: str
    tree: int
    n_trees: int
    child_ptr: list[int]
    label: list[int]
    size: list[int]
    balance: list[float]
    labels: list[Shares]
    words: list[list[tuple[str, float]]]
    label_names: list[str]
    label_uris: list[str]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.label)


def outline(
    model: FittedModel,
    *,
    tree: int = 0,
    feature_name: Callable[[int], str | None] | None = None,
    language: str | None = None,
) -> Outline:
    """The outline of one tree of a fitted model; ``feature_name`` names its features.

    For a blend it is a tree of the member with the largest weight. ``language`` is that of the names of a vocabulary.
    """
    found = _of_model(model, tree, feature_name)
    shown = ShownNames(model.vocabulary_, language)
    if not shown:
        return found
    names = [shown.name(label) or label for label in found.label_names]
    return replace(found, label_names=names, label_uris=found.label_names)


def _of_model(model: FittedModel, tree: int, feature_name: Callable[[int], str | None] | None) -> Outline:
    names = [str(name) for name in model.classes_.tolist()]
    named = feature_name or model.feature_namer()
    shown = model.main_member
    trees = shown.trees()
    n_trees = trees.n_trees if isinstance(trees, RoutedForest) else len(trees)
    if not 0 <= tree < n_trees:
        raise LabelwoodError(f"outline: the model has {n_trees} trees, numbered from 0; there is no tree {tree}")
    if isinstance(trees, RoutedForest):
        return _of_forest(shown, trees, tree, names, named)
    return _of_label_tree(shown, trees[tree], tree, n_trees, names, named)


def _of_label_tree(
    model: FittedModel,
    labelled: LabelledTree,
    tree: int,
    n_trees: int,
    names: list[str],
    named: Callable[[int], str | None],
) -> Outline:
    packed, leaf_labels = labelled
    shape = packed.tree
    label = shape.label if leaf_labels is None else np.where(shape.label >= 0, leaf_labels[shape.label], -1)
    size = _sums((label >= 0).astype(np.int64), shape.parent)
    labels: list[Shares] = [[] for _ in range(shape.n_nodes)]
    counts = model.label_counts_
    leaves = np.flatnonzero(label >= 0)
    for leaf in leaves[np.argsort(-counts[label[leaves]], kind="stable")].tolist():
        node, own = leaf, int(label[leaf])
        while node >= 0:
            if len(labels[node]) < N_LABELS:
                labels[node].append((own, float(counts[own])))
            node = int(shape.parent[node])
    return Outline(
        method=model.method_name,
        kind="labels",
        tree=tree,
        n_trees=n_trees,
        child_ptr=shape.child_ptr.tolist(),
        label=label.tolist(),
        size=size.tolist(),
        balance=_balance(size, shape.child_ptr),
        labels=labels,
        words=_named(label_tree_words(packed, N_WORDS), named),
        label_names=names,
        label_uris=[],
    )


def _of_forest(
    model: FittedModel, forest: RoutedForest, tree: int, names: list[str], named: Callable[[int], str | None]
) -> Outline:
    nodes = _nodes_of_tree(forest, tree)
    number = np.full(forest.n_nodes, -1, np.int64)
    number[nodes] = np.arange(len(nodes))
    parent = np.append([-1], number[forest.parent[nodes[1:]]])
    n_children = np.diff(forest.child_ptr)[nodes]
    child_ptr = np.concatenate([[1], 1 + np.cumsum(n_children)])
    size = _sums((n_children == 0).astype(np.int64), parent)
    return Outline(
        method=model.method_name,
        kind="leaves",
        tree=tree,
        n_trees=forest.n_trees,
        child_ptr=child_ptr.tolist(),
        label=[-1] * len(nodes),
        size=size.tolist(),
        balance=_balance(size, child_ptr),
        labels=_shares_below(forest, nodes, parent, size),
        words=_named(forest_words(forest, nodes, N_WORDS), named),
        label_names=names,
        label_uris=[],
    )


def _nodes_of_tree(forest: RoutedForest, tree: int) -> npt.NDArray[np.int64]:
    """The nodes below one root, breadth-first."""
    levels = [np.array([tree], np.int64)]
    while len(levels[-1]):
        first, last = forest.child_ptr[levels[-1]], forest.child_ptr[levels[-1] + 1]
        spans = [np.arange(start, stop) for start, stop in zip(first.tolist(), last.tolist(), strict=True)]
        levels.append(np.concatenate(spans).astype(np.int64))
    return np.concatenate(levels)


def _shares_below(
    forest: RoutedForest, nodes: npt.NDArray[Any], parent: npt.NDArray[Any], size: npt.NDArray[Any]
) -> list[Shares]:
    """The labels with the highest mean share in the leaves below each node."""
    totals: list[dict[int, float]] = [{} for _ in nodes]
    found: list[Shares] = [[] for _ in nodes]
    for place in range(len(nodes) - 1, -1, -1):  # children come after their parents
        own = totals[place]
        if size[place] == 1 and not own:
            labels, values = forest.leaf(int(nodes[place]))
            own = dict(zip(labels.tolist(), values.astype(np.float64).tolist(), strict=True))
        best = sorted(own.items(), key=lambda item: (-item[1], item[0]))[:N_LABELS]
        found[place] = [(label, total / int(size[place])) for label, total in best]
        if place:
            above = totals[int(parent[place])]
            for label, value in own.items():
                above[label] = above.get(label, 0.0) + value
        totals[place] = {}
    return found


def _sums(own: npt.NDArray[np.int64], parent: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The sum of a number over each node and all nodes below it; children come after their parents."""
    total = own.copy()
    for node in range(len(own) - 1, 0, -1):
        total[parent[node]] += total[node]
    return total


def _balance(size: npt.NDArray[np.int64], child_ptr: npt.NDArray[Any]) -> list[float]:
    found = []
    for node in range(len(size)):
        parts = size[child_ptr[node] : child_ptr[node + 1]].astype(np.float64)
        shares = parts[parts > 0] / max(parts.sum(), 1)
        entropy = -float((shares * np.log(shares)).sum())
        found.append(round(entropy / np.log(len(parts)), 4) if len(parts) > 1 else 1.0)
    return found


def _named(words: list[list[tuple[int, float]]], named: Callable[[int], str | None]) -> list[list[tuple[str, float]]]:
    cache: dict[int, str] = {}

    def name(column: int) -> str:
        if column not in cache:
            known = named(column)
            cache[column] = f"feature {column}" if known is None else known
        return cache[column]

    return [[(name(column), round(weight, 3)) for column, weight in node] for node in words]
