"""Evaluate a model on a data file with known labels.

All figures are in percent, with 95 % bootstrap confidence intervals. The last lines of the output explain them.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelwood.cli.support.inputs import (
    add_data_arguments,
    add_model_argument,
    language_flag,
    names_for,
    objective_flag,
    read_model,
    read_rows_and_truth,
)
from labelwood.cli.support.output import open_output, print_facts, print_json, print_table, shown, shown_seconds
from labelwood.cli.support.parser import Options, Parser, distinct_counts, two_positive
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
from labelwood.metrics.hierarchical import hierarchical_scores, near_miss_share, near_misses
from labelwood.metrics.judged import judge
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, I64, TopK, from_scipy
from labelwood.vocabulary.hierarchy import LabelHierarchy, hierarchy_of
from labelwood.vocabulary.shown_names import ShownNames

EXAMPLES = (
    "labelwood eval model held-out.csv --text title,body --labels tags",
    "labelwood eval model held-out.csv --vectors held-out.npy",
    "labelwood eval model test.txt.xz --per-label labels.csv",
    "labelwood eval model test.txt.xz --compare other-model --compare third-model",
    "labelwood eval model test.txt.xz --objective tail",
)
_DEFAULT_KS = (1, 3, 5)
_SETS_F1 = "macroF1_of_sets"  # macroF1@k is that of lists
_MEANINGS = {
    "P@k": "share of right labels among the first k of a row",
    "R@k": "share of a row's labels that are among the first k",
    "nDCG@k": "like P@k, but the earlier a right label stands, the more it counts; 100 is the best order",
    "PSP@k, PSnDCG@k": "P@k and nDCG@k in which rare labels count more (inverse propensity); 100 is the best list",
    "coverage@k": "share of the labels in DATA that are among the first k of a row that has them, at least once",
    "macroF1@k": "F1 of each label if the first k labels of every row are taken, averaged over labels",
    "microP, microR, microF1": "precision, recall and F1 of the sets that the thresholds decide, over all rows",
    "macroF1 of sets": "F1 of each label in these sets, averaged over labels",
    "calibration error": "mean distance between a score and the share of right labels among those with such a score",
    "hP@k, hR@k, hF1@k": "precision, recall and F1 of the first k labels with all their ancestors, over all rows",
    "near@k": "share of the first k labels that are wrong, but a parent or a child of a right one",
    "95%": "interval of 95 of 100 resamples of the rows",
}


_HIERARCHICAL = ("hP@k, hR@k, hF1@k", "near@k")  # only for a model whose vocabulary has a hierarchy


class _Measured(NamedTuple):
    """The predictions of a model and the true labels, both as label ids of the model."""

    model: TreeEstimator
    truth: CSR
    top: TopK
    counts: I64  # training rows of every label; labels that the model does not know come last
    sets: CSR  # label sets: what predict returns
    plain: TopK | None  # with an objective: the rankings without it
    names: ShownNames
    hierarchy: LabelHierarchy | None


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
        action="append",
        default=[],
        help="evaluate another model on the same rows; print the differences with intervals; may be repeated",
    )
    language_flag(parser)
    parser.json_flag()


class _Compared(NamedTuple):
    """The figures of another model on the same rows, and by how much they are better, with intervals."""

    figures: dict[str, float]
    differences: dict[str, Interval]


def run(options: Options) -> int:
    """Predict, compare with the true labels, print every metric at every k."""
    clock = RunContext()
    measured = _measure(options, clock)
    with clock.phase("evaluate"):
        found, meaning = _figures(measured, options), _meaning(measured)
        parts = report_by_frequency(measured.truth, measured.top, measured.counts, options.ks)
        by_frequency = {name: _percent(part) for name, part in parts.items()}
        intervals = bootstrap_intervals(measured.truth, measured.top, options.ks, n_resamples=options.resamples)
        if options.per_label is not None:
            _write_per_label(options.per_label, measured, options.ks[-1])
    compared = {path: _compare(measured, path, options, clock) for path in options.compare}
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
        if compared:
            answer["compared"] = {path: _as_json(other) for path, other in compared.items()}
        print_json(answer)
        return 0
    _print(found, intervals, by_frequency, options.ks)
    if measured.plain is not None:
        _print_cost(measured, by_frequency, options)
    if compared:
        _print_compared(found | meaning, compared, options)
    else:
        print()
        _print_models({options.model: meaning}, list(meaning))
    print()
    print_facts({name: text for name, text in _MEANINGS.items() if measured.hierarchy or name not in _HIERARCHICAL})
    print(f"\n{measured.truth.n_rows:,} rows in {shown_seconds(clock.seconds)}")
    return 0


def _measure(options: Options, clock: RunContext) -> _Measured:
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
    return _Measured(model, truth, top, counts, sets, plain, names_for(whole, options), _hierarchy(model, truth.n_cols))


def _hierarchy(model: TreeEstimator, n_labels: int) -> LabelHierarchy | None:
    """The labels in the hierarchy of the model's vocabulary, if there is one."""
    return None if model.vocabulary_ is None else hierarchy_of(model.vocabulary_, model.classes_.tolist(), n_labels)


