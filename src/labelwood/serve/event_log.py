"""The log of requests and events: one JSON object a line, without texts, labels, tokens or paths that clients choose.

Requests are logged by :data:`access`, events by :data:`events`. Warnings of the package are in the log too, the times
of its phases are not. ``extra={"facts": {...}}`` adds fields.
"""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from labelwood.errors import LabelwoodError
from labelwood.run_context import logger

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")

access = logging.getLogger("labelwood.access")
events = logging.getLogger("labelwood.events")
access.propagate = events.propagate = False  # -v prints what the package logs, not every request


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of JSON."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage().strip(),
            "process": record.process,
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:  # the message of an exception may quote a request
            frames = traceback.extract_tb(record.exc_info[2])
            fields["exception"] = record.exc_info[0].__name__
            fields["frames"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(fields, default=str)


class _LogFile(logging.handlers.WatchedFileHandler):
    """A log that never stops the service: what cannot be written is left out, and the first time said on stderr."""

    _fails = _has_failed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; the file is opened again if it was moved away."""
        self._fails = False
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)
        self._has_failed = self._fails

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say once what is wrong with the log."""
        self._fails = True
        if not self._has_failed:
            with contextlib.suppress(OSError, ValueError):
                print(f"labelwood: the log cannot be written: {sys.exc_info()[1]}", file=sys.stderr, flush=True)


def check_log(path: str, *folders: Path) -> None:
    """Raise if a log must not be written to ``path``: to a pipe, whose reader could stop the service, or into folders.

    ``folders`` are those whose files a log would spoil.
    """
    real = Path(os.path.realpath(path))
    if real.is_fifo():
        raise LabelwoodError(f"serve: --log must not be a named pipe: {path}. Write to stderr (--log -) instead")
    for folder in folders:
        if real.is_relative_to(os.path.realpath(folder)):
            raise LabelwoodError(f"serve: --log must not be within {folder}; got {path}")


def open_log(path: str | None, level: Level) -> None:
    """Write what this process logs to a file, or to stderr if the path is ``-``.

    A file may be moved away at any time; the next line begins a new one. Without a path, the warnings of the package
    are printed on stderr, for people.
    """
    if path is None:
        _print_warnings()
        return
    handler: logging.Handler = logging.StreamHandler() if path == "-" else _LogFile(path, encoding="utf-8")
    handler.setFormatter(_Lines())
    handler.setLevel(level.upper())
    handler.addFilter(lambda record: record.name != logger.name or record.levelno >= logging.WARNING)
    for one in (access, events):
        one.setLevel(level.upper())
    for one in (access, events, logger, logging.getLogger("uvicorn.error")):
        one.addHandler(handler)


def _print_warnings() -> None:
    if any(isinstance(handler, logging.StreamHandler) for handler in logger.handlers):
        return  # -v prints them already
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s: %(message)s"))
    logger.addHandler(handler)
