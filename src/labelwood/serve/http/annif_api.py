"""The REST shape that Annif's ``http`` backend calls: one project, its information and its suggestions.

    [labelwood]
    backend=http
    endpoint=http://localhost:8765/v1/projects/labelwood/suggest

Annif identifies subjects by URI. A label has a URI if it is one, or if the model's vocabulary, or the one given with
``--vocabulary``, has a concept with that name. Labels without a URI are left out.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel, ValidationError

from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.messages import MAX_K, Problem, SuggestRequest
from labelwood.serve.service import Service
from labelwood.vocabulary.shown_names import ShownNames

PROJECT = "labelwood"
_DEFAULT_LIMIT = 10
_LONG_FORM = 20_000  # bytes; a longer form is decoded in a thread
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["text"],
                    "properties": {
                        "text": {"type": "string", "minLength": 1},
                        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_K},
                        "threshold": {"type": "number", "minimum": 0, "maximum": 1},
                    },
                }
            }
        },
    }
}


class Backend(BaseModel):
    """The backend of the project."""

    backend_id: str


class Project(BaseModel):
    """Project information in the form of Annif."""

    project_id: str
    name: str
    language: str
    backend: Backend
    is_trained: bool
    modification_time: str | None


class Projects(BaseModel):
    """All projects. There is one."""

    projects: list[Project]


class Hit(BaseModel):
    """A suggested subject."""

    uri: str
    label: str
    notation: str | None = None
    score: float


class Hits(BaseModel):
    """Suggested subjects, best first."""

    results: list[Hit]


def uri_of(label: str, names: ShownNames) -> str | None:
    """The URI of a label; None if it has none."""
    return names.uri(label) or (label if label.startswith(("http://", "https://", "urn:")) else None)


def annif_routes(service: Service, common: dict[str, Any]) -> APIRouter:
    """The routes below /v1."""
    router = APIRouter(prefix="/v1/projects", tags=["Annif"], **common)

    def project() -> Project:
        with service.current.read() as model:
            trained = estimator_of(model).trained_
        return Project(
            project_id=PROJECT, name="Labelwood", language=service.info().language or "en",
            backend=Backend(backend_id=PROJECT), is_trained=True, modification_time=trained.get("at"),
        )  # fmt: skip

    def known(project_id: str) -> None:
        if project_id != PROJECT:
            raise HTTPException(404, f"there is one project, {PROJECT}")

    @router.get("")
    async def projects() -> Projects:
        """List the projects. There is one."""
        return Projects(projects=[project()])

    @router.get("/{project_id}", responses={404: {"model": Problem}})
    async def information(project_id: str) -> Project:
        """Describe the project, which Annif asks for before it uses the project."""
        known(project_id)
        return project()

    @router.post("/{project_id}/suggest", responses={404: {"model": Problem}}, openapi_extra=_FORM)
    async def suggest(project_id: str, request: Annotated[Request, "a form"]) -> Hits:
        """Suggest subjects for a text."""
        known(project_id)
        body = await request.body()
        wanted = await asyncio.to_thread(_read_form, body) if len(body) > _LONG_FORM else _read_form(body)
        found = await service.suggest(wanted)
        with service.current.read() as model:
            names = service.names(model)
        hits = [
            Hit(uri=uri, label=one.name or str(one.label), score=one.score)
            for one in found
            if (uri := uri_of(str(one.label), names)) is not None
        ]
        return Hits(results=hits)

    return router


def _read_form(body: bytes) -> SuggestRequest:
    try:
        fields = parse_qs(body.decode("utf-8"), strict_parsing=True, max_num_fields=1000)
        return SuggestRequest(
            text=fields["text"][-1],
            k=int(fields.get("limit", [str(_DEFAULT_LIMIT)])[-1]),
            threshold=float(fields.get("threshold", ["0"])[-1]),
        )
    except KeyError:
        raise HTTPException(422, "the form must have a text") from None
    except ValidationError as error:
        raise HTTPException(422, "; ".join(problem["msg"] for problem in error.errors())) from None
    except ValueError as error:
        raise HTTPException(422, f"the form cannot be read: {error}") from None
