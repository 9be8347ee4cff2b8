"""What the listings of the paper give where the defaults differ from them, on a fifth of the training rows held out.

    python -m experiments.ldsm.printed_readings [--sets delicious/xmc_split0]

One change at a time, then M = 4 with small T_max, and last the printed form as a whole. All weights are kept.
"""

from __future__ import annotations

from typing import Any

from experiments.common import parse
from experiments.ldsm.readings import flags, judge
from experiments.report import Report
from labelwood import LdsmForest

PRINTED: list[dict[str, Any]] = [
    {},
    {"start_weights": 0.1},
    {"start_weights": 0.5},
    {"loss": "clamped"},
    {"ties": "first"},
    {"ties": "first", "start_weights": 0.1},
    {"partial_splits": True},
    {"partial_splits": True, "arity": 4},
    {"leaf_votes": True},
    {"leaf_votes": True, "leaf_counts": "labels"},
    {"arity": 4, "max_nodes": 1000},
    {"arity": 4, "max_nodes": 2000},
    {"arity": 4, "max_nodes": 4000},
    {"arity": 4, "max_nodes": 4000, "loss": "clamped"},
    {"arity": 4, "max_nodes": 2000, "partial_splits": True, "learning_rate": 0.3},
    {name: value for name, value in LdsmForest.PRESETS["paper"].items() if name != "n_trees"},
]


def main() -> None:
    """Judge the printed readings."""
    options = parse(__doc__, sets=("bibtex/xmc_split0",), extra=flags)
    judge(options, PRINTED, Report("ldsm", "printed_readings", "LdSM: printed readings, held-out rows", options))


if __name__ == "__main__":
    main()
