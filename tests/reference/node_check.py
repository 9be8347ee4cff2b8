"""What a search relies on in the weights of a packed label tree, node by node."""

import numpy as np

RANGE, ORDER, ROW_START, ROW_END, CHILD = range(1, 6)


def first_fault(arrays):
    """The number of the first fault of the first node that has one; 0 if there is none."""
    dense = len(arrays["row_start"]) == 0 and len(arrays["child"]) == 0
    for node, n_children in enumerate(arrays["n_children"].tolist()):
        own = slice(*arrays["feature_ptr"][node : node + 2].tolist())
        features = arrays["features"][own].astype(np.int64)
        if ((features < 0) | (features >= arrays["n_features"])).any():
            return RANGE
        if (np.diff(features) <= 0).any():
            return ORDER
        if dense:
            continue
        starts = arrays["row_start"][own].astype(np.int64)
        first, last = arrays["weight_ptr"][node : node + 2].tolist()
        if (np.diff(starts) < 0).any():
            return ROW_START
        if len(starts) and starts[-1] > last - first:
            return ROW_END
        child = arrays["child"][first:last].astype(np.int64)
        if ((child < 0) | (child >= n_children)).any():
            return CHILD
    return 0
