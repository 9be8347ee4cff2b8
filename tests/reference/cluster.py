"""Twin of label_tree/cluster.hpp and label_tree/label_vectors.hpp: labels are clustered into a tree.

Section 2.2 of "Exploring Space Efficiency in a Tree-based Linear Model" (Lin, Liu and Lin, 2024), and the
balanced 2-means of Parabel (Prabhu et al., 2018). Matrices are dense.

    X   rows x features, rows of unit length        Y   rows x labels, 0/1
    V   labels x features, rows of unit length      K   arity
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .rng import Rng

Matrix = npt.NDArray[Any]


def label_vectors(X: Matrix, Y: Matrix, most: int = 0) -> Matrix:
    """Eq. (2): v'_j is the sum of the rows with label j, and v_j = v'_j / |v'_j|.

    If ``most`` is not 0, only the ``most`` largest entries of v'_j are kept.
    """
    V = Y.T @ X
    if most:
        for v in V:
            # Largest entries first; ties go to the smaller column.
            order = np.lexsort((np.arange(len(v)), -np.abs(v)))
            v[order[most:]] = 0.0
    norms = np.linalg.norm(V, axis=1, keepdims=True)
    return np.divide(V, norms, out=np.zeros_like(V), where=norms > 0)


@dataclass
class Grown:
    """A tree as (parent, label) pairs; parents come before children."""

    parent: list[int] = field(default_factory=list)
    label: list[int] = field(default_factory=list)

    def add(self, parent: int, label: int) -> int:
        """Add a node and return its number."""
        self.parent.append(parent)
        self.label.append(label)
        return len(self.parent) - 1


def grow(V: Matrix, *, balanced: bool, arity: int, max_leaf: int, max_depth: int, max_rounds: int, seed: int) -> Grown:
    """Split nodes level by level until they are small enough, or (k-means) at the depth limit."""
    tree = Grown()
    level = [(tree.add(-1, -1), list(range(len(V))))]
    depth = 0
    while level:
        below = []
        for node, labels in level:
            if balanced:
                ends = len(labels) <= max(max_leaf, 2)
            else:
                # The stopping rule of section 2.2: at most K labels, or depth d_max - 1.
                ends = len(labels) <= arity or depth >= max_depth - 1
            parts: list[list[int]] = []
            if not ends:
                rng = Rng(seed, node)
                if balanced:
                    n_parts = min(arity, -(-len(labels) // max_leaf))
                    parts = split_balanced(V, labels, n_parts, max_rounds, rng)
                else:
                    parts = kmeans(V, labels, arity, max_rounds, rng)
            if len(parts) <= 1:
                for label in labels:
                    tree.add(node, label)
                continue
            for part in parts:
                if len(part) == 1:
                    tree.add(node, part[0])
                else:
                    below.append((tree.add(node, -1), part))
        level, depth = below, depth + 1
    return tree


def split_balanced(V: Matrix, labels: list[int], parts: int, max_rounds: int, rng: Rng) -> list[list[int]]:
    """Divide labels by recursive balanced 2-means into parts whose sizes differ by at most one."""
    if parts <= 1 or len(labels) <= 1:
        return [labels]
    left_parts = parts // 2
    left, right = two_means(V, labels, len(labels) * left_parts // parts, max_rounds, rng)
    return split_balanced(V, left, left_parts, max_rounds, rng) + split_balanced(
        V, right, parts - left_parts, max_rounds, rng
    )


def two_means(V: Matrix, labels: list[int], left_size: int, max_rounds: int, rng: Rng) -> tuple[list[int], list[int]]:
    """Balanced 2-means: the ``left_size`` labels nearest to the first of two unit centres, and the rest."""
    v = V[labels]
    n = len(labels)
    first = rng.below(n)
    second = rng.below(n - 1)
    second += second >= first
    difference = v[first] - v[second]
    on_left = np.zeros(n, bool)
    for step in range(max_rounds):
        order = np.lexsort((np.arange(n), -(v @ difference)))
        before, on_left = on_left, np.zeros(n, bool)
        on_left[order[:left_size]] = True
        if step > 0 and np.count_nonzero(on_left != before) * 1000 <= n:
            break
        difference = _unit(v[on_left].sum(axis=0)) - _unit(v[~on_left].sum(axis=0))
    members = np.asarray(labels)
    return members[on_left].tolist(), members[~on_left].tolist()


def _unit(vector: Matrix) -> Matrix:
    norm = np.linalg.norm(vector)
    return vector / norm if norm > 0 else vector


def kmeans(V: Matrix, labels: list[int], arity: int, max_rounds: int, rng: Rng) -> list[list[int]]:
    """Lloyd's k-means in Euclidean distance from ``arity`` random labels; empty clusters are dropped."""
    v = V[labels]
    n = len(labels)
    picks = list(range(n))
    for i in range(arity):
        j = i + rng.below(n - i)
        picks[i], picks[j] = picks[j], picks[i]
    centres = v[picks[:arity]].copy()
    half_norm = np.full(arity, 0.5)
    assigned = np.full(n, -1)
    for _ in range(max_rounds):
        before = assigned
        # |v - c|^2 is smallest where v.c - |c|^2 / 2 is largest.
        assigned = np.argmax(v @ centres.T - half_norm, axis=1)
        if np.array_equal(assigned, before):
            break
        for c in range(arity):
            mine = v[assigned == c]
            centres[c] = mine.mean(axis=0) if len(mine) else 0.0
            half_norm[c] = 0.5 * centres[c] @ centres[c] if len(mine) else 1e30
    members = np.asarray(labels)
    clusters = [members[assigned == c].tolist() for c in range(arity)]
    return [cluster for cluster in clusters if cluster]
