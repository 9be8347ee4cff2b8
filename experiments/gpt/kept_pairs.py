"""Neighbour pairs kept together by each level's hyperplanes, against random hyperplanes through the median.

python experiments/gpt/kept_pairs.py bibtex --trees 3
"""

import argparse

import numpy as np
from sets import FOLDERS, load

from labelwood import GraphForest
from labelwood.neighbors import label_graph
from labelwood.reference.gpt import kept_pairs


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", choices=FOLDERS)
    parser.add_argument("--trees", type=int, default=3)
    given = parser.parse_args()
    (X, Y), _ = load(given.data)
    model = GraphForest(n_trees=given.trees, n_jobs=1).fit(X.to_scipy(), Y.to_scipy())
    rows = model.forest_.prepare(X).to_scipy()
    random = np.random.default_rng(0)

    def graph_of(own):
        part = Y.take(own)
        return label_graph(part, model.n_neighbors, label_threshold=model.label_threshold, graph=model.graph)[
            :2
        ]

    def at_random(own, _):
        margin = own @ random.standard_normal(own.shape[1])
        return margin >= np.median(margin)

    totals = {}
    for tree in range(given.trees):
        learned = kept_pairs(model.forest_, tree, rows, graph_of, lambda _, split: split)
        chance = kept_pairs(model.forest_, tree, rows, graph_of, at_random)
        for level, ((pairs, kept), (_, by_chance)) in enumerate(zip(learned, chance, strict=True)):
            totals.setdefault(level, np.zeros(3, np.int64))
            totals[level] += (pairs, kept, by_chance)
    print("| level | pairs | kept by the cut | by a random hyperplane |\n|---|---|---|---|")
    for level, (pairs, kept, by_chance) in totals.items():
        if pairs:
            print(f"| {level} | {pairs} | {100 * kept / pairs:.1f} % | {100 * by_chance / pairs:.1f} % |")


if __name__ == "__main__":
    main()
