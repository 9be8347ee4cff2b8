"""Readings of what the paper leaves open, one change at a time, judged on a part of the training rows.

    python -m experiments.gpt.readings --sets bibtex/xmc_split0 --trees 20 --seeds 1 [--rows 8000] [--only zero idf]
    python -m experiments.gpt.readings --sets bibtex/xmc_split0 --trees 20 --seeds 5 --around-defaults

Every seed holds out another fifth of the training rows. With --around-defaults the changes are changes of the
defaults.
"""

from __future__ import annotations

from typing import Any

from experiments.common import QUALITY, chosen, parse, thinned
from experiments.report import Report
from experiments.settings import tried

FIRST = {
    "graph": "tail", "start": "rows", "idf": True, "epochs": 3, "l1": 1.0, "tolerance": 0.0,
}  # fmt: skip
READINGS = {
    "first reading": {},
    "10 epochs, l1 4 (printed)": {"epochs": 10, "l1": 4.0},
    "rows as they come": {"normalize": False},
    "features not weighted": {"idf": False},
    "start at zero": {"start": "zero"},
    "gaussian start": {"start": "gaussian"},
    "graph by idf": {"graph": "idf"},
    "l1 0.3": {"l1": 0.3},
    "l1 3": {"l1": 3.0},
    "label threshold 200": {"label_threshold": 200},
    "label threshold 1000": {"label_threshold": 1000},
    "rate 0.5": {"learning_rate": 0.5},
    "leaves of 5": {"max_leaf": 5},
    "30 neighbours, 10 negatives": {"n_neighbors": 30},
    "10 neighbours, 20 negatives": {"n_negatives": 20},
    "graph by idf, start at zero": {"graph": "idf", "start": "zero"},
    "the same, label threshold 200": {"graph": "idf", "start": "zero", "label_threshold": 200},
    "the same, tolerance 0.05": {"graph": "idf", "start": "zero", "tolerance": 0.05},
    "the same, 6 epochs": {"graph": "idf", "start": "zero", "epochs": 6},
    "the same, 5 neighbours, 5 negatives": {"graph": "idf", "start": "zero", "n_neighbors": 5, "n_negatives": 5},
    "the same, 2 epochs, tolerance 0.02": {"graph": "idf", "start": "zero", "epochs": 2, "tolerance": 0.02},
    "the same, 1 epoch, l1 0.5": {"graph": "idf", "start": "zero", "epochs": 1, "l1": 0.5},
    "the same, features not weighted": {"graph": "idf", "start": "zero", "idf": False},
    "start at zero, 1 epoch, l1 0.5": {"start": "zero", "epochs": 1, "l1": 0.5},
    "as many negatives as neighbours": {"match_negatives": True},
    "neighbours filled to 10": {"fill_neighbors": True},
    "both": {"match_negatives": True, "fill_neighbors": True},
    "graph by idf, as many negatives as neighbours": {"graph": "idf", "start": "zero", "match_negatives": True},
}
AROUND_DEFAULTS = {
    "defaults": {},
    "leaves of 20": {"max_leaf": 20},
    "l1 0.5": {"l1": 0.5},
    "l1 2": {"l1": 2.0},
    "rate 0.3": {"learning_rate": 0.3},
    "rate 0.03": {"learning_rate": 0.03},
    "rate 0.03, l1 0.5": {"learning_rate": 0.03, "l1": 0.5},
    "rate 0.03, 2 epochs": {"learning_rate": 0.03, "epochs": 2},
    "rate 0.01": {"learning_rate": 0.01},
    "20 negatives": {"n_negatives": 20},
    "20 neighbours, 20 negatives": {"n_neighbors": 20, "n_negatives": 20},
    "as many negatives as neighbours": {"match_negatives": True},
    "features of 2 rows": {"feature_rows": 2},
    "features of 5 rows": {"feature_rows": 5},
    "features of 10 rows": {"feature_rows": 10},
    "features of 5 rows, 2 epochs": {"feature_rows": 5, "epochs": 2},
    "features of 5 rows, reranked": {"feature_rows": 5, "rerank": True},
}


def main() -> None:
    """Judge every reading on every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--trees", type=int, default=20)
        parser.add_argument("--rows", type=int, help="use this many of the training rows")
        parser.add_argument("--around-defaults", action="store_true")
        parser.add_argument("--only", nargs="+", help="readings whose names contain one of these")

    options = parse(__doc__, sets=("bibtex/xmc_split0",), extra=extra)
    around, only = options.extra.around_defaults, options.extra.only
    report = Report("gpt", "readings", "GPT: readings, held-out rows", options)
    for name in options.sets:
        split, rows = options.load(name), []
        if options.extra.rows:
            split = thinned(split, options.extra.rows)
        for title, changes in (AROUND_DEFAULTS if around else READINGS).items():
            if only and not any(part in title for part in only):
                continue
            given = {**({} if around else FIRST), **changes, "n_trees": options.trees(options.extra.trees)}
            found = tried("graph-forest", split, options, **given)
            rows.append({"": title, **chosen(found, (*QUALITY, "train, CPU s", "predict, ms", "depth", "MB"))})
        report.table(split.title, rows)
    report.write()


if __name__ == "__main__":
    main()
