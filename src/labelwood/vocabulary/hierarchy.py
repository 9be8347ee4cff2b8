"""The hierarchy of a vocabulary: broader and narrower concepts, ancestors, cycles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.packed.base import pointer_to
from labelwood.sparse import CSR, I32, I64
from labelwood.vocabulary.concept import BROADER
from labelwood.vocabulary.vocabulary import Vocabulary

_MOST_ANCESTORS = 100_000_000  # entries; a sound vocabulary has about ten per concept


class Parents(NamedTuple):
    """The parents of nodes 0..n-1: those of node u are ``parent[ptr[u] : ptr[u + 1]]``."""

    ptr: I64
    parent: I32

    def __call__(self, node: int) -> list[int]:
        """The parents of one node."""
        found: list[int] = self.parent[self.ptr[node] : self.ptr[node + 1]].tolist()
        return found


def parents_of(vocabulary: Vocabulary) -> Parents:
    """The broader concepts of each concept, without itself and without those outside of the vocabulary."""
    n = len(vocabulary)
    owner = np.repeat(np.arange(n), np.diff(vocabulary.link_ptr))
    kept = (vocabulary.link_kind == BROADER) & (vocabulary.link_target < n) & (vocabulary.link_target != owner)
    return Parents(pointer_to(np.bincount(owner[kept], minlength=n)), vocabulary.link_target[kept])


def in_cycles(vocabulary: Vocabulary) -> list[int]:
    """The concepts that are their own ancestors, in the order of their numbers."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - a vocabulary without a cycle to look for does without it
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    own_loop = {
        concept
        for concept in np.unique(vocabulary.link_target[vocabulary.link_kind == BROADER]).tolist()
        if concept < len(vocabulary) and concept in vocabulary.linked(concept)
    }
    ptr, parent = parents_of(vocabulary)
    n = len(vocabulary)
    if not len(parent):
        return sorted(own_loop)
    graph = csr_array((np.ones(len(parent), np.int8), parent, ptr), shape=(n, n))
    _, component = connected_components(graph, directed=True, connection="strong")
    shared = np.flatnonzero(np.bincount(component)[component] > 1)
    return sorted(own_loop | set(shared.tolist()))


def ancestors(parents: Parents, nodes: Iterable[int], n_nodes: int) -> CSR:
    """Each node with all nodes above it as a matrix nodes x nodes; only the given nodes have entries.

    A cycle ends where it began. Parents are given for the first nodes; the others have none.
    """
    rows: list[list[int]] = [[] for _ in range(n_nodes)]
    known, total = len(parents.ptr) - 1, 0
    for node in nodes:
        found, waiting = {node}, [node]
        while waiting:
            at = waiting.pop()
            fresh = [one for one in (parents(at) if at < known else ()) if one not in found]
            found.update(fresh)
            waiting += fresh
        rows[node] = sorted(found)
        total += len(found)
        if total > _MOST_ANCESTORS:
            raise LabelwoodError(f"vocabulary: the hierarchy is too deep: more than {_MOST_ANCESTORS:,} ancestors")
    indptr = pointer_to([len(row) for row in rows])
    indices = np.fromiter((one for row in rows for one in row), np.int32, int(indptr[-1]))
    return CSR(indptr, indices, np.ones(len(indices), np.float32), n_nodes)


class LabelHierarchy(NamedTuple):
    """Labels in the hierarchy of a vocabulary.

    ``above`` has a row for each label: the nodes of the label and of all its ancestors. ``near`` joins labels of which
    one is a parent of the other.
    """

    above: CSR
    near: CSR


def hierarchy_of(vocabulary: Vocabulary, labels: Sequence[Any], n_labels: int) -> LabelHierarchy | None:
    """The hierarchy of labels; None if no concept has a broader one.

    Labels beyond those given, up to ``n_labels``, and labels that the vocabulary does not know stand alone.
    """
    parents = parents_of(vocabulary)
    if not len(parents.parent):
        return None
    n, found = len(vocabulary), [vocabulary.resolve(label) for label in labels]
    concepts = [n + label if concept is None else concept for label, concept in enumerate(found)]
    concepts += range(n + len(labels), n + n_labels)
    whole = ancestors(parents, set(concepts), n + n_labels)
    above = whole.take(np.array(concepts, np.int64))
    label_of = {concept: label for label, concept in enumerate(concepts)}
    pairs = [
        (label, label_of[parent])
        for label, concept in enumerate(concepts)
        if concept < n
        for parent in parents(concept)
        if parent in label_of
    ]
    both = sorted({*pairs, *((parent, child) for child, parent in pairs)})
    indptr = pointer_to(np.bincount([one for one, _ in both], minlength=n_labels))
    indices = np.array([other for _, other in both], np.int32)
    return LabelHierarchy(above, CSR(indptr, indices, np.ones(len(indices), np.float32), n_labels))
