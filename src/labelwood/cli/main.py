"""The command line: one module per command, imported only when that command runs.

The module of a command defines ``EXAMPLES``, ``add_arguments(parser, argv)`` and ``run(options)``; its docstring is the
first part of the help. Results go to stdout, everything else to stderr.

Exit codes: 0 success, 1 bad data or files, 2 wrong usage, 130 interrupted, 141 stdout was closed by its reader,
143 terminated.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, TextIO, cast

from labelwood import __version__
from labelwood.cli.support.parser import Parser, UsageError
from labelwood.cli.support.safe_output import SafeOutput, remark, safe
from labelwood.errors import LabelwoodError, LabelwoodWarning, nearest
from labelwood.progress import SHOWN
from labelwood.run_context import logger

_GROUPS = {
    # folder of labelwood.cli.commands: (heading in the overview, {command: summary})
    "training": (
        "train a model",
        {
            "train": "train a model on a data file",
            "tune": "find the best method and parameters within a time budget",
            "estimate": "predict model size, peak memory and time before training",
            "learn": "train an online model further, from a file or a pipe",
            "calibrate": "turn scores into probabilities and choose thresholds, on held-out data",
            "shrink": "prune and quantize a label-tree model and measure the loss",
            "import": "take over a model of omikuji, PECOS, napkinXC or LibMultiLabel",
        },
    ),
    "use": (
        "use a model",
        {
            "predict": "suggest labels for a text or for every row of a data file",
            "eval": "evaluate a model on a data file with known labels",
            "explain": "show why labels are suggested and where a label was lost",
            "serve": "suggest labels and learn over HTTP",
            "review": "tag documents on a web page, with suggestions",
            "restore": "export the model of a service as it was at a point in time",
        },
    ),
    "inspect": (
        "inspect a model",
        {
            "info": "show parameters, training and size of a model",
            "tree": "show a tree as a web page, a Graphviz drawing or JSON",
            "plot": "plot quality against trees, nodes, size or label frequency",
            "labels": "list, rename, retire, merge and restore the labels of an online model",
            "methods": "list the methods and their parameters",
        },
    ),
    "tools": (
        "data and shell",
        {
            "convert": "convert a data file to another format",
            "split": "split a data file into rows to train on and held-out rows",
            "data": "generate a data set",
            "vocabulary": "show and convert controlled vocabularies (SKOS, Annif)",
            "completion": "print a completion script for your shell",
            "demo": "train on the source code of this Python and show suggestions",
            "doctor": "show versions, cores, memory and extras, and what is missing",
        },
    ),
}
COMMANDS = {name: summary for _, commands in _GROUPS.values() for name, summary in commands.items()}
_MODULES = {"import": "import_model"}  # a word of Python cannot name a module
_HOMES = {
    name: f"labelwood.cli.commands.{folder}.{_MODULES.get(name, name)}"
    for folder, (_, commands) in _GROUPS.items()
    for name in commands
}

_EXIT_DATA, _EXIT_USAGE, _EXIT_INTERRUPTED, _EXIT_BROKEN_PIPE, _EXIT_TERMINATED = 1, 2, 130, 141, 143


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an error is one line on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with _ends_in_order(), contextlib.redirect_stdout(cast(TextIO, SafeOutput(sys.stdout))):
            code = _dispatch(words)
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout again at exit, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_BROKEN_PIPE
    except (UsageError, LabelwoodError, OSError, MemoryError, KeyboardInterrupt) as error:
        message, code = _explain(error)
        print(safe(" ".join(message.split())), file=sys.stderr)
    return code


@contextlib.contextmanager
def _ends_in_order() -> Iterator[None]:
    """On SIGTERM, end as after an error, so that unfinished files are removed; a service sets its own handler."""
    is_default = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_default:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(_EXIT_TERMINATED))
    try:
        yield
    finally:
        if is_default:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _explain(error: BaseException) -> tuple[str, int]:
    """Return the line to print about an error, and the exit code."""
    if isinstance(error, UsageError):
        return str(error), _EXIT_USAGE
    if isinstance(error, KeyboardInterrupt):
        return "labelwood: interrupted", _EXIT_INTERRUPTED
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"labelwood: {where}{error.strerror or error}", _EXIT_DATA
    if isinstance(error, MemoryError):
        return f"labelwood: out of memory {error}", _EXIT_DATA
    return f"labelwood: {error}", _EXIT_DATA


def _dispatch(words: list[str]) -> int:
    known = ", ".join(COMMANDS)
    if not words:
        raise UsageError(f"labelwood: a command is needed, one of {known}; see labelwood --help")
    name, *rest = words
    if name in ("-h", "--help"):
        print(_overview())
        return 0
    if name == "--version":
        print(f"labelwood {__version__}")
        return 0
    if name not in COMMANDS:
        raise UsageError(f"labelwood: the command must be one of {known}; got {name!r}{nearest(name, COMMANDS)}")
    parser = parser_of(name, rest)
    if "-h" in rest or "--help" in rest:
        print(parser.format_help(), end="")
        return 0
    options = parser.parse_args(rest)
    try:
        with _shown(quiet=options.quiet, loud=options.loud), _warnings_as_remarks(parser):
            code: int = importlib.import_module(_HOMES[name]).run(options)
            options.remark_unread()
    except (LabelwoodError, UsageError) as error:
        raise type(error)(_in_flags(str(error), parser)) from error
    return code


def _in_flags(message: str, parser: Parser) -> str:
    from labelwood.cli.support.method_flags import in_flags  # noqa: PLC0415 - the overview does without numpy

    return in_flags(message, parser)


def parser_of(name: str, words: Sequence[str]) -> Parser:
    """Return the parser of a command; some of its flags depend on the words that follow the command."""
    command = importlib.import_module(_HOMES[name])
    parser = Parser(prog=f"labelwood {name}", description=command.__doc__, examples=command.EXAMPLES)
    command.add_arguments(parser, list(words))
    return parser


@contextlib.contextmanager
def _shown(*, quiet: bool, loud: bool) -> Iterator[None]:
    """Set what a command prints on stderr: progress, and with -v the seconds of every phase."""
    SHOWN.bars, SHOWN.loading = not quiet, not quiet
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    if loud:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        SHOWN.bars, SHOWN.loading = True, False
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


@contextlib.contextmanager
def _warnings_as_remarks(parser: Parser) -> Iterator[None]:
    """Print warnings of the library as remarks, one line each."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, LabelwoodWarning):
            remark(f"{parser.prog}: {_in_flags(str(message), parser)}")
        else:
            plain(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("default", LabelwoodWarning)
        plain, warnings.showwarning = warnings.showwarning, show
        yield


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = []
    for heading, commands in _GROUPS.values():
        lines += [f"{heading}:", *(f"  {name:<{width}}  {summary}" for name, summary in commands.items()), ""]
    return "\n".join(
        [
            "usage: labelwood COMMAND ...",
            "",
            "Extreme multi-label classification with trees: find the few right labels among thousands or millions.",
            "",
            *lines,
            "Run labelwood COMMAND --help for the flags of a command, labelwood --version for the version.",
        ]
    )
