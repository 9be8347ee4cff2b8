"""What the CRAFTML paper claims of projections and metrics without figures, on held-out training rows.

    python -m experiments.craftml.claims

The printed form with ten trees: hashing against Gaussian projections, the cosine against Euclidean distance.
"""

from __future__ import annotations

from experiments.common import QUALITY, chosen, parse
from experiments.report import Report
from experiments.settings import tried
from labelwood import CraftForest

CHANGES = {
    "as printed: hashing, cosine": {},
    "Gaussian projections": {"projection": "gaussian"},
    "Euclidean distance": {"metric": "euclidean"},
}


def main() -> None:
    """Try each change on every set and write the tables."""
    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0"))
    report = Report("craftml", "claims", "CRAFTML: projections and metrics, held-out rows", options)
    for name in options.sets:
        split = options.load(name)
        printed = {**CraftForest.PRESETS["paper"], "n_trees": options.trees(10)}
        rows = []
        for title, change in CHANGES.items():
            found = tried("craft-forest", split, options, **{**printed, **change})
            rows.append({"": title, **chosen(found, (*QUALITY, "train, CPU s"))})
        report.table(split.title, rows)
    report.write()


if __name__ == "__main__":
    main()
