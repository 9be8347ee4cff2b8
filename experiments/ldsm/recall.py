"""Theorem 2 on a grown tree: splits that lower the training recall at r, by single-path and multi-way routing.

python experiments/ldsm/recall.py delicious
"""

from __future__ import annotations

import argparse

import numpy as np
from common import read

from labelwood import LdsmForest


def hits(counts, Y, r):
    """Relevant labels among the r best of each row's score vector (one vector for all rows, or one each)."""
    best = np.argsort(-counts, axis=-1, kind="stable")[..., :r]
    best = np.broadcast_to(best, (Y.shape[0], r))
    return np.take_along_axis(Y, best, axis=1).sum()


def changes(forest, X, Y, r, several, min_rows=2):
    """Hits gained by each split, in rows times labels, over the rows that reach it."""
    gained = []
    pending = [(0, np.flatnonzero(Y.any(axis=1)))]
    while pending:
        node, rows = pending.pop()
        children = range(forest.child_ptr[node], forest.child_ptr[node + 1])
        if not children or len(rows) < min_rows:
            continue
        scores = np.empty((len(rows), len(children)))
        for m, child in enumerate(children):
            columns, weights = forest.vector(child)
            scores[:, m] = X[rows][:, columns] @ weights.astype(np.float64) + forest.bias[child]
        sent = np.eye(len(children), dtype=bool)[scores.argmax(axis=1)]
        if several:
            sent |= scores > forest.routing.threshold
        own = Y[rows]
        before = hits(own.sum(axis=0), own, r)
        hists = np.stack([own[sent[:, m]].sum(axis=0) for m in range(len(children))]).astype(float)
        shares = hists / np.maximum(hists.sum(axis=1, keepdims=True), 1)
        gained.append(hits(sent @ shares, own, r) - before)
        pending += [(child, rows[sent[:, m]]) for m, child in enumerate(children)]
    return np.array(gained)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--nodes", type=int, default=1001)
    options = parser.parse_args()
    X, Y = read(options.name, "train")
    forest = LdsmForest(n_trees=1, n_jobs=1, max_nodes=options.nodes).fit(X, Y.to_scipy()).forest_
    dense, truth = X.to_scipy().toarray(), Y.to_scipy().toarray().astype(np.int64)
    for several in (False, True):
        for r in (1, 3, 5):
            gained = changes(forest, dense, truth, r, several)
            print(
                f"{options.name} {'multi-way' if several else 'single path'} r={r}: {(gained < 0).sum()} of "
                f"{len(gained)} splits lower the recall",
                flush=True,
            )


if __name__ == "__main__":
    main()
