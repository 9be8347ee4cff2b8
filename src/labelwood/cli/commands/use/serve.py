"""Serve a model over HTTP: suggestions, explanations, and a web page to try them.

An online model also learns from requests; every acknowledged example is durable.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from labelwood.cli.support.output import print_json
from labelwood.cli.support.parser import Parser, at_least, number
from labelwood.errors import LabelwoodError

EXAMPLES = (
    "labelwood serve model",
    "labelwood serve model --host 0.0.0.0 --tokens tokens.txt --workers 4",
    "labelwood serve model --state /var/lib/labelwood --drift-alarm 0.5",
)


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("model", metavar="MODEL", takes="the directory of a trained model")
    parser.value(
        "--host", metavar="HOST", takes="an address", default="127.0.0.1",
        help="address to listen on; addresses other than loopback need tokens (default 127.0.0.1)",
    )  # fmt: skip
    _number(parser, "--port", 0, 8765, "port to listen on; 0 picks a free port")
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
        "--uris", metavar="FILE", takes="an Annif vocabulary in TSV format", convert=Path,
        help="Annif vocabulary in TSV format, with the URIs of the labels",
    )  # fmt: skip
    _number(parser, "--max-body", 1, 4 * 2**20, "largest request body in bytes")
    _positive(parser, "--timeout", 30.0, "time limit of a request in seconds")
    _number(parser, "--at-once", 1, 256, "requests handled at the same time")
    _number(parser, "--queue", 1, 1000, "learning requests that may wait")
    _positive(parser, "--snapshot-seconds", 60.0, "seconds between snapshots while the model learns")
    _number(parser, "--keep", 2, 2, "snapshots to keep; labelwood restore reaches back to the oldest")
    _number(parser, "--drift-window", 1, 1000, "examples over which drift is measured")
    _positive(parser, "--drift-alarm", None, "raise an alarm if progressive P@1 falls below this")
    parser.json_flag()


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted."""
    try:
        from labelwood.serve.http.gate import Limits  # noqa: PLC0415 - an optional dependency
        from labelwood.serve.processes import Options, serve  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise LabelwoodError(f"serve: {error.name} is needed; pip install 'labelwood[serve]'") from None

    def announce(facts: dict[str, Any]) -> None:
        if options.json:
            print_json(facts)
            sys.stdout.flush()
        how = f", learning, state in {facts['state']}" if facts["learns"] else ""
        print(f"labelwood: serving {options.model} at {facts['url']}{how}", file=sys.stderr, flush=True)

    serve(
        Options(
            model=Path(options.model),
            host=options.host,
            port=options.port,
            state=options.state,
            learn=not options.no_learn,
            workers=options.workers,
            n_jobs=options.n_jobs,
            tokens=options.tokens,
            uris=options.uris,
            limits=Limits(options.max_body, options.timeout, options.at_once),
            queue_length=options.queue,
            snapshot_seconds=options.snapshot_seconds,
            keep=options.keep,
            drift_window=options.drift_window,
            alarm_below=options.drift_alarm or 0.0,
        ),
        announce,
    )
    return 0


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
