"""Table 5: the data sets: rows, features, labels; and beside the paper's three, entries and labels of a row.

python -m experiments.linear_tree_size.table5
"""

from __future__ import annotations

from experiments.common import AT_HAND, SHAPES, parse
from experiments.report import Report

ABSENT = ("AmazonCat-13K", "Wiki10-31K", "Wiki-500K", "Amazon-670K", "Amazon-3M")


def main() -> None:
    """Count."""
    options = parse(__doc__, sets=(*AT_HAND, *ABSENT), seeds=1)
    report = Report("linear_tree_size", "table5", "Linear tree size, Table 5: data sets", options)
    rows = []
    for name in options.sets:
        split = options.load(name)
        train, paper = split.train, SHAPES.get(name)
        rows.append({
            "data": split.title, "training rows": train.n_rows, "test rows": split.test.n_rows,
            "features": train.X.n_cols, "labels": train.Y.n_cols, "entries a row": train.X.nnz / train.n_rows,
            "labels a row": train.Y.nnz / train.n_rows,
            "the paper": f"{paper[0]:,} rows, {paper[1]:,} features, {paper[2]:,} labels" if paper else None,
        })  # fmt: skip
    report.table("Table 5", rows)
    report.write()


if __name__ == "__main__":
    main()