def _figures(measured: _Measured, options: Options) -> dict[str, float]:
    a, b = options.propensity
    weights = inverse_propensities(measured.counts, measured.model.trained_["rows"], A=a, B=b)
    found = evaluate(measured.truth, measured.top, options.ks, inv_propensity=weights)
    if measured.hierarchy is not None:
        above, near = measured.hierarchy
        for k in options.ks:
            found |= hierarchical_scores(measured.truth, measured.top, above, k)
            found[f"near@{k}"] = near_miss_share(measured.truth, measured.top, near, k)
    return _percent(found)


def _meaning(measured: _Measured) -> dict[str, float]:
    """The quality of the label sets that the model decides on, and the calibration error of its scores."""
    lists = measured.top if measured.plain is None else measured.plain
    sets = set_scores(measured.truth, measured.sets)
    sets[_SETS_F1] = sets.pop("macroF1")
    sets["calibration_error"] = calibration_error(measured.truth, lists)
    return {name: _rounded(value) for name, value in sets.items()}


def _print_cost(measured: _Measured, parts: Mapping[str, Mapping[str, float]], options: Options) -> None:
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


def _compare(measured: _Measured, path: str, options: Options, clock: RunContext) -> _Compared:
    """Measure another model, and by how much it is better, for every metric that is a mean over rows."""
    other = _measure(options.changed(model=path), clock)
    with clock.phase("evaluate"):
        differences = paired_intervals(
            (measured.truth, measured.top), (other.truth, other.top), options.ks, n_resamples=options.resamples
        )
        return _Compared(_figures(other, options) | _meaning(other), differences)


def _as_json(compared: _Compared) -> dict[str, Any]:
    differences = {
        name: {"mean": _rounded(interval.mean), "interval": _bounds(interval)}
        for name, interval in compared.differences.items()
    }
    return {**compared.figures, "differences": differences}


def _write_per_label(path: Path, measured: _Measured, k: int) -> None:
    totals = label_totals(judge(measured.truth, measured.top), k)
    labels, names = measured.model.classes_.tolist(), measured.names
    bins = frequency_bins(measured.counts)
    with open_output(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        counted = ["bin", "training_rows", "true_rows", "predicted", "right", "precision", "recall", "f1"]
        close = None
        if measured.hierarchy is not None:
            close = near_misses(measured.truth, measured.top, measured.hierarchy.near, k)
            counted.append("near_misses")
        writer.writerow(["label", *(["name"] if names else []), *counted])
        for label, f1 in enumerate(totals.f1.tolist()):
            true, predicted, right = (
                float(column[label]) for column in (totals.n_positive, totals.predicted, totals.hits)
            )
            if not (true or predicted):
                continue
            shares = (right / predicted if predicted else 0.0, right / true if true else 0.0, f1)
            writer.writerow(
                [
                    labels[label] if label < len(labels) else f"unknown to the model, {label}",
                    *([names.name(labels[label]) if label < len(labels) else None] if names else []),
                    BINS[bins[label]],
                    int(measured.counts[label]),
                    *(f"{count:g}" for count in (true, predicted, right)),
                    *(f"{100 * share:.2f}" for share in shares),
                    *([] if close is None else [int(close[label])]),
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


def _print_compared(found: Mapping[str, float], compared: Mapping[str, _Compared], options: Options) -> None:
    """Print all metrics with one row per model, then the differences from MODEL with their intervals."""
    models = {options.model: found, **{path: other.figures for path, other in compared.items()}}
    ends = [f"@{k}" for k in options.ks]
    groups = [[name for name in found if name.endswith(end)] for end in ends]
    for group in [*groups, [name for name in found if "@" not in name]]:
        print()
        _print_models(models, group)
    print(f"\nminus {options.model}, with the 95% interval of the difference; * is beyond chance")
    for end in ends:
        names = [name for name in next(iter(compared.values())).differences if name.endswith(end)]
        print_table(
            ["percent", *names],
            [
                [path, *(_shown_difference(other.differences[name]) for name in names)]
                for path, other in compared.items()
            ],
        )


def _print_models(models: Mapping[str, Mapping[str, float]], names: Sequence[str]) -> None:
    """Print figures with one row per model and one column per name."""
    print_table(
        ["percent", *(name.replace("_", " ") for name in names)],
        [
            [path, *(f"{figures[name]:.2f}" if name in figures else "-" for name in names)]
            for path, figures in models.items()
        ],
    )


def _shown_difference(interval: Interval) -> str:
    is_sure = not interval.low <= 0 <= interval.high
    return f"{100 * interval.mean:+.2f} ({_shown_bounds(interval, sign='+')}) {'*' if is_sure else ' '}"


def _shown_bounds(interval: Interval, *, sign: str = "") -> str:
    return f"{100 * interval.low:{sign}.2f} .. {100 * interval.high:{sign}.2f}"
