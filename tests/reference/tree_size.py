"""Twin of label_tree/size_estimate.hpp: the size of a label tree before it is trained, Eq. (18).

"Exploring Space Efficiency in a Tree-based Linear Model" (Lin, Liu and Lin, 2024). The rows of a node are
those with a label below it. A node uses a feature if one of its rows does. Matrices are dense.

    X  rows x features      Y  rows x labels, 0/1
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[Any]


def count(X: Matrix, Y: Matrix, child_ptr: Matrix, label: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """The used features and the row entries of every inner node, and the rows of every node."""
    has_row = _rows_of_nodes(Y, child_ptr, label)
    inner = np.flatnonzero(label < 0)
    used = np.array([(X[has_row[:, node]] != 0).any(axis=0).sum() for node in inner])
    entries = np.array([np.count_nonzero(X[has_row[:, node]]) for node in inner])
    return used, entries, has_row.sum(axis=0)


def reach(
    X: Matrix, Y: Matrix, child_ptr: Matrix, label: Matrix, thresholds: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """Count the features whose absolute sum over a node's rows exceeds each threshold.

    Returns the counts per node, the counts per inner node of features that exceed it in any child, and the
    squared length of each node's sum. The root is not a child of any node, so its counts are 0.
    """
    has_row = _rows_of_nodes(Y, child_ptr, label)
    sums = np.abs(has_row.T.astype(X.dtype) @ X)
    sums[0] = 0
    exceeds = sums[:, :, None] > np.asarray(thresholds)
    inner = np.flatnonzero(label < 0)
    together = [exceeds[child_ptr[node] : child_ptr[node + 1]].any(axis=0).sum(axis=0) for node in inner]
    return exceeds.sum(axis=1), np.array(together), (sums.astype(np.float64) ** 2).sum(axis=1)


def _rows_of_nodes(Y: Matrix, child_ptr: Matrix, label: Matrix) -> Matrix:
    """True if a row has a label below a node: rows x nodes."""
    n_nodes = len(label)
    below = np.zeros((n_nodes, Y.shape[1]), bool)
    for node in reversed(range(n_nodes)):  # children follow their parent
        if label[node] >= 0:
            below[node, label[node]] = True
        else:
            below[node] = below[child_ptr[node] : child_ptr[node + 1]].any(axis=0)
    has_row: Matrix = (Y.astype(bool) @ below.T) > 0
    return has_row
