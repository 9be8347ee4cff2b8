"""The ASGI application of the review page: its routes, behind the gate of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Query, Response
from fastapi.responses import PlainTextResponse

from labelwood import __version__
from labelwood.label_names import MAX_NAME
from labelwood.review.desk import Desk
from labelwood.review.documents import LONGEST_ID
from labelwood.review.export import Format
from labelwood.review.messages import (
    DecideRequest,
    Facts,
    Found,
    Opened,
    OpenRequest,
    State,
    Tag,
    Undone,
    UndoRequest,
    Why,
)
from labelwood.serve.http.auth import Tokens
from labelwood.serve.http.errors import add_errors
from labelwood.serve.http.files import add_files
from labelwood.serve.http.gate import Gate
from labelwood.serve.http.limits import Limits
from labelwood.serve.http.routes import Routes
from labelwood.serve.messages import Status
from labelwood.serve.telemetry import Metrics

_PAGE = {
    "/": ("review.html", "text/html"),
    "/review.js": ("review.js", "text/javascript"),
    "/find.js": ("find.js", "text/javascript"),
    "/common.js": ("common.js", "text/javascript"),
    "/review.css": ("review.css", "text/css"),
}
_CHANGING = frozenset({"/open", "/decide", "/undo"})
ROUTES = Routes(
    open=frozenset({*_PAGE, "/readyz"}), writing=_CHANGING, with_body=frozenset(("POST", path) for path in _CHANGING)
)
_MEDIA: dict[Format, tuple[str, str]] = {
    "csv": ("text/csv", "reviewed.csv"),
    "jsonl": ("application/jsonl", "reviewed.jsonl"),
    "annif": ("text/tab-separated-values", "reviewed.tsv"),
}


def create_app(desk: Desk, *, tokens: Tokens | None = None, limits: Limits | None = None) -> Gate:
    """The application behind its gate."""
    app = FastAPI(
        title="Labelwood review",
        version=__version__,
        description="People tag documents with the suggestions of a model.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(desk),
    )
    add_errors(app)
    _add_reading(app, desk)
    _add_deciding(app, desk)
    add_files(app, files("labelwood.review") / "page", _PAGE)
    return Gate(app, limits=limits or Limits(), tokens=tokens or Tokens(), metrics=Metrics(), routes=ROUTES)


def _lifespan(desk: Desk) -> Any:
    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(desk.close)

    return live


def _add_reading(app: FastAPI, desk: Desk) -> None:
    @app.get("/readyz")
    async def readyz() -> Status:
        """Tell that the page answers."""
        return Status(status="ready")

    @app.get("/facts")
    async def facts() -> Facts:
        """Describe the review: documents, labels, languages, progress."""
        return await asyncio.to_thread(desk.facts)

    @app.get("/find")
    async def find(
        q: Annotated[str, Query(max_length=200)], limit: Annotated[int, Query(ge=1, le=100)] = 12, language: Tag = ""
    ) -> Found:
        """Find labels by the beginnings of the words of their names."""
        return await asyncio.to_thread(desk.find, q, limit, language)

    @app.get("/why")
    async def why(
        document: Annotated[str, Query(max_length=LONGEST_ID)], label: Annotated[str, Query(max_length=MAX_NAME)]
    ) -> Why:
        """Say why a label fits a document: marked words and sentences."""
        return await asyncio.to_thread(desk.why, document, label)

    @app.get("/export", response_model=None)
    async def export(format: Format = "csv") -> Response:
        """Download the documents that are done."""
        kind, name = _MEDIA[format]
        content = await asyncio.to_thread(desk.export, format)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return PlainTextResponse(content, media_type=kind, headers=headers)


def _add_deciding(app: FastAPI, desk: Desk) -> None:
    @app.post("/open")
    async def open_document(request: OpenRequest) -> Opened:
        """Open a document, or the next one."""
        return await asyncio.to_thread(desk.open, request)

    @app.post("/decide")
    async def decide(request: DecideRequest) -> State:
        """Decide about a label, or say that a document is done. When the answer comes, the decision is on disk."""
        return await asyncio.to_thread(desk.decide, request)

    @app.post("/undo")
    async def undo(request: UndoRequest) -> Undone:
        """Take the last decision of a person back."""
        return await asyncio.to_thread(desk.undo, request)
