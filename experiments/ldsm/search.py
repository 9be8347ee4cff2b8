"""A joint search over what the paper chose for each data set, on held-out training rows; the test rows are not read.

    python -m experiments.ldsm.search [--sets delicious/xmc_split0]

The ranges are the paper's (Section 10.1 of its supplement): lambda_1 and lambda_2 from five values, the step from 0.001
to 1, up to 20 passes, M = 2 or 4. The loss, which the paper does not give, and T_max are drawn with them. Settings
drawn at random, the defaults and the best of printed_readings.py are trained with --trees trees on one fold. The
--finalists best are trained with four times as many trees on three other folds, and the best and the defaults once more
with re-ranking. Settings are ordered by the mean of P@1, 3 and 5. The weight threshold is that of settings.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.common import QUALITY, Options, Runs, Split, chosen, parse
from experiments.report import Report
from experiments.settings import parameters, tried

VALUES: dict[str, list[Any]] = {
    "lambda_integrity": [0.5, 1.0, 1.5, 2.0, 4.0],
    "lambda_multiway": [0.5, 1.0, 1.5, 2.0, 4.0],
    "learning_rate": [0.001, 0.01, 0.03, 0.1, 0.3, 1.0],
    "epochs": [5, 10, 20],
    "loss": ["logistic", "squared", "clamped"],
    "arity": [2, 4],
    "max_nodes": [1000, 4000, 64000],
}


def drawn(count: int) -> list[dict[str, Any]]:
    """The defaults, the best of printed_readings.py, and some drawn at random, the same every time."""
    random = np.random.default_rng(0)
    return [
        {},
        {"arity": 4, "max_nodes": 4000, "loss": "clamped"},
        *({n: v[random.integers(len(v))] for n, v in VALUES.items()} for _ in range(count)),
    ]


def mean(found: Runs) -> float:
    """The mean of P@1, 3 and 5 over the folds."""
    return float(np.mean([found[metric] for metric in QUALITY]))


def searched(split: Split, options: Options) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A row per setting of the first round, best first, and a row per finalist, best first."""
    n_trees, folds = options.trees(options.extra.trees), range(1, 1 + len(options.seeds))
    base = {name: v for name, v in parameters("ldsm-forest", split.name).items() if name == "weight_threshold"}

    def ranked(settings: list[dict[str, Any]], folds: range, n_trees: int) -> list[tuple[Runs, dict[str, Any]]]:
        tuned = replace(options, seeds=folds)
        found = [(tried("ldsm-forest", split, tuned, **{**base, **own, "n_trees": n_trees}), own) for own in settings]
        return sorted(found, key=lambda pair: -mean(pair[0]))

    first = ranked(drawn(3 if options.quick else options.extra.draws), range(1), n_trees)
    last = [own for _, own in first[: options.extra.finalists]]
    final = ranked(last if {} in last else [*last, {}], folds, 4 * n_trees)
    best = [final[0][1], *([{}] if final[0][1] else [])]
    final += ranked([{**own, "rerank": True} for own in best], folds, 4 * n_trees)
    columns = (*QUALITY, "train, CPU s", "depth", "MB")
    return (
        [{"settings": said(own), **{name: found[name][0] for name in columns}} for found, own in first],
        [{"settings": said(own), **chosen(found, columns)} for found, own in final],
    )


def said(own: dict[str, Any]) -> str:
    """Settings as text."""
    return ", ".join(f"{name}={value}" for name, value in own.items()) or "defaults"


def main() -> None:
    """Search on every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--trees", type=int, default=6, help="of the first round")
        parser.add_argument("--draws", type=int, default=30)
        parser.add_argument("--finalists", type=int, default=5)

    options = parse(__doc__, sets=("bibtex/xmc_split0",), extra=extra)
    report = Report("ldsm", "search", "LdSM: joint search, held-out rows", options)
    for name in options.sets:
        split = options.load(name)
        first, final = searched(split, options)
        report.table(f"{split.title}: finalists, then the best and the defaults re-ranked", final)
        report.table(f"{split.title}: first round", first)
    report.write()


if __name__ == "__main__":
    main()
