"""Table 2: GPT beside other tree methods.

    python -m experiments.gpt.table2

The paper's competitors are FastXML, PfastreXML (see experiments.fastxml.table) and PLT. CraftForest, LdsmForest and
LinearTree stand in their place on the four sets at hand. The paper's own five sets run when --data has them.
printed.py has the settings of the paper beside ours.
"""

from __future__ import annotations

from experiments.common import AT_HAND, QUALITY, chosen, parse
from experiments.report import NOT_AT_HAND, Report
from experiments.settings import is_forest, parameters, runs

ABSENT = ("AmazonCat-13K", "Wiki10-31K", "Delicious-200K", "WikiLSHTC-325K", "Amazon-670K")
# GPT, and the best of FastXML, PfastreXML and PLT.
PUBLISHED = {
    "AmazonCat-13K": ("90.84 / 76.76 / 62.55", "93.10 / 78.18 / 63.53"),
    "Wiki10-31K": ("84.76 / 73.22 / 63.20", "84.34 / 72.34 / 62.72"),
    "Delicious-200K": ("47.46 / 41.65 / 38.71", "45.37 / 38.94 / 36.21"),
    "WikiLSHTC-325K": ("63.36 / 39.97 / 29.06", "58.10 / 37.61 / 27.69"),
    "Amazon-670K": ("42.36 / 37.25 / 33.84", "39.19 / 35.84 / 33.21"),
}
METHODS = ("graph-forest", "craft-forest", "ldsm-forest", "linear-tree")
COLUMNS = (*QUALITY, "train, CPU s", "predict, ms", "MB", "depth")


def main() -> None:
    """Run every method on every set and write the table."""
    options = parse(__doc__, sets=(*AT_HAND, *ABSENT))
    report = Report("gpt", "table2", "GPT, Table 2: quality beside other tree methods", options)
    for name in options.sets_at_hand():
        split, rows = options.load(name), []
        for method in METHODS:
            trees = {"n_trees": options.trees(parameters(method, name)["n_trees"])} if is_forest(method) else {}
            rows.append({"": method, **chosen(runs(method, split, options, **trees), COLUMNS)})
        gpt, others = PUBLISHED.get(name, (None, None))
        title = f"{split.title}; the paper: GPT {gpt}, best of its others {others}" if gpt else split.title
        report.table(title, rows)
    absent = {name: {"GPT": gpt, "best of its others": others} for name, (gpt, others) in PUBLISHED.items()}
    report.table(NOT_AT_HAND, options.published(absent))
    report.write()


if __name__ == "__main__":
    main()
