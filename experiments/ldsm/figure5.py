"""Figures 1 (top right) and 5: quality against T_max, the nodes a tree may have, and the depth it then gets.

python -m experiments.ldsm.figure5
"""

from __future__ import annotations

import numpy as np

from experiments.common import NDCG, QUALITY, chosen, parse
from experiments.report import Report, draw
from experiments.settings import runs

NODES = (100, 300, 1000, 3000, 8000, 16000, 32000)


def main() -> None:
    """Draw the curves of every set."""
    options = parse(__doc__, sets=("delicious/xmc_split0", "bibtex/xmc_split0", "Mediamill", "Wiki10-31K"))
    report = Report("ldsm", "figure5", "LdSM, Figures 1 and 5: quality against nodes and depth", options)
    nodes = NODES[:4] if options.quick else NODES
    axes = iter(report.axes(2, len(options.sets)))
    for name in options.sets:
        split, rows = options.load(name), []
        for limit in nodes:
            found = runs("ldsm-forest", split, options, n_trees=options.trees(20), max_nodes=limit)
            rows.append({"T_max": limit, **chosen(found, ("depth", *QUALITY, *NDCG))})
        report.table(f"{split.title}, {options.trees(20)} trees", rows)
        ticks = [f"{row['T_max']}\n({np.mean(row['depth']):.0f})" for row in rows]
        for axis, names in ((next(axes), QUALITY), (next(axes), NDCG)):
            for metric in names:
                draw(axis, nodes, [row[metric] for row in rows], metric)
            axis.set(xscale="log", xlabel="T_max (depth)", ylabel="percent", title=split.title)
            axis.set_xticks(nodes, ticks, fontsize=7)
            axis.minorticks_off()
            axis.legend()
    report.write()


if __name__ == "__main__":
    main()
