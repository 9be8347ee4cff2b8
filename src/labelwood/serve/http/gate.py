"""The gate: checks the size, token and number of requests before a route sees them, and ends slow ones."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labelwood.serve.event_log import access
from labelwood.serve.http.auth import Role, Tokens, allows, names_loopback
from labelwood.serve.http.limits import Limits
from labelwood.serve.http.routes import SERVICE, Routes
from labelwood.serve.telemetry import Metrics

_WRONG_TOKEN = "the token is wrong: the service does not know it"
_OWN_SITE = (b"same-origin", b"none")  # what browsers say of requests of the page itself, and of people
_MOST_DIGITS = 20  # of a length; Python refuses to read thousands, zeros included
_GONE = 499  # counted for requests whose client is gone; nobody receives it
VERDICT = "labelwood.verdict"  # the key under which a connection that has asked for the verdict puts it in the scope
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
]


class Verdict(NamedTuple):
    """What the headers of a request decide: its role, whether its body is read, or the status and text of a refusal."""

    role: Role
    takes_body: bool
    refusal: tuple[int, str] | None = None


class _RefusedError(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class _GoneError(Exception):
    """The client has closed the connection, or was too slow."""


class Gate:
    """ASGI middleware: answers 401 and 403 by token, 413 by size, 503 by time and number; counts all requests."""

    def __init__(
        self, app: ASGIApp, *, limits: Limits, tokens: Tokens, metrics: Metrics, routes: Routes = SERVICE
    ) -> None:
        self._app, self._limits, self._tokens, self._metrics = app, limits, tokens, metrics
        self._routes = routes
        self._inside = 0
        self._body_bytes = 0  # of all bodies in memory
        self._too_large = f"the body must have at most {limits.body_bytes} bytes"

    @property
    def has_tokens(self) -> bool:
        """True if requests need a token."""
        return bool(self._tokens)

    def admit(self, scope: Scope) -> Verdict:
        """Decide about a request by its headers, before its body is read."""
        headers, method, path = dict(scope["headers"]), scope["method"], scope["path"]
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        role = self._tokens.role_of(authorization)
        needed = self._routes.needed_role(method, path)
        refusal = self._refusal_by_token(role, authorization, headers.get(b"host", b"localhost"), needed)
        if refusal is None and needed == "write" and headers.get(b"sec-fetch-site", b"none") not in _OWN_SITE:
            refusal = 403, "a page of another site must not change anything here"
        length = headers.get(b"content-length", b"0")
        has_body = length != b"0" or b"transfer-encoding" in headers
        if refusal is None and has_body:
            if method in ("GET", "HEAD"):
                refusal = 413, f"{method} takes no body"
            elif length.isdigit() and (len(length) > _MOST_DIGITS or int(length) > self._limits.body_bytes):
                refusal = 413, self._too_large
        return Verdict(role, refusal is None and has_body and self._routes.takes_body(method, path), refusal)

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

        verdict: Verdict = scope.get(VERDICT) or self.admit(scope)
        try:
            if verdict.refusal is not None:
                await _refuse(counted, *verdict.refusal)
            else:
                await self._enter(scope, verdict, receive, counted)
        except _RefusedError as refused:
            await _refuse(counted, refused.status, refused.detail)
        except _GoneError:
            status = _GONE
        except TimeoutError:
            if status == 0:
                text = f"not answered within {self._limits.seconds:g} seconds"
                await _refuse(counted, 503, text)
        finally:
            seconds = time.perf_counter() - started
            self._metrics.note(self._routes.name_of(scope["path"]), status or 500, seconds)
            if access.isEnabledFor(logging.INFO):
                self._log(scope, verdict, status or 500, seconds)

    async def _enter(self, scope: Scope, verdict: Verdict, receive: Receive, send: Send) -> None:
        body, is_inside = bytearray(), 0
        try:
            if verdict.takes_body:
                await self._read(body, receive)
            is_inside = 1
            self._inside += 1
            if self._inside > self._limits.at_once and scope["path"] != "/healthz":
                raise _RefusedError(503, "too many requests at once; try again")
            async with asyncio.timeout(self._limits.seconds):
                await self._app(scope, replay(bytes(body), receive), send)
        finally:
            self._inside -= is_inside
            self._body_bytes -= len(body)

    async def _read(self, body: bytearray, receive: Receive) -> None:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _GoneError
            part = message.get("body", b"")
            body += part
            self._body_bytes += len(part)
            if len(body) > self._limits.body_bytes:
                raise _RefusedError(413, self._too_large)
            if self._body_bytes > self._limits.bodies_bytes:
                raise _RefusedError(503, "too many large requests at once; try again")
            if not message.get("more_body", False):
                return

    def _refusal_by_token(self, role: Role, authorization: str, host: bytes, needed: Role) -> tuple[int, str] | None:
        if not self._tokens and not names_loopback(host.decode("latin-1")):
            return 403, "without tokens the service answers requests to localhost only"
        if allows(role, needed):
            return None
        if role != "open":
            return 403, "this token allows reading, not writing"
        if not authorization:
            return 401, "a token is required: send Authorization: Bearer TOKEN"
        return 401, _WRONG_TOKEN

    def _log(self, scope: Scope, verdict: Verdict, status: int, seconds: float) -> None:
        """Log a request: neither its path, which may hold anything, nor its body."""
        client = scope.get("client")
        facts = {
            "method": scope["method"],
            "route": self._routes.name_of(scope["path"]),
            "status": status,
            "ms": round(1000 * seconds, 3),
            "role": verdict.role,
            "client": client[0] if client else None,
        }
        access.info("request", extra={"facts": facts})


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
        headers.append((b"www-authenticate", b'Bearer error="invalid_token"' if detail == _WRONG_TOKEN else b"Bearer"))
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
