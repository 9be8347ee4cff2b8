"""Tag documents on a web page, with the suggestions of a model or of label names; several people may work at once.

Every decision is on disk before the page shows it as saved. OUTPUT is written when the command ends; the next start
goes on where the last one ended.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from labelwood.cli.support.inputs import (
    add_data_arguments,
    add_threads_argument,
    read_texts,
    vocabulary_flag,
    vocabulary_of,
)
from labelwood.cli.support.output import open_output, print_json
from labelwood.cli.support.parser import Options, Parser, UsageError, at_least, between, one_of
from labelwood.cli.support.safe_output import remark
from labelwood.data import load_label_texts
from labelwood.errors import LabelwoodError
from labelwood.methods import load
from labelwood.methods.text_classifier import Model

if TYPE_CHECKING:
    from labelwood.review.desk import Desk
    from labelwood.review.queue import Order

EXAMPLES = (
    "labelwood review docs.csv --model model -o reviewed.csv",
    "labelwood review docs.csv --vocabulary yso.ttl --language fi -o reviewed.jsonl",
    "labelwood review docs.csv --label-texts names.tsv --next random -o reviewed.csv",
    "labelwood review docs.csv --model model -o reviewed.tsv --export",
)
_ORDERS = ("doubt", "order", "random")
_FOR_SERVING = ("--host", "--port", "--tokens", "--next", "--seed", "-k")


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_data_arguments(parser, label_names=False, vectors=False)
    parser.value(
        "-o", "--output", metavar="OUTPUT", takes="a file that ends in .csv, .jsonl or .tsv (Annif)", required=True,
        convert=Path,
    )  # fmt: skip
    parser.value("--model", metavar="MODEL", takes="the directory of a model of texts",
                 help="model that suggests labels (default: labels are suggested by their names)")  # fmt: skip
    vocabulary_flag(parser, ", instead of the model's; people then choose among its labels only")
    parser.value("--label-texts", metavar="FILE", takes="a text file",
                 help="names of labels: on each line a label, TAB, its texts")  # fmt: skip
    parser.value("--language", metavar="TAG", takes="a language tag, such as fi",
                 help="language of the names, at first (default: the one with the most names)")  # fmt: skip
    parser.value("--id", metavar="NAME", takes="the name of a column",
                 help="column with the ids of the documents (default: recognized by name, else the row)")  # fmt: skip
    parser.value("-k", metavar="N", takes="an integer from 1 to 100", convert=between(1, 100), default=10,
                 help="suggestions for a document (default 10)")  # fmt: skip
    parser.value("--next", metavar="WORD", takes=f"one of {', '.join(_ORDERS)}", convert=one_of(_ORDERS),
                 help="next document, at first: the most doubtful, in the order of the file, or at random "
                 "(default: doubt with a model, else order)")  # fmt: skip
    parser.value("--seed", metavar="N", takes="an integer, at least 0", convert=at_least(0), default=0,
                 help="seed of the random order (default 0)")  # fmt: skip
    parser.value("--state", metavar="DIR", takes="a directory", convert=Path,
                 help="directory for the decisions (default: OUTPUT.review)")  # fmt: skip
    parser.add_argument("--export", action="store_true", help="write OUTPUT from the decisions so far, and end")
    parser.value("--host", metavar="HOST", takes="an address", default="127.0.0.1",
                 help="address to listen on; others than loopback need tokens (default 127.0.0.1)")  # fmt: skip
    parser.value("--port", metavar="N", takes="an integer from 0 to 65535", convert=between(0, 65535), default=8766,
                 help="port to listen on; 0 picks a free port (default 8766)")  # fmt: skip
    parser.value("--tokens", metavar="FILE", takes="a file with lines of the form: read TOKEN, or: write TOKEN",
                 convert=Path, help="file with the tokens of those who may read and decide")  # fmt: skip
    add_threads_argument(parser)
    parser.json_flag()


def run(options: Options) -> int:
    """Serve the page until interrupted, then write OUTPUT."""
    try:
        from labelwood.review.export import format_of  # noqa: PLC0415 - an optional dependency
        from labelwood.review.server import serve_review  # noqa: PLC0415 - as above
        from labelwood.serve.http.auth import Tokens  # noqa: PLC0415 - as above
    except ImportError as error:
        raise LabelwoodError(f"review: {error.name} is needed; pip install 'labelwood[serve]'") from None

    format = format_of(options.output)  # fails before the long read
    if options.export:
        options.refuse(_FOR_SERVING, "--export opens no page")
        if format != "jsonl":
            options.remark(["--vocabulary", "--label-texts", "--language"], "names of labels are in .jsonl only")
    desk = _desk(options)
    if options.export:
        desk.close()
        return _write(desk, options)

    def announce(url: str) -> None:
        if options.json:
            print_json({"url": url, "documents": len(desk.documents), "labels": len(desk.labels)})
            sys.stdout.flush()
        print(f"labelwood: review {desk.title} at {url}; Ctrl-C ends and writes {options.output}", file=sys.stderr,
              flush=True)  # fmt: skip

    try:
        serve_review(desk, host=options.host, port=options.port, tokens=Tokens.find(options.tokens), announce=announce)
    finally:
        desk.close()
    return _write(desk, options)


def _desk(options: Options) -> Desk:
    from labelwood.review.desk import Desk  # noqa: PLC0415 - an optional dependency
    from labelwood.review.documents import Documents  # noqa: PLC0415 - as above
    from labelwood.review.labels import KnownLabels  # noqa: PLC0415 - as above
    from labelwood.review.made_labels import MadeLabels  # noqa: PLC0415 - as above
    from labelwood.review.proposals import ModelProposals, NameProposals, Proposals  # noqa: PLC0415 - as above
    from labelwood.review.queue import Queue  # noqa: PLC0415 - as above
    from labelwood.review.sitting import Sitting  # noqa: PLC0415 - as above

    model = _model(options)
    documents = Documents.of(read_texts(options, model, needs_labels=False, keep_table=True), options.id)
    vocabulary = vocabulary_of(options) or (None if model is None else model.vocabulary_)
    texts = None if options.label_texts is None else load_label_texts(options.label_texts)
    labels = KnownLabels(None if model is None else model.label_names, vocabulary, texts)
    language = "" if options.language is None else labels.language(options.language)
    state = options.state or options.output.with_name(options.output.name + ".review")
    sitting = Sitting(state, documents, writes=not options.export)
    try:
        if sitting.outdated:
            remark(f"{sitting.outdated:,} decisions in {state} are about texts that have changed or are gone; "
                   "they do not count")  # fmt: skip
        k = options.k
        made = MadeLabels(labels, sitting.in_use)
        if model is None:
            proposals: Proposals = NameProposals(labels, documents.texts, k, made.all)
        else:
            proposals = ModelProposals(model, k)
        default: Order = "order" if model is None else "doubt"
        order: Order = options.next or default
        queue = Queue(documents, sitting, lambda: proposals.doubts(documents.texts), seed=options.seed)
        if not options.export:
            queue.prepare(order)
            labels.prepare()
    except BaseException:
        sitting.close()
        raise
    title = Path(options.data[0]).name
    has_model = model is not None
    return Desk(title, documents, labels, made, proposals, sitting, queue, order, language, has_model=has_model)


def _model(options: Options) -> Model | None:
    if options.export or options.model is None:
        options.remark(["--n-jobs"], "--export suggests nothing" if options.export else "there is no model")
    if options.model is None:
        return None
    model = load(options.model)
    if options.n_jobs is not None:
        model.set_threads(options.n_jobs)
    if model.takes != "text":
        raise UsageError(f"labelwood review: {options.model} was trained on vectors; people read texts")
    return model


def _write(desk: Desk, options: Options) -> int:
    from labelwood.review.export import format_of  # noqa: PLC0415 - an optional dependency

    try:
        content = desk.export(format_of(options.output))
    except LabelwoodError as error:
        raise LabelwoodError(
            f"{error}; all decisions are kept: run again with --export -o and another suffix"
        ) from None
    with open_output(options.output) as file:
        file.write(content)
    n_done = desk.sitting.n_done
    print(f"labelwood: {n_done:,} of {len(desk.documents):,} documents are in {options.output}", file=sys.stderr)
    return 0
