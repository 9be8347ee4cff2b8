"""The gate: checks the size, token and number of requests before a route sees them, and ends slow ones."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labelwood.serve.http.auth import Role, Tokens, allows, names_loopback
from labelwood.serve.telemetry import Metrics

_OPEN = frozenset({"/", "/page.js", "/page.css", "/healthz", "/readyz"})
_ROUTES = {
    "/suggest": "suggest",
    "/suggest-batch": "suggest-batch",
    "/learn": "learn",
    "/labels": "labels",
    "/explain": "explain",
    "/model": "model",
}
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
]


@dataclass(frozen=True)
class Limits:
    """Limits of one request (bytes of the body, seconds) and of all requests together (number at once)."""

    body_bytes: int = 4 * 2**20
    seconds: float = 30.0
    at_once: int = 256


class _TooLargeError(Exception):
    pass


class Gate:
    """ASGI middleware: answers 401 and 403 by token, 413 by size, 503 by time and number; counts all requests."""

    def __init__(self, app: ASGIApp, *, limits: Limits, tokens: Tokens, metrics: Metrics) -> None:
        self._app, self._limits, self._tokens, self._metrics = app, limits, tokens, metrics
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        self._inside += 1
        try:
            await self._enter(scope, receive, counted)
        except _TooLargeError:
            text = f"the body must have at most {self._limits.body_bytes} bytes"
            await _refuse(counted, 413, text)
        except TimeoutError:
            if status == 0:
                text = f"not answered within {self._limits.seconds:g} seconds"
                await _refuse(counted, 503, text)
        finally:
            self._inside -= 1
            self._metrics.note(route_of(scope["path"]), status or 500, time.perf_counter() - started)

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        async with asyncio.timeout(self._limits.seconds):
            body = await self._read(headers, receive)
            await self._app(scope, replay(body, receive), send)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        path = scope["path"]
        if self._inside > self._limits.at_once and path != "/healthz":
            return 503, "too many requests at once; try again"
        if not self._tokens and not names_loopback(headers.get(b"host", b"localhost").decode("latin-1")):
            return 403, "without tokens the service answers requests to localhost only"
        role = self._tokens.role_of(headers.get(b"authorization", b"").decode("latin-1"))
        if allows(role, needed_role(scope["method"], path)):
            return None
        if role == "open":
            return 401, "a bearer token is required"
        return 403, "this token allows reading, not writing"

    async def _read(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        most = self._limits.body_bytes
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > most:
            raise _TooLargeError
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return bytes(body)
            body += message.get("body", b"")
            if len(body) > most:
                raise _TooLargeError
            if not message.get("more_body", False):
                return bytes(body)


def needed_role(method: str, path: str) -> Role:
    """The role that a request needs."""
    if path in _OPEN:
        return "open"
    return "write" if path == "/learn" or (path == "/labels" and method not in ("GET", "HEAD")) else "read"


def route_of(path: str) -> str:
    """The name under which a path is counted."""
    return _ROUTES.get(path) or ("annif" if path.startswith("/v1/") else "other")


def replay(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that delivers the whole body in one message, and then what ``receive`` delivers."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(send: Send, status: int, detail: str) -> None:
    body = json.dumps({"detail": detail}).encode()
    headers: list[Any] = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
