"""Twin of ``size_estimate.hpp``: what an untrained label tree says about its size, Eq. (18) of the paper on model size.

Matrices are dense here. A node's rows are those that carry a label below it; it uses a feature if one of them does.

    X  rows x features      Y  rows x labels, 0/1
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[Any]


def count(X: Matrix, Y: Matrix, child_ptr: Matrix, label: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Used features and row entries of every inner node, and rows of every node, leaves included."""
    has_row = _rows_of_nodes(Y, child_ptr, label)
    inner = np.flatnonzero(label < 0)
    used = np.array([(X[has_row[:, node]] != 0).any(axis=0).sum() for node in inner])
    entries = np.array([np.count_nonzero(X[has_row[:, node]]) for node in inner])
    return used, entries, has_row.sum(axis=0)


def reach(
    X: Matrix, Y: Matrix, child_ptr: Matrix, label: Matrix, thresholds: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """Features whose sum over a node's rows exceeds each threshold in size: by node, and by all children of one.

    Last, the squared length of each node's sum. The root is no child of any node, so that it reaches nothing.
    """
    has_row = _rows_of_nodes(Y, child_ptr, label)
    sums = np.abs(has_row.T.astype(X.dtype) @ X)
    sums[0] = 0
    exceeds = sums[:, :, None] > np.asarray(thresholds)
    inner = np.flatnonzero(label < 0)
    together = [exceeds[child_ptr[node] : child_ptr[node + 1]].any(axis=0).sum(axis=0) for node in inner]
    return exceeds.sum(axis=1), np.array(together), (sums.astype(np.float64) ** 2).sum(axis=1)


def _rows_of_nodes(Y: Matrix, child_ptr: Matrix, label: Matrix) -> Matrix:
    """Which rows carry a label below which node: rows x nodes."""
    n_nodes = len(label)
    below = np.zeros((n_nodes, Y.shape[1]), bool)
    for node in reversed(range(n_nodes)):  # children follow their parent
        if label[node] >= 0:
            below[node, label[node]] = True
        else:
            below[node] = below[child_ptr[node] : child_ptr[node + 1]].any(axis=0)
    has_row: Matrix = (Y.astype(bool) @ below.T) > 0
    return has_row
