"""Which learning rate and leaf size for OnlineTree: measured on a held-out fifth of the training rows.

    python -m experiments.oplt.choose --sets bibtex,delicious --epochs 3
    python -m experiments.oplt.choose --sets yso_finna_en,eurlex57k --seeds 1

The last line of a table is the best by the mean of P@1, P@3 and P@5.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from experiments.common import QUALITY, chosen, parse
from experiments.report import Report
from experiments.settings import tried

RATES, LEAVES = (0.3, 0.5, 1.0, 1.5, 2.0), (100, 200)


def main() -> None:
    """Try all on every set; the last line is the best by the mean of P@1, P@3 and P@5."""

    def extra(parser: Any) -> None:
        parser.add_argument("--epochs", type=int, default=1)

    options = parse(__doc__, sets=("bibtex", "delicious"), extra=extra)
    report = Report("oplt", "choose", "OPLT: learning rate and leaf size, held-out rows", options)
    for name in options.sets:
        split, rows = options.load(name), []
        for rate, leaves in itertools.product(RATES[:2] if options.quick else RATES, LEAVES):
            given = {"learning_rate": rate, "max_leaf": leaves, "epochs": options.extra.epochs}
            found = tried("online-tree", split, options, **given)
            rows.append({"learning_rate": rate, "max_leaf": leaves, **chosen(found, QUALITY)})
        best = max(rows, key=lambda row: np.mean([row[metric] for metric in QUALITY]))
        report.table(
            f"{split.title}, {options.extra.epochs} passes",
            [*rows, {**best, "learning_rate": f"best: {best['learning_rate']}"}],
        )
    report.write()


if __name__ == "__main__":
    main()
