"""Forwards requests that change the model from a reader process to the writer process."""

from __future__ import annotations

from pathlib import Path

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

_FORWARDED = frozenset({"/learn", "/labels"})
_HEADERS = ("authorization", "content-type", "idempotency-key")


class Forward:
    """ASGI middleware in front of a reader's routes."""

    def __init__(self, app: ASGIApp, writer: Path) -> None:
        self._app = app
        transport = httpx.AsyncHTTPTransport(uds=str(writer), limits=httpx.Limits(max_keepalive_connections=32))
        self._client = httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, or pass it on."""
        if scope["type"] != "http" or scope["path"] not in _FORWARDED:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        headers = {name: request.headers[name] for name in _HEADERS if name in request.headers}
        try:
            answered = await self._client.request(
                request.method, scope["path"], params=request.url.query, content=await request.body(), headers=headers
            )
        except httpx.TransportError as error:
            answer: Response = JSONResponse(
                {"detail": f"the writer process does not answer: {error}"}, 503, headers={"Retry-After": "1"}
            )
        else:
            kept = {
                name: answered.headers[name] for name in ("content-type", "retry-after") if name in answered.headers
            }
            answer = Response(answered.content, answered.status_code, headers=kept)
        await answer(scope, receive, send)
