"""The log of requests and events: one JSON object a line, without texts, labels, tokens or paths that clients choose.

Requests are logged by :data:`access`, events by :data:`events`. Warnings of the package are in the log too, the times
of its phases are not. ``extra={"facts": {...}}`` adds fields.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import traceback
from datetime import UTC, datetime
from typing import Any, Literal

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


def open_log(path: str | None, level: Level) -> None:
    """Write what this process logs to a file, or to stderr if the path is ``-``.

    A file may be moved away at any time; the next line begins a new one. Without a path, the warnings of the package
    are printed on stderr, for people.
    """
    if path is None:
        _print_warnings()
        return
    handler: logging.Handler = (
        logging.StreamHandler() if path == "-" else logging.handlers.WatchedFileHandler(path, encoding="utf-8")
    )
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
