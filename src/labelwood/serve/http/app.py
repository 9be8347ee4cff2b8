"""The ASGI application: the routes of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Query, Response
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPBearer
from starlette.types import ASGIApp

from labelwood import __version__
from labelwood.explain import Explanation
from labelwood.serve.history import FIRST_SECONDS, History
from labelwood.serve.http import answers
from labelwood.serve.http.annif_api import annif_routes
from labelwood.serve.http.auth import Tokens
from labelwood.serve.http.errors import add_errors, refusal
from labelwood.serve.http.fast_path import FastPath
from labelwood.serve.http.files import add_files
from labelwood.serve.http.gate import Gate
from labelwood.serve.http.limits import Limits
from labelwood.serve.messages import (
    BatchSuggestions,
    ChangedLabel,
    ExplainRequest,
    GaugesOverTime,
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
from labelwood.serve.service import Service

_READ: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "the body is not JSON"},
    401: {"model": Problem, "description": "the token is missing or wrong"},
    403: {"model": Problem, "description": "the token may not do this"},
    408: {"model": Problem, "description": "the request arrived too slowly"},
    413: {"model": Problem, "description": "the body is too large, or the route takes none"},
    422: {"model": Problem, "description": "the request is invalid"},
    431: {"model": Problem, "description": "the headers are too large"},
    503: {"model": Problem, "description": "too many requests, a timeout, or a shutdown; try again"},
}
_WRITE: dict[int | str, dict[str, Any]] = {
    **_READ,
    409: {"model": Problem, "description": "the model does not learn"},
    429: {"model": Problem, "description": "too many examples are waiting to be learned; try again"},
    507: {"model": Problem, "description": "the disk is full; nothing was learned"},
}
_PAGE = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
    "/watch": ("watch.html", "text/html"),
    "/watch.js": ("watch.js", "text/javascript"),
}

Key = Annotated[
    KeyText | None, Header(alias="Idempotency-Key", description="repeated requests with the same key count once")
]


def create_app(
    service: Service,
    *,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    inner: Callable[[ASGIApp], ASGIApp] | None = None,
) -> Gate:
    """The application behind its gate; ``inner`` may add middleware between the two."""
    history = History()
    app = FastAPI(
        title="Labelwood",
        version=__version__,
        description="Suggests labels for texts, and learns from corrections without losing one.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(service, history),
    )
    bearer = [Depends(HTTPBearer(auto_error=False))]
    add_errors(app)
    _add_reading(app, service, {"dependencies": bearer, "responses": _READ})
    _add_writing(app, service, {"dependencies": bearer, "responses": _WRITE})
    _add_watching(app, service, history, {"dependencies": bearer, "responses": _READ})
    _add_page(app)
    app.include_router(annif_routes(service, {"dependencies": bearer, "responses": _READ}))
    fast = FastPath(app, service, refusal)
    behind = fast if inner is None else inner(fast)
    return Gate(behind, limits=limits or Limits(), tokens=tokens or Tokens(), metrics=service.metrics)


def _lifespan(service: Service, history: History) -> Any:
    async def watch() -> None:
        while True:
            service.push_gauges()
            history.note(service.metrics.gauges())
            await asyncio.sleep(FIRST_SECONDS)

    @asynccontextmanager
    async def live(app: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(watch())
        yield
        watching.cancel()
        service.closing = True
        await asyncio.to_thread(service.close)

    return live


def _add_reading(app: FastAPI, service: Service, common: dict[str, Any]) -> None:
    @app.post("/suggest", **common, response_model_exclude_unset=True)
    async def suggest(request: SuggestRequest) -> Suggestions:
        """Suggest the best labels of a text, or of features."""
        return as_message(await service.suggest(request))

    @app.post("/suggest-batch", **common, response_model=BatchSuggestions)
    async def suggest_batch(request: SuggestBatchRequest) -> Response:
        """Suggest the best labels of each of several inputs."""
        found = await service.suggest_batch(request)
        return await answers.written(lambda: answers.of_suggestions(found))

    @app.post("/explain", **common, response_model=Explanation)
    async def explain(request: ExplainRequest) -> Response:
        """Explain suggestions, word by word and step by step, and say where missed labels were lost."""
        found = await service.explain(request)
        return await answers.written(lambda: answers.of_explanation(found))

    @app.get("/labels", **common, response_model=LabelList)
    async def labels(
        start: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
        contains: Annotated[str, Query(max_length=1000)] = "",
        language: Annotated[str | None, Query(max_length=35)] = None,
    ) -> Response:
        """List labels with their state and support."""
        found = await service.labels(start=start, limit=limit, contains=contains, language=language)
        return await answers.written(lambda: answers.of_labels(found))

    @app.get("/model", **common)
    async def model() -> ModelInfo:
        """Describe the model and the service."""
        return service.info()


def _add_writing(app: FastAPI, service: Service, common: dict[str, Any]) -> None:
    @app.post("/learn", **common)
    async def learn(request: LearnRequest, key: Key = None) -> LearnedExamples:
        """Learn examples. When the answer comes, they are on disk and suggestions reflect them."""
        return LearnedExamples(**await service.learn(request, key))

    @app.patch("/labels", **common)
    async def change_label(request: LabelChange, key: Key = None) -> ChangedLabel:
        """Rename, retire, merge or restore a label."""
        return ChangedLabel(**await service.change_label(request, key))


def _add_watching(app: FastAPI, service: Service, history: History, common: dict[str, Any]) -> None:
    @app.get("/healthz")
    async def healthz() -> Status:
        """Tell that the process is alive."""
        return Status(status="alive")

    @app.get("/readyz", responses={503: {"model": Status}})
    async def readyz(response: Response) -> Status:
        """Tell whether to send requests to this process."""
        trouble = service.learning_trouble()
        if service.closing:
            response.status_code = 503
        status = "shutting down" if service.closing else "ready"
        return Status(status=status, learning=trouble, model=service.reload_error)

    @app.get("/history", **common)
    async def gauges_over_time() -> GaugesOverTime:
        """Tell how the gauges of this process changed since its start."""
        return GaugesOverTime(seconds=history.seconds, values=history.values())

    text = {"description": "Prometheus' text format", "content": {"text/plain": {}}}

    @app.get("/metrics", **{**common, "responses": {**common["responses"], 200: text}}, response_model=None)
    async def metrics() -> PlainTextResponse:
        """Report counts, latencies and drift for Prometheus."""
        service.push_gauges()
        return PlainTextResponse(service.metrics.render(service.information()), media_type="text/plain; version=0.0.4")


def _add_page(app: FastAPI) -> None:
    add_files(app, files("labelwood.serve.http") / "page", _PAGE)
