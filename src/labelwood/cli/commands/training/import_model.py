"""Turn a model of omikuji, PECOS, napkinXC or LibMultiLabel into a model of Labelwood, without training again.

The imported model gives the labels and scores that the other tool gives for the same vectors. Nothing in the files is
run, and the other tool need not be installed.
"""

from __future__ import annotations

from pathlib import Path

from labelwood.cli.support.output import print_facts, print_json, print_next, shown_seconds
from labelwood.cli.support.parser import Options, Parser, at_least, one_of
from labelwood.data.label_file import read_names
from labelwood.importing import FORMATS, import_model
from labelwood.resources.memory import shown_bytes
from labelwood.run_context import RunContext
from labelwood.storage.model_directory import check_target

EXAMPLES = (
    "labelwood import omikuji-model -o model",
    "labelwood import xlinear-model -o model --labels labels.txt",
    "labelwood import plt-model -o model --from napkinxc --features 39209",
)


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("source", metavar="SOURCE", takes="the directory or file of the other tool's model")
    parser.value("-o", "--output", metavar="MODEL", takes="the directory for the model", required=True)
    names = ", ".join(FORMATS)
    parser.value(
        "--from",
        metavar="TOOL",
        takes=f"one of {names}",
        convert=one_of(tuple(FORMATS)),
        help=f"the tool that wrote SOURCE, one of {names} (default: the files tell)",
    )
    parser.value(
        "--labels",
        metavar="FILE",
        takes="a text file",
        help="names of the labels, one per line in the order of their numbers (default: the numbers)",
    )
    parser.value(
        "--features",
        metavar="N",
        takes="an integer, at least 1",
        convert=at_least(1),
        help="columns of the vectors, if the model's files tell fewer",
    )
    parser.json_flag()


def run(options: Options) -> int:
    """Read, check, save; print what the model is."""
    target, clock = Path(options.output), RunContext()
    check_target(target)
    names = None if options.labels is None else read_names(Path(options.labels))
    with clock.phase("read"):
        model = import_model(
            options.source, format=getattr(options, "from"), label_names=names, n_features=options.features
        )
    with clock.phase("save"):
        model.save(target)
    size = sum(file.stat().st_size for file in target.iterdir())
    facts = {
        "model": str(target),
        "imported_from": model.trained_["imported_from"],
        "method": model.method_name,
        "features": model.n_features_in_,
        "labels": model.n_labels_,
        **model.describe(),
    }
    if options.json:
        print_json({**facts, "model_bytes": size, "seconds": {name: round(s, 4) for name, s in clock.seconds.items()}})
    else:
        print_facts({**facts, "size": shown_bytes(size), "time": shown_seconds(clock.seconds)})
        print_next(target, takes="features")
    return 0
