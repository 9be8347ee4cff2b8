"""Tables 1, 2 and 6 (with 4 and 7): quality, prediction time, training time and depth of LdSM.

    python -m experiments.ldsm.tables_1_2_6

Both splits of Bibtex and Delicious; the published figures are of the repository's split. The papers' larger sets run
when --data has them. The paper chose M = 2 or 4; M = 2 is our default, M = 4 is shown beside it.
"""

from __future__ import annotations

from experiments.common import NDCG, QUALITY, chosen, parse
from experiments.report import NOT_AT_HAND, Report
from experiments.settings import runs

SETS = ("bibtex/xmc_split0", "bibtex", "delicious/xmc_split0", "delicious", "Mediamill", "AmazonCat-13K", "Wiki10-31K",
        "Delicious-200K", "WikiLSHTC-325K", "Amazon-670K")  # fmt: skip
# P@1, 3, 5 and nDCG@1, 3, 5; ms a row; training seconds; depth and arity.
PUBLISHED = {
    "bibtex": ((64.69, 39.70, 29.25, 64.69, 60.37, 62.73), 0.013, 20.69, (9, 4)),
    "delicious": ((71.91, 65.34, 60.24, 71.91, 66.90, 63.09), 0.017, 65.0, (10, 4)),
    "Mediamill": ((90.64, 73.60, 58.62, 90.64, 82.14, 79.23), 0.05, 52.7, (9, 4)),
    "AmazonCat-13K": ((93.87, 75.41, 57.86, 93.87, 85.06, 80.63), 0.09, 2865.0, (18, 2)),
    "Wiki10-31K": ((83.74, 71.74, 61.51, 83.74, 74.60, 66.77), 0.20, 1033.0, (10, 4)),
    "Delicious-200K": ((44.90, 40.58, 38.22, 44.90, 41.62, 39.80), 5.64, 29067.0, (46, 2)),
    "WikiLSHTC-325K": ((55.00, 34.57, 25.29, 55.00, 48.32, 47.80), 2.77, 124131.0, (22, 2)),
    "Amazon-670K": ((42.17, 37.60, 34.09, 42.17, 39.83, 38.22), 3.04, 72121.0, (25, 2)),
}


def main() -> None:
    """Run both arities on every set and write the three tables."""
    options = parse(__doc__, sets=SETS)
    quality, prediction, training = [], [], []
    for name in options.sets_at_hand():
        split = options.load(name)
        paper = PUBLISHED.get(name.partition("/")[0])
        of_paper = paper and ("xmc_split0" in name or name[0].isupper())
        printed = " / ".join(map(str, paper[0])) if paper and of_paper else None
        for arity in (2, 4):
            found = runs("ldsm-forest", split, options, arity=arity, n_trees=options.trees(50))
            place = {"data": split.title, "M": arity}
            quality.append({**place, **chosen(found, (*QUALITY, *NDCG)),
                            "paper, P and nDCG": printed})  # fmt: skip
            prediction.append({**place, **chosen(found, ("predict, ms", "MB")), "paper, ms": paper and paper[1]})
            training.append({**place, **chosen(found, ("train, CPU s", "depth")), "paper, s": paper and paper[2],
                             "paper, depth and M": paper and str(paper[3])})  # fmt: skip
    printed_of = {name: {"P and nDCG": " / ".join(map(str, paper[0])), "ms": paper[1], "s": paper[2],
                         "depth and M": str(paper[3])} for name, paper in PUBLISHED.items()}  # fmt: skip
    for number, title, rows in (
        (1, "quality", quality), (2, "prediction time, milliseconds a row", prediction),
        (6, "training time, CPU seconds, and depth (Table 4)", training),
    ):  # fmt: skip
        report = Report("ldsm", f"table{number}", f"LdSM, Table {number}: {title}", options)
        report.notes.append("Times are of another machine than the paper's; its figures are there for their order.")
        report.table(f"Table {number}", rows)
        if number == 1:
            report.table(NOT_AT_HAND, options.published(printed_of))
        report.write()


if __name__ == "__main__":
    main()
