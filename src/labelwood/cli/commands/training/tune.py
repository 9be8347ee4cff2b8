"""Find the best method and parameters for a data file within a time budget, and say why they are the best.

Candidates are trained on growing samples of the rows and compared on held-out rows; only the better ones continue
(successive halving). On texts, encoders are tried too: stems and lemmas, pairs of words, pieces of words, weights of
fields. Flags of the encoder are fixed choices. With -o, the winner is then trained on all rows and saved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelwood.cli.support.columns import columns_to_keep
from labelwood.cli.support.data_kind import has_texts, named_data
from labelwood.cli.support.inputs import (
    DEFAULT_ENCODER,
    add_data_arguments,
    add_threads_argument,
    read_data,
    read_texts,
    size_flag,
)
from labelwood.cli.support.output import print_json, print_table
from labelwood.cli.support.parser import Options, Parser, duration
from labelwood.cli.support.safe_output import remark
from labelwood.cli.support.training_options import add_encoder_options, encoder_parameters
from labelwood.methods.text_classifier import TextClassifier
from labelwood.metrics import scorer
from labelwood.resources.memory import shown_bytes
from labelwood.sparse import CSR
from labelwood.storage.model_directory import check_target
from labelwood.text import ENCODERS
from labelwood.tuning import Texts, Trial, Tuned, as_flags, tune
from labelwood.validation.targets import read_labels

EXAMPLES = (
    "labelwood tune docs.csv --budget 10m --metric P@5 -o model",
    "labelwood tune docs.csv --text title^2,body --language fi --metric P@1",
    "labelwood tune train.txt.xz --budget 5m --max-memory 200MB --json",
)
_PROG = "labelwood tune"


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_data_arguments(parser, max_memory=None, vectors=False)
    parser.value(
        "--budget",
        metavar="TIME",
        takes="a time such as 90s, 10m or 1h",
        convert=duration,
        default=600.0,
        help="time for the trials, without the final training for -o (default 10m)",
    )
    parser.value(
        "--metric",
        metavar="NAME@K",
        takes="a metric such as P@5, nDCG@3, PSP@5 or macroF1@5",
        convert=_metric,
        default="P@5",
        help="the metric to maximize (default P@5)",
    )
    size_flag(
        parser,
        "--max-memory",
        help="skip candidates whose model for all rows would be larger (default: no limit)",
        dest="max_model_memory",
    )
    parser.value(
        "-o",
        "--output",
        metavar="MODEL",
        takes="the directory to write the model to",
        convert=Path,
        help="train the winner on all rows and save it in this directory",
    )
    add_threads_argument(parser)
    add_encoder_options(parser, argv)
    parser.json_flag()


def run(options: Options) -> int:
    """Load the data, run the trials, print the result; with -o, train the winner."""
    if options.output is None:
        options.refuse(["--label-names"], "without --output no model is trained that could have names")
    else:
        check_target(options.output)  # before the trials, not after them
    X: CSR | Texts
    fixed: dict[str, Any] = {}
    if has_texts(options):
        fixed = encoder_parameters(options, _PROG)
        documents = read_texts(options)
        encoder = ENCODERS[options.encoder or DEFAULT_ENCODER]
        X = Texts(documents.texts, encoder, {**fixed, "n_jobs": options.n_jobs})
        names, Y = read_labels(documents.labels, None, "tune")
        label_names: Any = names.array.tolist()
    else:
        dataset = read_data(options)
        X, Y, label_names = dataset.X, dataset.Y, dataset.label_names
    found = tune(
        X, Y, budget=options.budget, metric=options.metric, max_bytes=options.max_model_memory, n_jobs=options.n_jobs,
        report=None if options.json else _report,
    )  # fmt: skip
    if options.output is not None:
        model = found.estimator(n_jobs=options.n_jobs, verbose=True)
        if isinstance(X, Texts):
            fitted, vectors = X.fitted(found.best.encoder)
            model.fit(vectors, Y, label_names=label_names)
            TextClassifier.of(fitted, model, columns_to_keep(options)).save(options.output)
        else:
            model.fit(X, Y, label_names=label_names)
            model.save(options.output)
    if options.json:
        print_json(_as_json(found))
    else:
        _print(found, options, fixed)
    return 0


def _report(trial: Trial, used: float) -> None:
    """Print one line on stderr for every finished trial."""
    score = f"{100 * trial.score:6.2f}" if trial.share else "     -"
    remark(f"{used:4.0%}  {score}  {trial.share:4.0%} of the rows  {trial.name}")


def _as_json(found: Tuned) -> dict[str, Any]:
    return {
        "method": found.best.method,
        "parameters": found.best.parameters,
        "encoder": found.best.encoder,
        "metric": found.metric,
        "score": round(100 * found.best.score, 4),
        "held_out_rows": found.n_held_out,
        "why": found.why,
        "trials": [
            {**vars(trial), "score": round(100 * trial.score, 4), "seconds": round(trial.seconds, 3)}
            for trial in found.trials
        ],
    }


def _print(found: Tuned, options: Options, fixed: dict[str, Any]) -> None:
    print_table(
        ["candidate", found.metric, "rows", "seconds", "size", "ended"],
        [
            [
                trial.name,
                f"{100 * trial.score:.2f}" if trial.share else "-",
                f"{trial.share:.0%}",
                f"{trial.seconds:.1f}",
                shown_bytes(trial.model_bytes),
                trial.stopped or "compared on all rows",
            ]
            for trial in found.trials
        ],
    )
    print(f"\n{found.why}")
    if options.output is None:
        flags = as_flags({name: fixed[name] for name in fixed if name not in found.best.encoder})
        print(f"labelwood train {named_data(options)} -o MODEL --method {found.best.name} {flags}".rstrip())
    else:
        print(f"trained on all rows: {options.output}")


def _metric(text: str) -> str:
    scorer(text, inv_propensity=[1.0])  # raises a ValueError if this is not a metric
    return text
