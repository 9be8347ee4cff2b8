"""Table 5: the data sets at hand, with entries and labels of a row, and apart from them those that the paper prints.

python -m experiments.linear_tree_size.table5
"""

from __future__ import annotations

from experiments.common import AT_HAND, parse
from experiments.report import Report

# Training rows, features and labels as the paper prints them.
PRINTED = {
    "EUR-Lex": (15_449, 186_104, 3_956),
    "AmazonCat-13K": (1_186_239, 203_882, 13_330),
    "Wiki10-31K": (14_146, 104_374, 30_938),
    "Wiki-500K": (1_779_881, 2_381_304, 501_070),
    "Amazon-670K": (490_449, 135_909, 670_091),
    "Amazon-3M": (1_717_899, 337_067, 2_812_281),
}


def main() -> None:
    """Count."""
    options = parse(__doc__, sets=AT_HAND, seeds=1)
    report = Report("linear_tree_size", "table5", "Linear tree size, Table 5: data sets", options)
    rows = []
    for name in options.sets:
        split = options.load(name)
        train = split.train
        rows.append({
            "data": split.title, "training rows": train.n_rows, "test rows": split.test.n_rows,
            "features": train.X.n_cols, "labels": train.Y.n_cols, "entries a row": train.X.nnz / train.n_rows,
            "labels a row": train.Y.nnz / train.n_rows,
        })  # fmt: skip
    report.table("At hand", rows)
    names = ("training rows", "features", "labels")
    printed = [{"data": data, **dict(zip(names, counts, strict=True))} for data, counts in PRINTED.items()]
    report.table("Printed in the paper; none of these sets is at hand", printed)
    report.write()


if __name__ == "__main__":
    main()
