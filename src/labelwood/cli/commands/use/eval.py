"""Evaluate a model on a data file with known labels.

All figures are in percent, with 95 % bootstrap confidence intervals.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelwood.cli.support.inputs import (
    add_data_arguments,
    add_model_argument,
    objective_flag,
    read_model,
    read_rows_and_truth,
)
from labelwood.cli.support.output import open_output, print_facts, print_json, print_table, shown, shown_seconds
from labelwood.cli.support.parser import Parser, distinct_counts, two_positive
from labelwood.estimator import TreeEstimator
from labelwood.methods.text_classifier import estimator_of
from labelwood.metrics import (
    BINS,
    Interval,
    bootstrap_intervals,
    calibration_error,
    evaluate,
    frequency_bins,
    inverse_propensities,
    paired_intervals,
    report_by_frequency,
    set_scores,
)
from labelwood.metrics.definitions import label_totals
from labelwood.metrics.judged import judge
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, I64, TopK, from_scipy

EXAMPLES = (
    "labelwood eval model held-out.csv --text title,body --labels tags",
    "labelwood eval model test.txt.xz --per-label labels.csv",
    "labelwood eval model test.txt.xz --compare other-model",
    "labelwood eval model test.txt.xz --objective tail",
)
_DEFAULT_KS = (1, 3, 5)


class _Measured(NamedTuple):
    """The predictions of a model and the true labels, both as label ids of the model."""

    model: TreeEstimator
    truth: CSR
    top: TopK
    counts: I64  # training rows of every label; labels that the model does not know come last
    sets: CSR  # label sets: what predict returns
    plain: TopK | None  # with an objective: the rankings without it


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_model_argument(parser)
    add_data_arguments(parser)
    parser.value(
        "--ks",
        metavar="K,K",
        takes="integers, at least 1, separated by commas",
        help="cutoffs k of the metrics @k (default 1,3,5)",
        convert=distinct_counts,
        default=_DEFAULT_KS,
    )
    parser.value(
        "--propensity",
        metavar="A,B",
        takes="two numbers, greater than 0, separated by a comma",
        help="propensity parameters for PSP and PSnDCG (default 0.55,1.5; Amazon data 0.6,2.6; Wikipedia 0.5,0.4)",
        convert=two_positive,
        default=(0.55, 1.5),
    )
    objective_flag(parser)
    parser.count("--resamples", default=1000, help="bootstrap resamples for the confidence intervals")
    parser.value(
        "--per-label",
        metavar="FILE",
        takes="a CSV file",
        convert=Path,
        help="write counts, precision, recall and F1 of every label to a CSV file",
    )
    parser.value(
        "--compare",
        metavar="MODEL2",
        takes="the directory of another model",
        help="evaluate a second model on the same rows; print the differences with confidence intervals",
    )
    parser.json_flag()


def run(options: argparse.Namespace) -> int:
    """Predict, compare with the true labels, print every metric at every k."""
    clock = RunContext()
    measured = _measure(options, clock)
    with clock.phase("evaluate"):
        found, by_frequency = _figures(measured, options)
        meaning = _meaning(measured)
        intervals = bootstrap_intervals(measured.truth, measured.top, options.ks, n_resamples=options.resamples)
        if options.per_label is not None:
            _write_per_label(options.per_label, measured, options.ks[-1])
    differences = _compare(measured, options, clock) if options.compare else None
    if options.json:
        seconds = {name: round(value, 4) for name, value in clock.seconds.items()}
        answer = {
            **found,
            "rows": measured.truth.n_rows,
            "intervals": {name: _bounds(interval) for name, interval in intervals.items()},
            "by_frequency": by_frequency,
            **meaning,
            "seconds": seconds,
        }
        if differences is not None:
            answer["compared_with"] = options.compare
            answer["differences"] = {
                name: {"mean": _rounded(interval.mean), "interval": _bounds(interval)}
                for name, interval in differences.items()
            }
        print_json(answer)
        return 0
    _print(found, intervals, by_frequency, options.ks)
    if measured.plain is not None:
        _print_cost(measured, by_frequency, options)
    print()
    print_facts(meaning)
    if differences is not None:
        _print_differences(found, differences, options)
    print(f"\n{measured.truth.n_rows:,} rows in {shown_seconds(clock.seconds)}")
    return 0


def _measure(options: argparse.Namespace, clock: RunContext) -> _Measured:
    with clock.phase("load"):
        whole = read_model(options)
        model = estimator_of(whole)
        rows, truth = read_rows_and_truth(whole, options)
    with clock.phase("predict"):
        top = model.topk_ids(rows, max(options.ks), options.objective)
        sets = from_scipy(model.predict(rows))
        plain = None if options.objective is None else model.topk_ids(rows, max(options.ks))
    counts = np.zeros(truth.n_cols, np.int64)
    counts[: len(model.label_counts_)] = model.label_counts_
    return _Measured(model, truth, top, counts, sets, plain)


def _figures(measured: _Measured, options: argparse.Namespace) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    a, b = options.propensity
    weights = inverse_propensities(measured.counts, measured.model.trained_["rows"], A=a, B=b)
    found = evaluate(measured.truth, measured.top, options.ks, inv_propensity=weights)
    parts = report_by_frequency(measured.truth, measured.top, measured.counts, options.ks)
    return _percent(found), {name: _percent(part) for name, part in parts.items()}


def _meaning(measured: _Measured) -> dict[str, float]:
    """The calibration error of the scores, and the quality of the label sets that the model predicts."""
    lists = measured.top if measured.plain is None else measured.plain
    found = {"calibration_error": round(calibration_error(measured.truth, lists), 6)}
    return found | {name: _rounded(value) for name, value in set_scores(measured.truth, measured.sets).items()}


def _print_cost(measured: _Measured, parts: Mapping[str, Mapping[str, float]], options: argparse.Namespace) -> None:
    """Print the recall without and with the objective, from the most frequent labels to the rarest."""
    assert measured.plain is not None
    last = options.ks[-1]
    before = report_by_frequency(measured.truth, measured.plain, measured.counts, options.ks)
    print(f"\nR@{last} by label frequency, without and with --objective {options.objective}")
    rows: list[list[Any]] = []
    for name, part in parts.items():
        if part["labels"]:
            was, now = 100 * before[name][f"R@{last}"], part[f"R@{last}"]
            rows.append([name, f"{was:.2f}", f"{now:.2f}", f"{now - was:+.2f}"])
    print_table(["labels", "without", "with", "difference"], rows)


def _compare(measured: _Measured, options: argparse.Namespace, clock: RunContext) -> dict[str, Interval]:
    """Return by how much the second model is better, for every metric that is a mean over rows."""
    other = _measure(argparse.Namespace(**{**vars(options), "model": options.compare}), clock)
    with clock.phase("evaluate"):
        return paired_intervals(
            (measured.truth, measured.top), (other.truth, other.top), options.ks, n_resamples=options.resamples
        )


def _write_per_label(path: Path, measured: _Measured, k: int) -> None:
    totals = label_totals(judge(measured.truth, measured.top), k)
    names = measured.model.classes_.tolist()
    bins = frequency_bins(measured.counts)
    with open_output(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["label", "bin", "training_rows", "true_rows", "predicted", "right", "precision", "recall", "f1"]
        )
        for label, f1 in enumerate(totals.f1.tolist()):
            true, predicted, right = (
                float(column[label]) for column in (totals.n_positive, totals.predicted, totals.hits)
            )
            if not (true or predicted):
                continue
            shares = (right / predicted if predicted else 0.0, right / true if true else 0.0, f1)
            writer.writerow(
                [
                    names[label] if label < len(names) else f"unknown to the model, {label}",
                    BINS[bins[label]],
                    int(measured.counts[label]),
                    *(f"{count:g}" for count in (true, predicted, right)),
                    *(f"{100 * share:.2f}" for share in shares),
                ]
            )


def _percent(found: Mapping[str, float]) -> dict[str, float]:
    """Convert fractions to percent; counts stay counts."""
    fractions = {key for key in found if "@" in key or key.endswith("share")}
    return {key: _rounded(value) if key in fractions else int(value) for key, value in found.items()}


def _rounded(fraction: float) -> float:
    return round(100 * fraction, 6)


def _bounds(interval: Interval) -> list[float]:
    return [_rounded(interval.low), _rounded(interval.high)]


def _print(
    found: Mapping[str, float],
    intervals: Mapping[str, Interval],
    parts: Mapping[str, Mapping[str, float]],
    ks: Sequence[int],
) -> None:
    names = list(dict.fromkeys(key.partition("@")[0] for key in found))

    def cell(key: str) -> list[str]:
        return [f"{found[key]:.2f}", _shown_bounds(intervals[key]) if key in intervals else ""]

    header = ["percent", *(column for k in ks for column in (f"@{k}", "95%"))]
    print_table(header, [[name, *(text for k in ks for text in cell(f"{name}@{k}"))] for name in names])
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


def _print_differences(
    found: Mapping[str, float], differences: Mapping[str, Interval], options: argparse.Namespace
) -> None:
    print(f"\n{options.compare} minus {options.model}, on the same rows")

    def line(name: str, interval: Interval) -> list[str]:
        sure = "" if interval.low <= 0 <= interval.high else "yes"
        other = found[name] + 100 * interval.mean
        return [name, *(f"{v:.2f}" for v in (found[name], other)), f"{100 * interval.mean:+.2f}",
                _shown_bounds(interval, sign="+"), sure]  # fmt: skip

    rows: list[list[Any]] = [line(name, interval) for name, interval in differences.items()]
    print_table(["percent", "MODEL", "MODEL2", "difference", "95%", "beyond chance"], rows)


def _shown_bounds(interval: Interval, *, sign: str = "") -> str:
    return f"{100 * interval.low:{sign}.2f} .. {100 * interval.high:{sign}.2f}"
