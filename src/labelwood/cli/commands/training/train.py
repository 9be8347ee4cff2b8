"""Train a model on texts or vectors and save it as a directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelwood.cli.support.inputs import add_data_arguments, executor_flag, vocabulary_flag, vocabulary_of
from labelwood.cli.support.output import print_facts, print_json, print_next, shown_seconds
from labelwood.cli.support.parser import Options, Parser, UsageError
from labelwood.cli.support.safe_output import remark
from labelwood.cli.support.training_options import add_training_options, explained, read_task
from labelwood.data import load_label_texts
from labelwood.estimator import TreeEstimator
from labelwood.label_names import LabelEntry
from labelwood.methods.text_classifier import TextClassifier, estimator_of
from labelwood.resources.memory import peak_resident, shown_bytes
from labelwood.run_context import RunContext
from labelwood.storage.model_directory import check_target
from labelwood.vocabulary import Vocabulary

EXAMPLES = (
    'labelwood train docs.csv -o model --text title,body --labels tags --sep ";"',
    "labelwood train docs.csv -o model --text title^2,body --labels tags",
    "labelwood train docs.csv -o model --words stems --language fi",
    "labelwood train docs.csv -o model --vectors docs.npy",
    "labelwood train train.txt.xz -o model --n-trees 3 --random-state 0",
    "labelwood train train.txt.xz -o model --max-memory 4GB",
    "labelwood train docs.csv -o model --method auto",
    "labelwood train docs.csv -o model --method ranker --label-texts names.tsv",
    "labelwood train docs.csv -o model --vocabulary yso.ttl --label-texts vocabulary",
    "labelwood train big.lw -o model --executor ray://head:10001 --checkpoint done --resume",
    "labelwood train --method one-vs-rest --help",
)
_PROG = "labelwood train"
_FEW_LABELS = 20  # among so few, each may well have one row


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments, with the parameters of the method and the encoder that ``argv`` names."""
    add_data_arguments(parser, max_memory=", of training too (default: the free memory)")
    parser.value("-o", "--output", metavar="MODEL", takes="the directory for the model", required=True)
    parser.value(
        "--label-texts",
        metavar="FILE",
        takes="a text file, or vocabulary",
        help="names and descriptions of labels, for data of texts: on each line a label, TAB, its texts, or vocabulary "
        "for the names in --vocabulary; labels that no row has can then be suggested, too",
    )
    vocabulary_flag(parser, "; the model keeps it, and deprecated labels are replaced or left out")
    executor_flag(parser, "train")
    parser.value(
        "--checkpoint",
        metavar="DIR",
        takes="a directory",
        help="save finished parts of the training in this directory, so that an interrupted training can resume",
    )
    parser.add_argument("--resume", action="store_true", help="resume the training in --checkpoint, if there is one")
    add_training_options(parser, argv)


