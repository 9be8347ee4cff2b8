"""Runs the review page until it is interrupted."""

from __future__ import annotations

import signal
from collections.abc import Callable

import uvicorn

from labelwood.review.app import create_app
from labelwood.review.desk import Desk
from labelwood.serve.event_log import open_log
from labelwood.serve.http.auth import Tokens, check_host
from labelwood.serve.http.limits import Limits
from labelwood.serve.http.listening import listen, public_config, url_of
from labelwood.serve.telemetry import Metrics


def serve_review(
    desk: Desk, *, host: str, port: int, tokens: Tokens, announce: Callable[[str], None], limits: Limits | None = None
) -> None:
    """Answer requests until SIGTERM or SIGINT; ``announce`` is called with the address when the port is open."""
    check_host(host, tokens)
    open_log(None, "info")
    limits = limits or Limits()
    with listen(host, port) as sock:
        gate = create_app(desk, tokens=tokens, limits=limits)
        server = uvicorn.Server(public_config(gate, limits, Metrics()))

        def end(number: int, frame: object) -> None:
            server.should_exit = True

        for ending in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises them again at its end
            signal.signal(ending, end)
        announce(url_of(sock))
        server.run(sockets=[sock])
