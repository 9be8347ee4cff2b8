"""Figure 2: the depth of the deepest tree against the number of labels, within [log_M K, 3 log_M K].

python -m experiments.ldsm.figure2
"""

from __future__ import annotations

import math

import numpy as np

from experiments.common import AT_HAND, parse
from experiments.report import Report
from experiments.settings import runs

ABSENT = ("Mediamill", "AmazonCat-13K", "Wiki10-31K", "Delicious-200K", "WikiLSHTC-325K", "Amazon-670K")
TREES = {2: 50, 4: 10}  # by arity
PUBLISHED = {"bibtex": 9, "delicious": 10, "Mediamill": 9, "AmazonCat-13K": 18, "Wiki10-31K": 10, "Delicious-200K": 46,
             "WikiLSHTC-325K": 22, "Amazon-670K": 25}  # fmt: skip


def main() -> None:
    """Train a few trees of both arities on every set and compare their depths with the bounds."""
    options = parse(__doc__, sets=(*AT_HAND, *ABSENT))
    report = Report("ldsm", "figure2", "LdSM, Figure 2: depth against labels", options)
    few, many = options.trees(TREES[4]), options.trees(TREES[2])
    report.notes.append(f"The deepest of {many} trees for M = 2 (the paper: 50), of {few} for M = 4.")
    (axis,) = report.axes(1, width=6)
    rows = []
    for name in options.sets:
        split = options.load(name)
        n_labels = split.train.Y.n_cols
        for arity, n_trees in TREES.items():
            found = runs("ldsm-forest", split, options, n_trees=options.trees(n_trees), arity=arity)
            low = math.log(n_labels) / math.log(arity)
            inside = all(low <= depth <= 3 * low for depth in found["depth"])
            rows.append({"data": split.title, "K": n_labels, "M": arity, "depth": found["depth"], "log_M K": low,
                         "3 log_M K": 3 * low, "inside": "yes" if inside else "no",
                         "paper's depth": PUBLISHED.get(name.partition("/")[0])})  # fmt: skip
            mark = {"marker": "s" if arity == 4 else "o", "fillstyle": "none" if split.generated else "full"}
            axis.plot(n_labels, np.mean(found["depth"]), color=f"C{arity // 4}", **mark)
    labels = np.geomspace(min(row["K"] for row in rows), max(row["K"] for row in rows), 50)
    for arity in (2, 4):
        for times, style in ((1, ":"), (3, "--")):
            bound = times * np.log(labels) / math.log(arity)
            axis.plot(labels, bound, style, color=f"C{arity // 4}", label=f"{times} log_{arity} K")
    axis.set(xscale="log", xlabel="labels K", ylabel="depth", title="hollow: generated stand-ins")
    axis.legend()
    report.table("Depth and its bounds", rows)
    report.write()


if __name__ == "__main__":
    main()
