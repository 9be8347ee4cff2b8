"""The responses to errors: the status of each kind, and what is said about a request that does not validate."""

from __future__ import annotations

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
_MOST_ERRORS, _LONGEST_ERROR = 10, 2000  # errors and characters in the answer to a wrong request


def add_errors(app: FastAPI) -> None:
    """Answer errors of the library, and requests that do not validate, with a line of JSON."""

    @app.exception_handler(LabelwoodError)
    async def refused(request: Request, error: LabelwoodError) -> JSONResponse:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        if (told := _told_about_json(request, error)) is not None:
            return JSONResponse({"detail": told}, 422)
        problems = list(error.errors())[:_MOST_ERRORS]
        lines = [f"{'.'.join(str(part)[:100] for part in problem['loc'])}: {problem['msg']}" for problem in problems]
        return JSONResponse({"detail": _printable("; ".join(lines)[:_LONGEST_ERROR])}, 422)


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
