"""The leaves of a grown tree and of its twin, in the same form."""

import numpy as np


def leaves_of(forest, tree):
    """Leaves from left to right as (labels, values)."""
    pending, found = [tree], []
    while pending:
        node = pending.pop()
        children = range(forest.child_ptr[node], forest.child_ptr[node + 1])
        if not children:
            found.append(tuple(part.tolist() for part in forest.leaf(node)))
        pending += reversed(children)
    return found


def twin_leaves(node):
    """The leaves of a twin's tree in the same order, in single precision."""
    if node.children:
        return [leaf for child in node.children for leaf in twin_leaves(child)]
    labels = np.flatnonzero(node.values)
    return [(labels.tolist(), node.values[labels].astype(np.float32).tolist())]
