"""The routes of an application as the gate sees them: who may use each, whether it reads a body, how it is counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from labelwood.serve.http.auth import Role


@dataclass(frozen=True)
class Routes:
    """``open`` paths need no token; ``writing`` paths need a write token, except to GET them; others a read token.

    ``with_body`` are the methods and paths that read a body, besides a POST below ``/v1/``. The body of any other
    request is dropped, and its route says what is wrong. ``names`` are those under which paths are counted.
    """

    open: frozenset[str]
    writing: frozenset[str]
    with_body: frozenset[tuple[str, str]]
    names: Mapping[str, str] = field(default_factory=dict)

    def needed_role(self, method: str, path: str) -> Role:
        """The role that a request needs."""
        if path in self.open:
            return "open"
        return "write" if path in self.writing and method not in ("GET", "HEAD") else "read"

    def takes_body(self, method: str, path: str) -> bool:
        """True if a route reads a body."""
        return (method, path) in self.with_body or (method == "POST" and path.startswith("/v1/"))

    def name_of(self, path: str) -> str:
        """The name under which a path is counted."""
        return self.names.get(path) or ("annif" if path.startswith("/v1/") else "other")


SERVICE = Routes(
    open=frozenset({"/", "/page.js", "/page.css", "/watch", "/watch.js", "/healthz", "/readyz"}),
    writing=frozenset({"/learn", "/labels"}),
    with_body=frozenset(
        {
            ("POST", "/suggest"),
            ("POST", "/suggest-batch"),
            ("POST", "/explain"),
            ("POST", "/learn"),
            ("PATCH", "/labels"),
        }
    ),
    names={
        "/suggest": "suggest",
        "/suggest-batch": "suggest-batch",
        "/learn": "learn",
        "/labels": "labels",
        "/explain": "explain",
        "/model": "model",
    },
)
