"""Serve a model over HTTP: suggestions, explanations, a page to try them; an online-tree model goes on learning."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from labelwood.cli.support.output import print_json
from labelwood.cli.support.parser import Parser, at_least
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
        "--host", metavar="HOST", takes="an address to listen to", default="127.0.0.1",
        help="the address to listen to; other than loopback it needs tokens (default 127.0.0.1)",
    )  # fmt: skip
    _number(parser, "--port", 0, 8765, "the port to listen to; 0 takes a free one")
    parser.value(
        "--state", metavar="DIR", takes="a directory", convert=Path,
        help="where what is learned is kept (default: MODEL.state)",
    )  # fmt: skip
    parser.add_argument("--no-learn", action="store_true", help="serve an online-tree model as it is")
    _number(parser, "--workers", 1, 1, "processes that answer; with more than one, another one writes")
    _number(parser, "--n-jobs", 1, 1, "threads a request may use")
    parser.value(
        "--tokens", metavar="FILE", takes="a file of lines: read TOKEN, or write TOKEN", convert=Path,
        help="a file of lines: read TOKEN, or write TOKEN (default: LABELWOOD_TOKENS in the environment)",
    )  # fmt: skip
    parser.value(
        "--uris", metavar="FILE", takes="a vocabulary of Annif, TSV", convert=Path,
        help="a vocabulary of Annif, TSV, with the URIs of the labels",
    )  # fmt: skip
    _number(parser, "--max-body", 1, 4 * 2**20, "bytes a request may have")
    _positive(parser, "--timeout", 30.0, "seconds a request may take")
    _number(parser, "--at-once", 1, 256, "requests that may be under way")
    _number(parser, "--queue", 1, 1000, "requests that may wait to be learned")
    _positive(parser, "--snapshot-seconds", 60.0, "seconds between snapshots while there is learning")
    _number(parser, "--keep", 2, 2, "snapshots kept; restore reaches back to the oldest")
    _number(parser, "--drift-window", 1, 1000, "examples that the drift figures are over")
    _positive(parser, "--drift-alarm", None, "alarm when progressive P@1 falls below this")
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
        flag, metavar="X", takes="a number above 0", convert=_above_zero, default=default,
        help=f"{text} (default {shown})",
    )  # fmt: skip


def _above_zero(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number
