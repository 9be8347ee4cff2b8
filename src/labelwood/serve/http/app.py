"""The ASGI application: routes from messages to the service, and what is answered when something is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp

from labelwood import __version__
from labelwood.errors import LabelwoodError
from labelwood.explain import Explanation
from labelwood.serve.http import fast_path
from labelwood.serve.http.annif_api import annif_routes
from labelwood.serve.http.auth import Tokens
from labelwood.serve.http.gate import Door, Limits
from labelwood.serve.http.messages import (
    BatchSuggestions,
    ChangedLabel,
    ExplainRequest,
    KeyText,
    LabelChange,
    LabelList,
    LearnedExamples,
    LearnRequest,
    ModelInfo,
    Problem,
    Status,
    SuggestBatchRequest,
    Suggestions,
    SuggestRequest,
    as_message,
)
from labelwood.serve.service import CannotLearnError, Service
from labelwood.serve.state.log import LogRefusedError
from labelwood.serve.state.writer import QueueFullError, StoppedError

_STATUS: dict[type[Exception], int] = {
    QueueFullError: 429,
    StoppedError: 503,
    LogRefusedError: 507,
    CannotLearnError: 409,
}
_READ: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "the body is not JSON"},
    401: {"model": Problem, "description": "a token is needed"},
    403: {"model": Problem, "description": "the token may not do this"},
    413: {"model": Problem, "description": "the body is too large"},
    422: {"model": Problem, "description": "the request is not as it should be"},
    503: {"model": Problem, "description": "too busy, too slow, or shutting down; try again"},
}
_WRITE: dict[int | str, dict[str, Any]] = {
    **_READ,
    409: {"model": Problem, "description": "this model does not learn"},
    429: {"model": Problem, "description": "too much is waiting to be learned; try again"},
    507: {"model": Problem, "description": "the disk is full; nothing was learned"},
}
_PAGE = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}

Key = Annotated[
    KeyText | None,
    Header(alias="Idempotency-Key", description="a request that comes again with the same key counts once"),
]


def create_app(
    service: Service,
    *,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    uris: Mapping[str, str] | None = None,
    inner: Callable[[ASGIApp], ASGIApp] | None = None,
) -> ASGIApp:
    """The application, with its door in front, and what ``inner`` puts between the two."""
    app = FastAPI(
        title="Labelwood",
        version=__version__,
        description="Suggests labels for texts, and learns from corrections without losing any.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(service),
    )
    bearer = [Depends(HTTPBearer(auto_error=False))]
    _add_errors(app)
    _add_reading(app, service, {"dependencies": bearer, "responses": _READ})
    _add_writing(app, service, {"dependencies": bearer, "responses": _WRITE})
    _add_watching(app, service, {"dependencies": bearer, "responses": _READ})
    _add_page(app)
    app.include_router(annif_routes(service, uris or {}, {"dependencies": bearer, "responses": _READ}))
    short = fast_path.Direct(app, service, _refusal)
    behind = short if inner is None else inner(short)
    return Door(behind, limits=limits or Limits(), tokens=tokens or Tokens(), metrics=service.metrics)


def _lifespan(service: Service) -> Any:
    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.closing = True
        if service.learner is not None:
            await asyncio.to_thread(service.learner.close)

    return live


def _add_reading(app: FastAPI, service: Service, common: dict[str, Any]) -> None:
    @app.post("/suggest", **common)
    async def suggest(request: SuggestRequest) -> Suggestions:
        """The best labels of a text, or of features."""
        return as_message(await fast_path.suggest(service, request))

    @app.post("/suggest-batch", **common)
    async def suggest_batch(request: SuggestBatchRequest) -> BatchSuggestions:
        """The best labels of each of several inputs."""
        found = await asyncio.to_thread(service.suggest_batch, request)
        return BatchSuggestions(results=[as_message(row) for row in found])

    @app.post("/explain", **common)
    async def explain(request: ExplainRequest) -> Explanation:
        """Why labels are suggested, word by word and step by step, and where missed ones were lost."""
        return await asyncio.to_thread(service.explain, request)

    @app.get("/labels", **common)
    async def labels(
        start: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
        contains: Annotated[str, Query(max_length=1000)] = "",
    ) -> LabelList:
        """The labels, with their state and support."""
        return await asyncio.to_thread(service.labels, start=start, limit=limit, contains=contains)

    @app.get("/model", **common)
    async def model() -> ModelInfo:
        """What is served, and how it is doing."""
        return service.info()


def _add_writing(app: FastAPI, service: Service, common: dict[str, Any]) -> None:
    @app.post("/learn", **common)
    async def learn(request: LearnRequest, key: Key = None) -> LearnedExamples:
        """Learn examples; once this answers, they are on disk and suggestions reflect them."""
        return LearnedExamples(**await fast_path.learn(service, request, key))

    @app.patch("/labels", **common)
    async def change_label(request: LabelChange, key: Key = None) -> ChangedLabel:
        """Rename, retire, merge or restore a label."""
        done = await asyncio.wrap_future(service.change_label(request, key))
        return ChangedLabel(**fast_path.answer_of(done))


def _add_watching(app: FastAPI, service: Service, common: dict[str, Any]) -> None:
    @app.get("/healthz")
    async def healthz() -> Status:
        """Whether the process is alive."""
        return Status(status="alive")

    @app.get("/readyz", responses={503: {"model": Status}})
    async def readyz(response: Response) -> Status:
        """Whether requests should be sent here."""
        learner = service.learner
        trouble = "" if learner is None else learner.failed or learner.refused
        if service.closing:
            response.status_code = 503
            return Status(status="shutting down", learning=trouble)
        return Status(status="ready", learning=trouble)

    text = {"description": "Prometheus' text format", "content": {"text/plain": {}}}

    @app.get("/metrics", **{**common, "responses": {**common["responses"], 200: text}}, response_model=None)
    async def metrics() -> PlainTextResponse:
        """Counts, latencies, drift, for Prometheus."""
        service.push_gauges()
        return PlainTextResponse(service.metrics.render(), media_type="text/plain; version=0.0.4")


def _add_page(app: FastAPI) -> None:
    folder = files("labelwood.serve.http") / "page"
    for path, (name, kind) in _PAGE.items():
        _add_file(app, path, (folder / name).read_bytes(), kind)


def _add_file(app: FastAPI, path: str, content: bytes, kind: str) -> None:
    @app.get(path, include_in_schema=False)
    async def file() -> Response:
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(LabelwoodError)
    async def refused(request: Request, error: LabelwoodError) -> JSONResponse:
        return _refusal(error)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        lines = [
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors()
        ]
        return JSONResponse({"detail": _printable("; ".join(lines[:10]))}, 422)


def _refusal(error: LabelwoodError) -> JSONResponse:
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 422)
    headers = {"Retry-After": "1"} if status in (429, 503) else None
    return JSONResponse({"detail": _printable(str(error))}, status, headers=headers)


def _printable(text: str) -> str:
    """A message that any JSON reader takes, whatever the request had in it."""
    return text.encode("utf-8", "replace").decode("utf-8")
