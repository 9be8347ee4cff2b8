"""Neighbour pairs kept together by each level's hyperplanes, against random hyperplanes through the median.

python -m experiments.gpt.kept_pairs --sets bibtex/xmc_split0 --trees 3
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.common import Split, parse
from experiments.report import Report
from labelwood import GraphForest
from labelwood.methods.forest.label_neighbors import label_graph
from tests.reference.graph_forest import kept_pairs


def by_level(split: Split, n_trees: int, seed: int) -> dict[int, np.ndarray]:
    """Pairs, those kept by the cut and those kept by chance, for every level."""
    X, Y = split.train.X, split.train.Y
    model = GraphForest(n_trees=n_trees, n_jobs=1, random_state=seed).fit(X, Y.to_scipy())
    rows, random = model.forest_.prepare(X).to_scipy(), np.random.default_rng(seed)
    given = {"label_threshold": model.label_threshold, "graph": model.graph}

    def graph_of(own: np.ndarray) -> Any:
        return label_graph(Y.take(own), model.n_neighbors, **given)[:2]

    def at_random(own: Any, _: Any) -> np.ndarray:
        margin = own @ random.standard_normal(own.shape[1])
        return margin >= np.median(margin)

    totals: dict[int, np.ndarray] = {}
    for tree in range(n_trees):
        learned = kept_pairs(model.forest_, tree, rows, graph_of, lambda _, split: split)
        chance = kept_pairs(model.forest_, tree, rows, graph_of, at_random)
        for level, ((pairs, kept), (_, by_chance)) in enumerate(zip(learned, chance, strict=True)):
            totals.setdefault(level, np.zeros(3, np.int64))
            totals[level] += (pairs, kept, by_chance)
    return {level: counts for level, counts in totals.items() if counts[0]}


def main() -> None:
    """Count on every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--trees", type=int, default=3)

    options = parse(__doc__, sets=("bibtex/xmc_split0",), extra=extra)
    report = Report("gpt", "kept_pairs", "GPT: neighbour pairs that stay together", options)
    for name in options.sets:
        split = options.load(name)
        found = [by_level(split, options.trees(options.extra.trees), seed) for seed in options.seeds]
        report.table(split.title, [
            {"level": level, "pairs": [int(seed[level][0]) for seed in found if level in seed],
             **{what: [100 * float(seed[level][place] / seed[level][0]) for seed in found if level in seed]
                for place, what in ((1, "kept by the cut, %"), (2, "by a random hyperplane, %"))}}
            for level in range(max(map(len, found)))
        ])  # fmt: skip
    report.write()


if __name__ == "__main__":
    main()
