"""The short way: ``/suggest`` and ``/learn``, which come by the thousand, read and answered without the framework.

What cannot be read goes the long way, to the routes of ``app``, which say what is wrong with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.types import ASGIApp, Receive, Scope, Send

from labelwood.errors import LabelwoodError
from labelwood.serve.http.gate import read_body, replay
from labelwood.serve.http.messages import KeyText, LearnRequest, SuggestRequest
from labelwood.serve.service import Service, Suggestion
from labelwood.serve.state.writer import Learned

Answer = dict[str, Any]
Refuse = Callable[[LabelwoodError], ASGIApp]

_LONG_TEXT = 20_000  # characters; longer ones are handled off the event loop
_KEY = TypeAdapter(KeyText)


async def suggest(service: Service, request: SuggestRequest) -> list[Suggestion]:
    """The labels of one input; a long text does not hold up other requests."""
    if request.text is not None and len(request.text) > _LONG_TEXT:
        return await asyncio.to_thread(service.suggest, request)
    return service.suggest(request)


async def learn(service: Service, request: LearnRequest, key: str | None) -> Answer:
    """Learn examples, durably."""
    return answer_of(await asyncio.wrap_future(service.learn(request, key)))


def answer_of(done: Learned) -> Answer:
    """What the writer has done with a record; raises its refusal."""
    if "refused" in done.answer:
        raise LabelwoodError(done.answer["refused"])
    return {**done.answer, "replayed": done.replayed}


class Direct:
    """ASGI middleware in front of the routes; ``refuse`` makes the answer to what the service will not do."""

    def __init__(self, app: ASGIApp, service: Service, refuse: Refuse) -> None:
        self._app, self._service, self._refuse = app, service, refuse
        self._ways: dict[str, Callable[[Scope, bytes], Awaitable[Answer]]] = {
            "/suggest": self._suggest,
            "/learn": self._learn,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let through."""
        way = self._ways.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if way is None or _header(scope, b"content-type") != b"application/json":
            await self._app(scope, receive, send)
            return
        body = await read_body(receive)
        try:
            content = to_json(await way(scope, body))
        except ValidationError:
            await self._app(scope, replay(body, receive), send)
            return
        except LabelwoodError as error:
            await self._refuse(error)(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _suggest(self, scope: Scope, body: bytes) -> Answer:
        found = await suggest(self._service, SuggestRequest.model_validate_json(body))
        return {"suggestions": [{"label": label, "score": score} for label, score in found]}

    async def _learn(self, scope: Scope, body: bytes) -> Answer:
        key = _header(scope, b"idempotency-key")
        checked = None if key is None else _KEY.validate_python(key.decode("latin-1"))
        return await learn(self._service, LearnRequest.model_validate_json(body), checked)


def _header(scope: Scope, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key == name), None)
