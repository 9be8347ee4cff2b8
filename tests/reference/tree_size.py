"""Twin of ``size_estimate.hpp``: the features that the nodes of an untrained label tree use, Eq. (18) of the paper."""

from __future__ import annotations

import numpy as np
from numpy import ndarray as Matrix  # noqa: N812


def count(X: Matrix, Y: Matrix, child_ptr: Matrix, label: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Used features and row entries of every inner node, and rows of every node, for dense X and 0/1 Y."""
    below = np.zeros((len(label), Y.shape[1]), bool)  # nodes x labels
    for node in reversed(range(len(label))):  # children follow their parent
        if label[node] >= 0:
            below[node, label[node]] = True
        else:
            below[node] = below[child_ptr[node] : child_ptr[node + 1]].any(axis=0)
    has_row = (Y.astype(bool) @ below.T) > 0  # rows x nodes
    rows = [X[has_row[:, node]] != 0 for node in np.flatnonzero(label < 0)]
    used, entries = ([part.any(axis=0).sum() for part in rows], [part.sum() for part in rows])
    return np.array(used), np.array(entries), has_row.sum(axis=0)
