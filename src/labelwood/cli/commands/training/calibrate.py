"""Turn the scores of a model into probabilities and choose decision thresholds, on held-out data.

The rows must not be rows that the model was trained on. The model is changed in place. The output says what the
thresholds buy on these rows: the rows that get a label, and the precision and the recall of the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelwood.cli.support.inputs import add_data_arguments, add_model_argument, read_model, read_rows_and_truth
from labelwood.cli.support.output import print_facts, print_json
from labelwood.cli.support.parser import Options, Parser, number, one_of
from labelwood.estimator import TreeEstimator
from labelwood.methods.text_classifier import estimator_of
from labelwood.metrics import calibration_error, set_scores
from labelwood.scoring.calibration import KINDS
from labelwood.scoring.thresholds import TARGETS
from labelwood.sparse import CSR, from_scipy

EXAMPLES = (
    "labelwood calibrate model held-out.csv --text title,body --labels tags",
    "labelwood calibrate model held-out.txt.xz --target macro-f1 --per-label",
    "labelwood calibrate model held-out.txt.xz --target precision --level 0.95",
)
_WITHOUT = "none"


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_model_argument(parser)
    add_data_arguments(parser)
    maps = ("auto", *KINDS)
    parser.value(
        "--map",
        metavar="WORD",
        takes=f"one of {', '.join(maps)}",
        convert=one_of(maps),
        default="auto",
        help=f"map from score to probability: one of {', '.join(maps)} (default auto: the one with the lower "
        "cross-validated loss)",
    )
    targets = (*TARGETS, _WITHOUT)
    parser.value(
        "--target",
        metavar="WORD",
        takes=f"one of {', '.join(targets)}",
        convert=one_of(targets),
        default="micro-f1",
        help=f"what the thresholds optimize: one of {', '.join(targets)} (default micro-f1)",
    )
    parser.value(
        "--level",
        metavar="X",
        takes="a number above 0, at most 1",
        convert=number(above=0, most=1),
        default=0.9,
        help="precision to reach with --target precision (default 0.9)",
    )
    parser.add_argument(
        "--per-label", action="store_true", help="choose a separate threshold for every label with enough examples"
    )
    parser.json_flag()


def run(options: Options) -> int:
    """Calibrate, choose thresholds, save the model in place, print the calibration error before and after."""
    if options.target == _WITHOUT:
        options.refuse(["--per-label"], "without a --target there are no thresholds")
    if options.target != "precision":
        options.refuse(["--level"], "it needs --target precision")
    whole = read_model(options)
    model = estimator_of(whole)
    rows, truth = read_rows_and_truth(whole, options)
    before = calibration_error(truth, model.topk_ids(rows, 5))
    Y = truth.to_scipy()
    model.calibrate(rows, Y, method=options.map)
    if options.target != _WITHOUT:
        model.choose_thresholds(rows, Y, target=options.target, level=options.level, per_label=options.per_label)
    after = calibration_error(truth, model.topk_ids(rows, 5))
    bought = {} if options.target == _WITHOUT else _bought(model, rows, truth)
    whole.save(options.model)
    facts: dict[str, Any] = {
        "model": options.model,
        "rows": rows.n_rows,
        **model.decided(),
        **bought,
        "error_before": round(before, 6),
        "error_after": round(after, 6),
    }
    if options.json:
        print_json(facts)
    else:
        print_facts(facts)
    return 0


def _bought(model: TreeEstimator, rows: CSR, truth: CSR) -> dict[str, float]:
    """What the thresholds buy on the held-out rows: rows that get a label, labels that are right, labels found."""
    sets = from_scipy(model.predict(rows))
    scores = set_scores(truth, sets)
    sizes = np.diff(sets.indptr)
    return {
        "rows_with_labels_percent": round(100 * float((sizes > 0).mean()), 2),
        "labels_per_row": round(float(sizes.mean()), 3),
        "precision_percent": round(100 * scores["microP"], 2),
        "recall_percent": round(100 * scores["microR"], 2),
    }
