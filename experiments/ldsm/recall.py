"""Theorem 2 on a grown tree: splits that lower the training recall at r, by single-path and multi-way routing.

python -m experiments.ldsm.recall
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.common import KS, parse
from experiments.report import Report
from labelwood import LdsmForest
from labelwood.packed.routed_forest import RoutedForest


def hits(counts: np.ndarray, Y: np.ndarray, r: int) -> int:
    """Relevant labels among the r best of each row's score vector (one vector for all rows, or one each)."""
    best = np.argsort(-counts, axis=-1, kind="stable")[..., :r]
    best = np.broadcast_to(best, (Y.shape[0], r))
    return np.take_along_axis(Y, best, axis=1).sum()


def changes(forest: RoutedForest, X: np.ndarray, Y: np.ndarray, r: int, several: bool, min_rows: int = 2) -> np.ndarray:
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


def main() -> None:
    """Count the splits of one tree per seed."""

    def extra(parser: Any) -> None:
        parser.add_argument("--nodes", type=int, default=1001)

    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0"), extra=extra)
    report = Report("ldsm", "recall", "LdSM, Theorem 2: splits that lower the recall", options)
    for name in options.sets:
        split = options.load(name)
        X, Y = split.train.X.to_scipy().toarray(), split.train.Y.to_scipy().toarray().astype(np.int64)
        forests = [
            LdsmForest(n_trees=1, n_jobs=1, max_nodes=options.extra.nodes, random_state=seed)
            .fit(split.train.X, split.train.Y.to_scipy())
            .forest_
            for seed in options.seeds
        ]
        rows = []
        for several in (False, True):
            gained = {r: [changes(forest, X, Y, r, several) for forest in forests] for r in KS}
            rows.append(
                {
                    "routing": "multi-way" if several else "single path",
                    "splits": [len(g) for g in gained[1]],
                    **{f"r = {r}": [int((g < 0).sum()) for g in found] for r, found in gained.items()},
                }
            )
        report.table(split.title, rows)
    report.write()


if __name__ == "__main__":
    main()
