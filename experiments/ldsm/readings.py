"""What each reading of the paper's silent points gives, on a fifth of the training rows held out; all weights kept.

python -m experiments.ldsm.readings --sets bibtex/xmc_split0 --trees 12
"""

from __future__ import annotations

from typing import Any

from experiments.common import QUALITY, chosen, parse
from experiments.report import Report
from experiments.settings import tried

READINGS = [
    {},
    {"lambda_integrity": 1.0},
    {"lambda_integrity": 4.0},
    {"lambda_multiway": 0.5},
    {"lambda_multiway": 2.0},
    {"lambda_integrity": 4.0, "lambda_multiway": 4.0},
    {"loss": "squared"},
    {"loss": "squared", "normalize": True, "lambda_integrity": 1.0},
    {"normalize": True},
    {"leaf_counts": "labels"},
    {"shuffle": "tree"},
    {"optimizer": "adagrad"},
    {"optimizer": "sgd"},
    {"learning_rate": 0.03},
    {"learning_rate": 0.3},
    {"epochs": 5},
    {"epochs": 20},
    {"arity": 4},
    {"arity": 4, "lambda_multiway": 2.0},
    {"max_nodes": 1000},
    {"max_nodes": 32000},
    {"weight_threshold": 0.03},
    {"weight_threshold": 0.05},
    {"weight_threshold": 0.1},
]


def main() -> None:
    """Judge every reading on every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--trees", type=int, default=12)

    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0"), extra=extra)
    report = Report("ldsm", "readings", "LdSM: readings of the silent points, held-out rows", options)
    for name in options.sets:
        split, rows = options.load(name), []
        for reading in READINGS[:4] if options.quick else READINGS:
            given = {"weight_threshold": 0.0, "n_trees": options.trees(options.extra.trees), **reading}
            found = tried("ldsm-forest", split, options, **given)
            said = ", ".join(f"{key}={value}" for key, value in reading.items()) or "default"
            rows.append({"reading": said, **chosen(found, (*QUALITY, "train, CPU s", "depth", "MB"))})
        report.table(split.title, rows)
    report.write()


if __name__ == "__main__":
    main()
