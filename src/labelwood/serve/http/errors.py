"""The responses to errors: the status of each kind, and what is said about a request that does not validate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from labelwood.errors import LabelwoodError
from labelwood.serve.service import CannotLearnError
from labelwood.serve.state.frames import LogRefusedError
from labelwood.serve.state.log import LogInDoubtError
from labelwood.serve.state.writer import QueueFullError, StoppedError

_STATUS: dict[type[Exception], int] = {
    QueueFullError: 429,
    StoppedError: 503,
    LogRefusedError: 507,
    LogInDoubtError: 503,
    CannotLearnError: 409,
}
_MOST_ERRORS, _LONGEST_ERROR, _LONGEST_PATH = 10, 2000, 200  # errors and characters in the answer to a wrong request
_WORDS = {
    "Field required": "is missing",
    "Input should be": "must be",
    "a valid dictionary": "an object",
    "a valid ": "a ",
    "a integer": "an integer",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}


def add_errors(app: FastAPI) -> None:
    """Answer errors of the library, and requests that do not validate, with a line of JSON."""

    @app.exception_handler(LabelwoodError)
    async def refused(request: Request, error: LabelwoodError) -> JSONResponse:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        if (told := _told_about_json(request, error)) is not None:
            return JSONResponse({"detail": told}, 422)
        return JSONResponse({"detail": _printable("; ".join(_in_words(error))[:_LONGEST_ERROR])}, 422)


def _in_words(error: RequestValidationError) -> list[str]:
    """What is wrong, one sentence for each field of the request: its path, and what it must be."""
    found: dict[str, list[str]] = {}
    for problem in list(error.errors())[:_MOST_ERRORS]:
        message = problem["msg"].removeprefix("Value error, ")
        for theirs, ours in _WORDS.items():
            message = message.replace(theirs, ours)
        found.setdefault(_path(problem, error.body), []).append(message)
    return [f"{path}: {_joined(messages)}" if path else _joined(messages) for path, messages in found.items()]


def _path(problem: Mapping[str, Any], body: Any) -> str:
    """The field of the request where an error is; the place of an error also names the alternatives of a field."""
    place: Sequence[str | int] = problem["loc"]
    if place[0] != "body":
        return ".".join(map(str, place[1:]))[:_LONGEST_PATH]
    followed = []
    for part in place[1:]:
        if isinstance(part, int) if isinstance(body, list) else isinstance(body, dict) and part in body:
            followed.append(str(part))
            body = body[part]
    if problem["type"] == "missing":
        followed.append(str(place[-1]))
    return ".".join(followed)[:_LONGEST_PATH]


def _joined(messages: Sequence[str]) -> str:
    """The messages as one; each alternative of a field makes its own."""
    distinct = list(dict.fromkeys(messages))
    if all(message.startswith("must be ") for message in distinct):
        return "must be " + " or ".join(message.removeprefix("must be ") for message in distinct)
    return ", or ".join(distinct)


def _told_about_json(request: Request, error: RequestValidationError) -> str | None:
    """What is wrong if the body is no JSON, or does not say that it is; None if something else is wrong."""
    first = error.errors()[0]
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if first["type"] == "json_invalid":
        return f"the body must be JSON: {first['ctx']['error']} at character {first['loc'][-1]}"
    if first["loc"] == ("body",) and kind != "application/json" and not kind.endswith("+json"):
        return f"send Content-Type: application/json; got {kind or 'none'}"
    if first["loc"] == ("body",) and first["type"] == "missing":
        return "the body must be JSON; got an empty body"
    return None


def refusal(error: LabelwoodError) -> JSONResponse:
    """The response to an error of the library."""
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 422)
    headers = {"Retry-After": "1"} if status in (429, 503) else None
    return JSONResponse({"detail": _printable(str(error))}, status, headers=headers)


def _printable(text: str) -> str:
    """The text without half characters, which a request may contain and UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")
