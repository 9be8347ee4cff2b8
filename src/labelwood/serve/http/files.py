"""The files of a web page: served as they are, and compared on every visit."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources.abc import Traversable

from fastapi import FastAPI, Response


def add_files(app: FastAPI, folder: Traversable, listed: Mapping[str, tuple[str, str]]) -> None:
    """Serve files of a folder; ``listed`` has the name and the media type of the file at each path."""
    for path, (name, kind) in listed.items():
        _add_file(app, path, (folder / name).read_bytes(), kind)


def _add_file(app: FastAPI, path: str, content: bytes, kind: str) -> None:
    @app.get(path, include_in_schema=False)
    async def file() -> Response:
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})
