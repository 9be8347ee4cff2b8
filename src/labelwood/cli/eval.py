"""Measure a model on a data file with known labels. All figures are percent."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import numpy as np

from labelwood.cli.inputs import (
    add_data_arguments,
    add_model_argument,
    read_model,
    read_rows_and_truth,
)
from labelwood.cli.output import print_json, print_table, shown, shown_seconds
from labelwood.cli.parser import Parser, distinct_counts, two_positive
from labelwood.methods.text_classifier import estimator_of
from labelwood.metrics import evaluate, inverse_propensities, report_by_frequency
from labelwood.progress import Run

EXAMPLES = (
    "labelwood eval model held-out.csv --text title,body --labels tags",
    "labelwood eval model test.txt.xz",
    "labelwood eval model test.txt.xz --ks 1,3,5 --json",
)
_DEFAULT_KS = (1, 3, 5)


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_model_argument(parser)
    add_data_arguments(parser)
    parser.value(
        "--ks",
        metavar="K,K",
        takes="integers, at least 1, with commas between",
        help="the places to measure at (default 1,3,5)",
        convert=distinct_counts,
        default=_DEFAULT_KS,
    )
    parser.value(
        "--propensity",
        metavar="A,B",
        takes="two numbers, greater than 0, with a comma between",
        help="propensity model of PSP, PSnDCG (default 0.55,1.5; Amazon data 0.6,2.6, Wikipedia 0.5,0.4)",
        convert=two_positive,
        default=(0.55, 1.5),
    )
    parser.json_flag()


def run(options: argparse.Namespace) -> int:
    """Predict, compare with the truth, print every metric at every k."""
    clock = Run()
    with clock.phase("load"):
        whole = read_model(options)
        model = estimator_of(whole)
        rows, truth = read_rows_and_truth(whole, options)
    with clock.phase("predict"):
        top = model._topk_ids(rows, max(options.ks))
    with clock.phase("evaluate"):
        counts = np.zeros(truth.n_cols, np.int64)  # labels the model never met come last
        counts[: len(model.label_counts_)] = model.label_counts_
        a, b = options.propensity
        weights = inverse_propensities(counts, model.trained_["rows"], A=a, B=b)
        found = _percent(evaluate(truth, top, options.ks, inv_propensity=weights))
        by_frequency = {
            name: _percent(part) for name, part in report_by_frequency(truth, top, counts, options.ks).items()
        }
    if options.json:
        seconds = {name: round(value, 4) for name, value in clock.seconds.items()}
        print_json({**found, "rows": truth.n_rows, "by_frequency": by_frequency, "seconds": seconds})
    else:
        _print(found, by_frequency, options.ks)
        print(f"\n{truth.n_rows:,} rows in {shown_seconds(clock.seconds)}")
    return 0


def _percent(found: Mapping[str, float]) -> dict[str, float]:
    """Fractions as percent; what is left are counts."""
    fractions = {key for key in found if "@" in key or key.endswith("share")}
    return {key: round(100 * value, 6) if key in fractions else int(value) for key, value in found.items()}


def _print(found: Mapping[str, float], parts: Mapping[str, Mapping[str, float]], ks: Sequence[int]) -> None:
    names = list(dict.fromkeys(key.partition("@")[0] for key in found))
    header = ["percent", *(f"@{k}" for k in ks)]
    print_table(header, [[name, *(f"{found[f'{name}@{k}']:.2f}" for k in ks)] for name in names])
    print()
    last = ks[-1]
    print_table(
        ["labels", "count", "in training", "share of truth", f"P@{last}", f"R@{last}", f"coverage@{last}"],
        [
            [
                name,
                shown(part["labels"]),
                f"{part['least_count']:,}-{part['most_count']:,}",
                *(f"{part[key]:.2f}" for key in ("test_share", f"P@{last}", f"R@{last}", f"coverage@{last}")),
            ]
            for name, part in parts.items()
            if part["labels"]
        ],
    )
