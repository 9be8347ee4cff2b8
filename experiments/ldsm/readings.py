"""What each reading of the paper's silent points gives, on a fifth of the training rows held out; all weights kept.

    python -m experiments.ldsm.readings --sets bibtex/xmc_split0 --trees 12

printed_readings.py has those in which the defaults differ from the listings of the paper.
"""

from __future__ import annotations

from typing import Any

from experiments.common import QUALITY, Options, chosen, parse
from experiments.report import Report
from experiments.settings import tried

READINGS: list[dict[str, Any]] = [
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


def judge(options: Options, readings: list[dict[str, Any]], report: Report) -> None:
    """Judge every reading on every set, and write the tables."""
    for name in options.sets:
        split, rows = options.load(name), []
        for reading in readings[:4] if options.quick else readings:
            if options.extra.only and reading and not set(options.extra.only) & reading.keys():
                continue
            given = {"weight_threshold": 0.0, "n_trees": options.trees(options.extra.trees), **reading}
            found = tried("ldsm-forest", split, options, **given)
            said = ", ".join(f"{key}={value}" for key, value in reading.items()) or "default"
            rows.append({"reading": said, **chosen(found, (*QUALITY, "train, CPU s", "depth", "MB"))})
        report.table(split.title, rows)
    report.write()


def flags(parser: Any) -> None:
    """The flags of both scripts."""
    parser.add_argument("--trees", type=int, default=12)
    parser.add_argument("--only", nargs="+", help="readings that change one of these parameters")


def main() -> None:
    """Judge the readings of the silent points."""
    options = parse(__doc__, sets=("bibtex/xmc_split0", "delicious/xmc_split0"), extra=flags)
    judge(options, READINGS, Report("ldsm", "readings", "LdSM: readings of the silent points, held-out rows", options))


if __name__ == "__main__":
    main()
