"""Fuzz the service with mutated requests: every request must be answered, none with a server error (5xx)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import httpx
from mutate import spoil_bytes, spoil_json

from labelwood import HashingEncoder, OnlineTree, TextClassifier
from labelwood.serve.http.app import create_app
from labelwood.serve.service import Service
from labelwood.serve.state.store import Store
from labelwood.serve.state.writer import Writer
from labelwood.serve.telemetry import Metrics

_TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax is due"]
_LABELS = [["pets"], ["pets"], ["law"], ["law", "money"]]
_EXAMPLES: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/suggest", {"text": "tax law", "k": 3, "threshold": 0.1, "allowed": ["law", 1]}),
    ("POST", "/suggest-batch", {"inputs": [{"text": "a"}, {"features": {"1": 0.5}}], "k": 2}),
    ("POST", "/explain", {"text": "tax law", "k": 2, "missed": ["pets"], "n_features": 3}),
    ("POST", "/learn", {"examples": [{"text": "zebra", "labels": ["zoo", 7]}]}),
    ("PATCH", "/labels", {"action": "rename", "label": "law", "to": "laws"}),
    ("PATCH", "/labels", {"action": "retire", "label": "pets"}),
    ("GET", "/labels?start=1&limit=2&contains=a", None),
    ("POST", "/v1/projects/labelwood/suggest", {"text": "tax", "limit": 3}),
)
_MOST_LEARNED = 4000  # requests before a new model, so that the model of a long run stays small


def make(folder: Path) -> Callable[[Random], bool]:
    """Make the target: the application in this process, with its log in ``folder``."""
    loop = asyncio.new_event_loop()
    client, calls = _client(folder, 0), 0

    def run(random: Random) -> bool:
        nonlocal client, calls
        calls += 1
        if calls % _MOST_LEARNED == 0:
            client = _client(folder, calls)
        method, path, body = random.choice(_EXAMPLES)
        content = b"" if body is None else json.dumps(_spoiled(random, body)).encode()
        if random.randrange(4) == 0:
            content = spoil_bytes(random, content)
        if random.randrange(20) == 0:
            path = "/" + spoil_bytes(random, path.encode())[1:].decode("ascii", "replace").replace("\ufffd", "?")
        headers = {"content-type": random.choice(("application/json", "application/json", "text/plain", "x"))}
        if random.randrange(4) == 0:
            headers["Idempotency-Key"] = random.choice(("a", "b", "x" * 300, "\t", "~!"))
        try:
            request = client.build_request(method, path, content=content, headers=headers)
        except (httpx.InvalidURL, ValueError):
            return False  # the client refuses to send it
        answer = loop.run_until_complete(client.send(request))
        assert answer.status_code < 500, (answer.status_code, method, path, content, answer.text)
        if answer.headers.get("content-type", "").startswith("application/json"):
            json.loads(answer.content)
        return answer.status_code < 400

    return run


def _spoiled(random: Random, body: Any) -> Any:
    for _ in range(random.choice((0, 1, 1, 2))):
        body = spoil_json(random, body)
    return body


def _client(folder: Path, number: int) -> httpx.AsyncClient:
    model = TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_features=256, n_jobs=1)).fit(_TEXTS, _LABELS)
    model.save(folder / f"model{number}")
    store = Store(folder / f"state{number}", model=folder / f"model{number}")
    writer = Writer(store, n_jobs=1)
    service = Service(store.machine, Metrics(), writer)
    transport = httpx.ASGITransport(create_app(service), raise_app_exceptions=True)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")
