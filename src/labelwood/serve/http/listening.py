"""How a process listens: the socket, and the configuration of uvicorn."""

from __future__ import annotations

import math
import socket
from typing import Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from labelwood.serve.http.connections import Connections
from labelwood.serve.http.gate import Gate
from labelwood.serve.http.limits import Limits
from labelwood.serve.telemetry import Metrics

GRACE_SECONDS = 30


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 picks a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"{error.strerror}: {host}:{port}") from None
    sock.listen(2048)
    sock.set_inheritable(True)
    return sock


def url_of(sock: socket.socket) -> str:
    """The address of a socket, for browsers."""
    host, port = sock.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/"


def server_config(gate: Gate, limits: Limits, *, has_log: bool = False, **more: Any) -> uvicorn.Config:
    """The configuration of a process; ``has_log`` says that its events are written to a log of ours."""
    return uvicorn.Config(
        gate,
        ws="none",
        log_config=None if has_log else LOGGING_CONFIG,
        log_level="error",  # below are warnings about what clients send
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=math.ceil(limits.idle_seconds),
        timeout_graceful_shutdown=GRACE_SECONDS,
        **more,
    )


def public_config(gate: Gate, limits: Limits, metrics: Metrics, *, has_log: bool = False) -> uvicorn.Config:
    """The configuration of a process that clients connect to: with the limits of connections."""
    connections = Connections(gate, limits.within_descriptors(), metrics)
    return server_config(gate, limits, has_log=has_log, http=connections.protocol)