def run(options: Options) -> int:
    """Load the data, fit, save; print times, sizes and the shape of the model."""
    if options.checkpoint is None:
        options.refuse(["--resume"], "it needs --checkpoint, the directory to resume from")
    if options.vocabulary is not None and not options.has_given(["--words", "--drop-stop-words"]):
        why = "it is the language of --words stems; that of names is chosen where they are shown: labelwood predict"
        options.refuse(["--language"], f"{why} --language")
    target = Path(options.output)
    check_target(target)  # before the training, not after it
    clock = RunContext()
    task = read_task(options, clock, _PROG)
    vocabulary = vocabulary_of(options)
    described: dict[str, Any] = {}
    if options.label_texts is not None:
        described["label_texts"] = _label_texts(options.label_texts, vocabulary)
    if described and not isinstance(task.model, TextClassifier):
        raise UsageError(f"{_PROG}: --label-texts needs data of texts")
    with clock.phase("fit"), explained(task, _PROG):
        task.model.fit(
            task.X,
            task.Y,
            label_names=task.label_names,
            vocabulary=vocabulary,
            **described,
            max_memory=options.max_memory,
            executor=options.executor,
            checkpoint=options.checkpoint,
            resume=options.resume,
        )
    model = task.fitted()
    if vocabulary is not None:
        _remark_on_labels(estimator_of(model).trained_["vocabulary"], len(vocabulary))
    if described:
        _remark_on_texts(described["label_texts"], estimator_of(model).label_entries())
    with clock.phase("save"):
        model.save(target)
    estimator = estimator_of(model)
    if model.takes == "text":
        _remark_on_single_rows(estimator)
    facts = {
        "model": str(target),
        "method": estimator.method_name,
        **({"encoder": model.encoder_.encoder_name} if isinstance(model, TextClassifier) else {}),
        "rows": estimator.trained_["rows"],
        "features": estimator.n_features_in_,
        "labels": estimator.n_labels_,
        **({} if vocabulary is None else {"vocabulary": estimator.trained_["vocabulary"]}),
        **estimator.describe(),
        "model_bytes": sum(file.stat().st_size for file in target.iterdir()),
        "peak_memory_bytes": peak_resident(),
        "seconds": _phases(clock.seconds, estimator.fit_seconds_),
    }
    if options.json:
        print_json(facts)
    else:
        _print(facts)
        print_next(target, takes=model.takes, with_vectors=bool(model.vector_width))
    return 0


def _remark_on_texts(texts: Mapping[str, Sequence[str]], labels: Sequence[LabelEntry]) -> None:
    """Say for which labels there are texts: a file of other labels is easily taken for the right one."""
    described = [bool(label.support) for label in labels if texts.get(str(label.name))]
    n_seen = sum(bool(label.support) for label in labels)
    told = f"label texts: for {sum(described):,} of {n_seen:,} labels with training rows"
    n_unseen = len(described) - sum(described)
    remark(f"{told}, and for {n_unseen:,} labels without any" if n_unseen else told)


def _label_texts(given: str, vocabulary: Vocabulary | None) -> dict[str, list[str]]:
    if given != "vocabulary":
        return load_label_texts(given)
    if vocabulary is None:
        raise UsageError(f"{_PROG}: --label-texts vocabulary needs --vocabulary FILE")
    return vocabulary.label_texts()


def _remark_on_labels(counts: Mapping[str, int], concepts: int) -> None:
    """Say what the vocabulary did with the labels of the data."""
    words = {
        "replaced": "deprecated labels were replaced",
        "left_out": "deprecated labels without a replacement were left out",
        "named": "labels were given by name",
        "unknown": "labels are not in the vocabulary",
    }
    told = [f"{counts[name]:,} {text}" for name, text in words.items() if counts.get(name)]
    remark(f"vocabulary of {concepts:,} concepts: {', '.join(told) or 'it knows every label, and none is deprecated'}")


def _remark_on_single_rows(estimator: TreeEstimator) -> None:
    """Say if no label has two rows, which is what a wrong column or separator looks like."""
    if estimator.n_labels_ == estimator.trained_["label_entries"] > _FEW_LABELS:
        remark(
            f"each of the {estimator.n_labels_:,} labels has one row, from which hardly anything can be learned; "
            "--labels names the column of the labels, --sep the separator between two labels"
        )


def _phases(command: dict[str, float], fit: dict[str, float]) -> dict[str, float]:
    """Return the seconds of all phases in order; ``other`` is the rest of fit, so that the phases add up."""
    other = max(0.0, command["fit"] - sum(fit.values()))
    phases = {"load": command["load"], **fit, "other": other, "save": command["save"]}
    return {name: round(seconds, 4) for name, seconds in phases.items()}


def _print(facts: dict[str, Any]) -> None:
    peak = facts.pop("peak_memory_bytes")
    n_bytes, seconds = facts.pop("model_bytes"), facts.pop("seconds")
    memory = {} if peak is None else {"peak memory": shown_bytes(peak)}
    print_facts({**facts, "size": shown_bytes(n_bytes), **memory, "time": shown_seconds(seconds)})
