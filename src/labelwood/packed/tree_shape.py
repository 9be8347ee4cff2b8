"""Label trees as flat arrays, and the builders that need no training data.

A tree is grown as (parent, label) pairs and frozen by :func:`freeze` into breadth-first order; everything after that
works on the frozen arrays. Builders that cluster labels by their training rows live with the methods that use them.
"""

from __future__ import annotations

import heapq
import json
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError, LabelwoodWarning
from labelwood.sparse import I32, I64


def level_bounds(child_ptr: I32, *, n_roots: int) -> I64:
    """The first id of each level of breadth-first ids: the first child of a level's first node begins the next."""
    bounds = [0, n_roots]
    while bounds[-1] < len(child_ptr) - 1:
        bounds.append(int(child_ptr[bounds[-1]]))
    return np.array(bounds, np.int64)


@dataclass(frozen=True)
class LabelTree:
    """A rooted tree whose leaves are the labels, each once.

    Invariants: node ids are breadth-first, so node 0 is the root and the children of ``u`` are the contiguous ids
    ``child_ptr[u] .. child_ptr[u + 1]``, all larger than ``u``; ``child_ptr[0] == 1`` and ``child_ptr[-1]`` is the
    number of nodes; ``label[u]`` is -1 exactly where ``u`` has children. A tree without labels has no leaves.
    """

    child_ptr: I32
    label: I32

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.label)

    @cached_property
    def inner(self) -> I32:
        """Ids of the inner nodes, ascending."""
        return np.flatnonzero(self.label < 0).astype(np.int32)

    @cached_property
    def inner_of(self) -> I32:
        """Number of a node among the inner nodes, -1 for a leaf."""
        numbers = np.full(self.n_nodes, -1, np.int32)
        numbers[self.inner] = np.arange(len(self.inner), dtype=np.int32)
        return numbers

    @cached_property
    def parent(self) -> I32:
        """Parent of every node, -1 for the root."""
        parents = np.repeat(np.arange(self.n_nodes, dtype=np.int32), np.diff(self.child_ptr))
        return np.concatenate([np.array([-1], np.int32), parents])

    @cached_property
    def level_ptr(self) -> I64:
        """Levels are slices: the nodes of depth ``d`` are ``level_ptr[d] .. level_ptr[d + 1]``."""
        return level_bounds(self.child_ptr, n_roots=1)

    @property
    def depth(self) -> int:
        """Edges from the root to the deepest leaf."""
        return len(self.level_ptr) - 2

    @property
    def n_labels(self) -> int:
        """Number of leaves."""
        return self.n_nodes - len(self.inner)

    def check(self, n_labels: int) -> LabelTree:
        """Assert every invariant for a tree over ``n_labels`` labels; return self."""
        ptr, label = self.child_ptr, self.label
        n_nodes = len(label)
        if n_nodes == 0 or len(ptr) != n_nodes + 1 or ptr[0] != 1 or ptr[-1] != n_nodes:
            raise LabelwoodError("LabelTree: child_ptr must run from 1 to the number of nodes")
        n_children = np.diff(ptr)
        if np.any(n_children < 0) or np.any(ptr[:-1] <= np.arange(n_nodes)):
            raise LabelwoodError("LabelTree: children must follow their parent")
        if n_labels and np.any((label < 0) != (n_children > 0)):
            raise LabelwoodError("LabelTree: a node has either children or a label")
        leaves = label[label >= 0]
        if len(leaves) != n_labels or (n_labels and not np.array_equal(np.sort(leaves), np.arange(n_labels))):
            raise LabelwoodError(f"LabelTree: each of the {n_labels} labels must be exactly one leaf")
        return self


def freeze(parent: npt.ArrayLike, label: npt.ArrayLike) -> LabelTree:
    """Put a grown tree into breadth-first order.

    ``parent[u]`` is the parent of node ``u`` (-1 for the root, which is node 0; parents come before children) and
    ``label[u]`` the label of a leaf or -1. Siblings keep their order.

    >>> freeze([-1, 0, 0, 1, 1], [-1, -1, 2, 0, 1]).label.tolist()
    [-1, -1, 2, 0, 1]
    """
    parents, labels = np.asarray(parent, np.int64), np.asarray(label, np.int32)
    by_parent = np.argsort(parents, kind="stable")
    first = np.searchsorted(parents[by_parent], np.arange(len(parents) + 1))
    level, order = np.zeros(1, np.int64), [np.zeros(1, np.int64)]
    while len(level):
        counts = first[level + 1] - first[level]
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        level = by_parent[np.repeat(first[level], counts) + inside]
        order.append(level)
    ranks = np.concatenate(order)
    child_ptr = np.concatenate([[1], 1 + np.cumsum((first[1:] - first[:-1])[ranks])])
    return LabelTree(child_ptr.astype(np.int32), np.ascontiguousarray(labels[ranks]))


