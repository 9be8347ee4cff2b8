"""Figures 3 and 7: the objective J of the splits, from the root to the deepest nodes.

    python -m experiments.ldsm.figure7

The median of the nodes of a level, and their tenth to ninetieth percentile; the spread of the table is over the
seeds.
"""

from __future__ import annotations

import numpy as np

from experiments.common import parse
from experiments.report import Report
from experiments.settings import model
from labelwood.methods.forest.split_plots import by_level


def main() -> None:
    """Draw J by level for every set."""
    options = parse(__doc__, sets=("delicious/xmc_split0", "bibtex/xmc_split0"))
    report = Report("ldsm", "figure7", "LdSM, Figures 3 and 7: J against the level of the node", options)
    for name, axis in zip(options.sets, report.axes(len(options.sets), width=5), strict=True):
        split, found = options.load(name), []
        for seed in options.seeds:
            forest = model(
                "ldsm-forest", split.name, n_trees=options.trees(2), n_jobs=options.threads, random_state=seed
            )
            forest.fit(split.train.X, split.train.Y.to_scipy())
            found.append(by_level(forest.forest_, forest.splits_[:, 0]))
        axis.fill_between(np.arange(len(found[0])), found[0][:, 0], found[0][:, 2], alpha=0.3)
        for seed, levels in enumerate(found):
            axis.plot(levels[:, 1], label=f"seed {seed}")
        lowest = -model("ldsm-forest", split.name).lambda_integrity
        axis.axhline(lowest, color="grey", linewidth=0.8, label="J* = -lambda_1 (M - 1)")
        axis.set(xlabel="level", ylabel="J", title=split.title)
        axis.legend()
        report.table(split.title, [
            {"level": level, **{what: [float(part[level, place]) for part in found if level < len(part)]
                                for place, what in enumerate(("tenth percentile", "median", "ninetieth"))}}
            for level in range(max(map(len, found)))
        ])  # fmt: skip
    report.write()


if __name__ == "__main__":
    main()
