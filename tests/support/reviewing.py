"""Requests to a review page in this process, and to one in a process of its own."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import httpx

KEYS = itertools.count()


class Local:
    """An application that answers in this process."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self._ask("GET", path, options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self._ask("POST", path, options)

    def _ask(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())


class Person:
    """Requests of one person."""

    def __init__(self, client: Any, who: str) -> None:
        self.client, self.who = client, who

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.client.post(path, json={"who": self.who, **body})

    def open(self, **body: Any) -> dict[str, Any]:
        answer = self.post("/open", **body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def decide(self, document: str, action: str, label: str | None = None) -> dict[str, Any]:
        answer = self.post("/decide", document=document, action=action, label=label, key=f"key-{next(KEYS)}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def undo(self) -> dict[str, Any]:
        return self.post("/undo", key=f"key-{next(KEYS)}").json()