def flat_tree(n_labels: int) -> LabelTree:
    """All labels directly under the root: one-vs-rest."""
    return freeze([-1] + [0] * n_labels, [-1, *range(n_labels)])


def random_tree(n_labels: int, *, arity: int, max_leaf: int, seed: int) -> LabelTree:
    """A balanced tree over shuffled labels: ``arity`` children per node, at most ``max_leaf`` labels in the last."""
    shuffled = np.random.default_rng(seed).permutation(n_labels)
    parent, label = [-1], [-1]
    pending = [(0, shuffled)]
    while pending:
        node, members = pending.pop()
        if len(members) <= max(max_leaf, 2):
            parent += [node] * len(members)
            label += members.tolist()
            continue
        for part in np.array_split(members, min(arity, -(-len(members) // max_leaf))):
            parent.append(node)
            label.append(-1)
            pending.append((len(parent) - 1, part))
    return freeze(parent, label)


def huffman_tree(counts: npt.ArrayLike, *, arity: int) -> LabelTree:
    """The tree of least expected depth when labels occur with these counts: frequent labels sit near the root."""
    weights = np.asarray(counts, np.float64)
    n_labels = len(weights)
    if n_labels == 1:
        return flat_tree(1)
    # Leaves have the first numbers. The first merge takes fewer nodes, so that all others take `arity`.
    heap = [(weight, label) for label, weight in enumerate(weights.tolist())]
    heapq.heapify(heap)
    take = 2 + (n_labels - 2) % (arity - 1)
    children: list[list[int]] = []
    while len(heap) > 1:
        merged = [heapq.heappop(heap) for _ in range(take)]
        heapq.heappush(heap, (sum(weight for weight, _ in merged), n_labels + len(children)))
        children.append([node for _, node in merged])
        take = min(arity, len(heap)) if len(heap) > 1 else 0
    parent, label = [-1], [-1]
    pending = [(0, n_labels + len(children) - 1)]
    while pending:
        target, source = pending.pop()
        for node in children[source - n_labels]:
            parent.append(target)
            label.append(node if node < n_labels else -1)
            if node >= n_labels:
                pending.append((len(parent) - 1, node))
    return freeze(parent, label)


def hierarchy_tree(hierarchy: Any, names: Sequence[Any]) -> LabelTree:
    """A tree given by the user, over the labels ``names`` in id order.

    ``hierarchy`` is one of: a path to a JSON file; nested lists and mappings whose innermost items are label names
    (a mapping's keys name the groups); or an array of parents, in which the first ``len(names)`` entries belong to the
    labels and the rest to groups, with -1 for the root.

    Nested groups may hold concepts that are no labels: they are left out. A label that only names a group becomes a
    member of that group. Other labels that are missing get a group of their own below the root. Of a repeated label the
    place nearest the root counts. A warning says how many there are of each.
    """
    if isinstance(hierarchy, str | Path):
        hierarchy = _read_json(Path(hierarchy))
    flat = isinstance(hierarchy, np.ndarray) or (
        isinstance(hierarchy, list) and -1 in hierarchy and all(type(item) is int for item in hierarchy)
    )
    if flat:
        try:
            parents = np.asarray(hierarchy, np.int64)
        except OverflowError:
            raise LabelwoodError("hierarchy: parents must be ids of other nodes") from None
        return _from_parents(parents, len(names))
    if not isinstance(hierarchy, Mapping | list | tuple):
        raise LabelwoodError(
            f"hierarchy: must be nested lists and mappings of label names, or parents; got {hierarchy!r:.60}"
        )
    return _from_nested(hierarchy, names)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise LabelwoodError(f"hierarchy: {path}: not JSON ({error})") from None


def _from_parents(parents: npt.NDArray[np.int64], n_labels: int) -> LabelTree:
    if parents.ndim != 1:
        raise LabelwoodError("hierarchy: parents must be one-dimensional")
    n_nodes = len(parents)
    roots = np.flatnonzero(parents < 0)
    if len(roots) != 1 or roots[0] < n_labels or np.any(parents >= n_nodes):
        raise LabelwoodError("hierarchy: parents must have one root (-1), which is a group, and ids of other nodes")
    order, level = [int(roots[0])], roots
    by_parent = np.argsort(parents, kind="stable")
    first = np.searchsorted(parents[by_parent], np.arange(n_nodes + 1))
    while len(level):
        level = np.concatenate([by_parent[first[u] : first[u + 1]] for u in level.tolist()])
        order += level.tolist()
    if len(order) != n_nodes:
        raise LabelwoodError("hierarchy: parents must not form a cycle")
    rank = np.empty(n_nodes, np.int64)
    rank[order] = np.arange(n_nodes)
    parent = [-1] + [int(rank[parents[u]]) for u in order[1:]]
    label = [u if u < n_labels else -1 for u in order]
    has_children = np.zeros(n_nodes, bool)
    has_children[np.asarray(parent[1:], np.int64)] = True
    if np.any(has_children != (np.asarray(label) < 0)):
        raise LabelwoodError("hierarchy: labels must be leaves and groups must have members")
    return freeze(parent, label).check(n_labels)


def _from_nested(hierarchy: Any, names: Sequence[Any]) -> LabelTree:
    """Read nested groups breadth-first: of a concept that appears several times, the place nearest the root counts."""
    ids = {name: i for i, name in enumerate(names)}
    grown = _Grown([-1], [-1], {}, {}, set(), [])
    pending: deque[tuple[int, Any]] = deque([(0, hierarchy)])
    while pending:
        node, group = pending.popleft()
        for name, member in group.items() if isinstance(group, Mapping) else ((None, one) for one in group):
            if isinstance(member, Mapping | list):
                if not member:
                    raise LabelwoodError("hierarchy: a group must not be empty")
                pending.append((grown.add(node), member))
                if name in ids:
                    grown.group_of.setdefault(ids[name], len(grown.parent) - 1)
            elif member not in ids:
                grown.unknown.add(member)
            elif ids[member] in grown.leaf_of:
                grown.repeated.append(member)
            else:
                grown.leaf_of[ids[member]] = grown.add(node, ids[member])
    if not grown.leaf_of and not grown.group_of:
        raise LabelwoodError(
            f"hierarchy: none of its {len(grown.unknown)} concepts is a label of the training data; "
            f"concepts such as {next(iter(grown.unknown), None)!r}, labels such as {names[0]!r}"
        )
    _add_missing(grown, names)
    return _without_empty_groups(grown.parent, grown.label).check(len(names))


class _Grown(NamedTuple):
    """A tree as it is read: parents and labels of its nodes, and what does not fit the training data."""

    parent: list[int]
    label: list[int]
    leaf_of: dict[int, int]  # the node of each label
    group_of: dict[int, int]  # the group that has the name of a label
    unknown: set[Any]  # concepts that are no label of the training data
    repeated: list[Any]  # labels that appear again

    def add(self, parent: int, label: int = -1) -> int:
        self.parent.append(parent)
        self.label.append(label)
        return len(self.parent) - 1


def _add_missing(grown: _Grown, names: Sequence[Any]) -> None:
    """Place the labels that are no leaf: in the group of their name, else in a group of their own; warn."""
    rest = []
    for label in range(len(names)):
        if label in grown.leaf_of:
            continue
        if label in grown.group_of:
            grown.add(grown.group_of[label], label)
        else:
            rest.append(label)
    if rest:
        group = grown.add(0)
        for label in rest:
            grown.add(group, label)
    found = {
        "concepts that are no labels of the training data, left out": sorted(map(repr, grown.unknown)),
        "labels in several places, of which the one nearest the root counts": [repr(name) for name in grown.repeated],
        "labels without a place, put into a group of their own": [repr(names[label]) for label in rest],
    }
    told = [f"{text}: {len(ones):,} (such as {ones[0]})" for text, ones in found.items() if ones]
    if told:
        warnings.warn("hierarchy: " + "; ".join(told), LabelwoodWarning, stacklevel=2)


def _without_empty_groups(parent: Sequence[int], label: Sequence[int]) -> LabelTree:
    """Freeze a tree without the groups that have no labels below them."""
    is_used = np.asarray(label) >= 0
    for node in range(len(parent) - 1, 0, -1):  # parents come before their children
        if is_used[node]:
            is_used[parent[node]] = True
    kept = np.flatnonzero(is_used)
    number = np.cumsum(is_used) - 1
    parents = np.where(kept == 0, -1, number[np.asarray(parent)[kept]])
    return freeze(parents, np.asarray(label)[kept])
