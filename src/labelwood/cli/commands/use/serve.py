"""Serve a model over HTTP: suggestions, explanations, and a web page to try them.

An online model also learns from requests; every acknowledged example is durable.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from labelwood.cli.support.output import print_json
from labelwood.cli.support.parser import Options, Parser, at_least, between, number, one_of
from labelwood.errors import LabelwoodError
from labelwood.methods import load
from labelwood.methods.online.learner import learner_of
from labelwood.serve.event_log import LEVELS
from labelwood.serve.http.limits import Limits
from labelwood.vocabulary import load_vocabulary

EXAMPLES = (
    "labelwood serve model",
    "labelwood serve model --host 0.0.0.0 --tokens tokens.txt --workers 4",
    "labelwood serve model --language fi",
    "labelwood serve model --state /var/lib/labelwood --drift-alarm 0.5",
)
_LIMITS = Limits()
_FOR_REFITS = ("--no-refits", "--refit-seconds", "--refit-jobs")
_FOR_LEARNING = ("--state", "--queue", "--snapshot-seconds", "--keep", "--drift-window", "--drift-alarm")


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("model", metavar="MODEL", takes="the directory of a trained model")
    parser.value(
        "--host", metavar="HOST", takes="an address", default="127.0.0.1",
        help="address to listen on; addresses other than loopback need tokens (default 127.0.0.1)",
    )  # fmt: skip
    parser.value(
        "--port", metavar="N", takes="an integer from 0 to 65535", convert=between(0, 65535), default=8765,
        help="port to listen on; 0 picks a free port (default 8765)",
    )  # fmt: skip
    parser.value(
        "--state", metavar="DIR", takes="a directory", convert=Path,
        help="directory for what the model learns (default: MODEL.state)",
    )  # fmt: skip
    parser.add_argument("--no-learn", action="store_true", help="do not let an online model learn")
    _number(
        parser,
        "--workers",
        1,
        1,
        "processes that answer requests; with more than one, another process does the learning",
    )
    _number(parser, "--n-jobs", 1, 1, "threads per request")
    parser.value(
        "--tokens", metavar="FILE", takes="a file with lines of the form: read TOKEN, or: write TOKEN", convert=Path,
        help="file with lines \"read TOKEN\" or \"write TOKEN\" (default: environment variable LABELWOOD_TOKENS)",
    )  # fmt: skip
    parser.value(
        "--vocabulary", metavar="FILE", takes="a vocabulary file", convert=Path,
        help="names and URIs of the labels, instead of the model's: SKOS, Annif's TSV or CSV, or a table",
    )  # fmt: skip
    parser.value(
        "--language", metavar="TAG", takes="a language tag, such as fi",
        help="language of names where a request does not say (default: the one with the most names)",
    )  # fmt: skip
    _add_limits(parser)
    parser.value(
        "--log", metavar="FILE", takes="a file, or - for stderr",
        help="write requests and events as JSON lines to FILE, - for stderr (default: no log)",
    )  # fmt: skip
    parser.value(
        "--log-level", metavar="LEVEL", takes=f"one of {', '.join(LEVELS)}", convert=one_of(LEVELS),
        default="info", help="least level to log; requests are logged at info (default info)",
    )  # fmt: skip
    _number(parser, "--queue", 1, 1000, "learning requests that may wait")
    _positive(parser, "--snapshot-seconds", 60.0, "seconds between snapshots while the model learns")
    _number(parser, "--keep", 2, 2, "snapshots to keep; labelwood restore reaches back to the oldest")
    _number(parser, "--drift-window", 1, 1000, "examples over which drift is measured")
    _positive(parser, "--drift-alarm", None, "raise an alarm if progressive P@1 falls below this")
    parser.add_argument("--no-refits", action="store_true", help="never train a living-tree model again")
    _positive(parser, "--refit-seconds", None, "train a living-tree model again after this time as well")
    _number(parser, "--refit-jobs", 1, 1, "threads that train a living-tree model again")
    parser.json_flag()


def _add_limits(parser: Parser) -> None:
    _number(parser, "--max-body", 1, _LIMITS.body_bytes, "largest request body in bytes")
    _number(
        parser, "--max-bodies", 1, _LIMITS.bodies_bytes, "bytes of all request bodies in memory, at least --max-body"
    )
    _number(parser, "--max-header", 1024, _LIMITS.header_bytes, "largest request headers in bytes")
    _positive(parser, "--timeout", _LIMITS.seconds, "seconds to answer a request")
    _positive(parser, "--header-timeout", _LIMITS.header_seconds, "seconds for the headers of a request to arrive")
    _positive(
        parser, "--body-timeout", _LIMITS.body_seconds, "seconds for a body to arrive, or for an answer to be read"
    )
    _positive(parser, "--idle-timeout", _LIMITS.idle_seconds, "seconds that a connection stays open without a request")
    _number(parser, "--at-once", 1, _LIMITS.at_once, "requests answered at the same time")
    _number(parser, "--max-connections", 1, _LIMITS.connections, "open connections per process")
    _number(parser, "--max-per-address", 1, _LIMITS.per_address, "open connections per client address and process")


def run(options: Options) -> int:
    """Serve until interrupted."""
    try:
        from labelwood.serve.processes import Options as ServiceOptions  # noqa: PLC0415 - an optional dependency
        from labelwood.serve.processes import serve  # noqa: PLC0415 - as above
        from labelwood.serve.state.refits import RefitOptions  # noqa: PLC0415 - as above
    except ImportError as error:
        raise LabelwoodError(f"serve: {error.name} is needed; pip install 'labelwood[serve]'") from None

    if options.log is None:
        options.refuse(["--log-level"], "it needs --log")
    if options.max_bodies < options.max_body:
        options.refuse(["--max-bodies"], f"it must be at least --max-body, {options.max_body}")

    def announce(facts: dict[str, Any]) -> None:
        if options.json:
            print_json(facts)
            sys.stdout.flush()
        how = f", learning, state in {facts['state']}" if facts["learns"] else ""
        print(f"labelwood: serving {options.model} at {facts['url']}{how}", file=sys.stderr, flush=True)

    _remark_without_effect(options)
    serve(
        ServiceOptions(
            model=Path(options.model),
            host=options.host,
            port=options.port,
            state=options.state,
            learn=not options.no_learn,
            workers=options.workers,
            n_jobs=options.n_jobs,
            tokens=options.tokens,
            vocabulary=options.vocabulary,
            language=options.language,
            limits=Limits(
                body_bytes=options.max_body,
                seconds=options.timeout,
                at_once=options.at_once,
                header_bytes=options.max_header,
                header_seconds=options.header_timeout,
                body_seconds=options.body_timeout,
                idle_seconds=options.idle_timeout,
                bodies_bytes=max(options.max_bodies, options.max_body),
                connections=options.max_connections,
                per_address=options.max_per_address,
            ),
            queue_length=options.queue,
            snapshot_seconds=options.snapshot_seconds,
            keep=options.keep,
            drift_window=options.drift_window,
            alarm_below=options.drift_alarm or 0.0,
            refits=RefitOptions(
                when="asked" if options.no_refits else "due",
                seconds=None if options.no_refits else options.refit_seconds,
                n_jobs=options.refit_jobs,
            ),
            log=options.log,
            log_level=options.log_level,
        ),
        announce,
    )
    return 0


def _remark_without_effect(options: Options) -> None:
    """Remark on options that the model makes pointless; they are no errors, so that any model can be served by them."""
    if not options.has_given((*_FOR_LEARNING, *_FOR_REFITS, "--no-learn", "--vocabulary")):
        return
    model = load(options.model)
    if options.no_learn or not model.can_learn:
        why = "--no-learn is given" if options.no_learn else f"{options.model} does not learn"
        options.remark((*_FOR_LEARNING, *_FOR_REFITS), why)
    elif not learner_of(model, owner=options.model).can_refit:
        options.remark(_FOR_REFITS, f"{options.model} is never trained again")
    elif options.no_refits:
        options.remark(["--refit-seconds", "--refit-jobs"], "--no-refits is given")
    if not model.can_learn:
        options.remark(["--no-learn"], f"{options.model} does not learn")
    if options.vocabulary is not None:
        vocabulary = load_vocabulary(options.vocabulary)
        if all(vocabulary.resolve(label) is None for label in model.label_names.index):
            options.remark(["--vocabulary"], f"{options.vocabulary} has none of the labels of {options.model}")


def _number(parser: Parser, flag: str, least: int, default: int, text: str) -> None:
    parser.value(
        flag, metavar="N", takes=f"an integer, at least {least}", convert=at_least(least), default=default,
        help=f"{text} (default {default})",
    )  # fmt: skip


def _positive(parser: Parser, flag: str, default: float | None, text: str) -> None:
    shown = "none" if default is None else f"{default:g}"
    parser.value(
        flag, metavar="X", takes="a number above 0", convert=number(above=0), default=default,
        help=f"{text} (default {shown})",
    )  # fmt: skip
