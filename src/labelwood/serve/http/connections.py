"""Connections with limits: uvicorn's protocol limits neither the headers of a request nor the time in which it arrives.

A client that is slow, sends too much or opens too many connections costs the others nothing: what it sends is bounded
and, without a token, not kept. When there are too many connections, those without a token are closed first.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import math
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from labelwood.serve.event_log import events
from labelwood.serve.http.gate import VERDICT, Gate
from labelwood.serve.http.limits import MAX_HEADERS, Limits
from labelwood.serve.telemetry import Metrics

_SWEEP_SECONDS = 0.25
_REPORT_SECONDS = 10.0
_LINGER_SECONDS = 2.0  # for a client to read the answer to a request that it has not sent whole
_LINGER_BYTES = 2**20
_MAX_PIPELINED = 64
_FRAMING = 2**20  # bytes of chunk sizes and trailers beside twice the body

_NOTHING, _HEAD, _BODY = range(3)


class Connections:
    """All connections of a process to one port."""

    def __init__(self, gate: Gate, limits: Limits, metrics: Metrics) -> None:
        self.gate, self.limits, self.metrics = gate, limits, metrics
        self._open: set[Connection] = set()
        self._counted: dict[str, int] = {}  # connections by address, without those that had to make room
        self._strangers: dict[str, dict[Connection, None]] = {}  # those without a token by address, the oldest first
        self._reported: dict[str, float] = {}
        self._report_at = 0.0
        self._is_sweeping = False

    def protocol(self, **given: Any) -> Connection:
        """The protocol of a new connection; uvicorn gives the arguments of its own one."""
        return Connection(self, **given)

    def enter(self, one: Connection) -> bool:
        """Count a new connection; false if there is no room, and nobody to make room."""
        if not self._is_sweeping:
            self._is_sweeping = True
            one.loop.call_later(_SWEEP_SECONDS, self._sweep, one.loop)
        self._open.add(one)
        self.metrics.add("connections_open", 1)
        if self._counted.get(one.address, 0) >= min(self.limits.per_address, self.limits.connections):
            has_room = self._make_room(one.address)
        elif sum(self._counted.values()) >= self.limits.connections:
            busiest = max(self._strangers, key=lambda address: len(self._strangers[address]), default=one.address)
            has_room = self._make_room(busiest)
        else:
            has_room = True
        if not has_room:
            self.metrics.add("connections_refused", 1)
            return False
        one.is_counted = True
        self._counted[one.address] = self._counted.get(one.address, 0) + 1
        self._strangers.setdefault(one.address, {})[one] = None
        return True

    def trust(self, one: Connection) -> None:
        """Note that a connection has shown a token: it does not have to make room for others."""
        one.is_trusted = True
        self._forget_stranger(one)

    def leave(self, one: Connection) -> None:
        """Forget a connection that has been lost."""
        self._uncount(one)
        if one in self._open:
            self._open.remove(one)
            self.metrics.add("connections_open", -1)

    def _make_room(self, address: str) -> bool:
        strangers = self._strangers.get(address)
        if not strangers:
            return False
        oldest = next(iter(strangers))
        self._uncount(oldest)
        self.metrics.add("connections_shed", 1)
        oldest.give_way()
        return True

    def _uncount(self, one: Connection) -> None:
        if not one.is_counted:
            return
        one.is_counted = False
        self._forget_stranger(one)
        left = self._counted[one.address] - 1
        if left:
            self._counted[one.address] = left
        else:
            del self._counted[one.address]

    def _forget_stranger(self, one: Connection) -> None:
        strangers = self._strangers.get(one.address, {})
        strangers.pop(one, None)
        if not strangers:
            self._strangers.pop(one.address, None)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """End what is late. One timer for all connections costs a request nothing."""
        now = loop.time()
        for one in [one for one in self._open if one.deadline <= now]:
            one.expire()
        if now >= self._report_at:
            self._report_at = now + _REPORT_SECONDS
            self._report()
        self._is_sweeping = bool(self._open)
        if self._is_sweeping:
            loop.call_later(_SWEEP_SECONDS, self._sweep, loop)

    def _report(self) -> None:
        """Log how many connections were ended early: one line for all of them, however many attack."""
        names = ("connections_shed", "connections_refused", "connections_timed_out")
        ended = {name: self.metrics.added(name) for name in names}
        fresh = {name.removeprefix("connections_"): int(ended[name] - self._reported.get(name, 0)) for name in names}
        self._reported = ended
        if any(fresh.values()):
            events.warning("connections ended early", extra={"facts": fresh})


class Connection(HttpToolsProtocol):
    """A connection that ends itself when what the client sends is too much or comes too late."""

    def __init__(self, others: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._others, self._limits = others, others.limits
        self.address = ""
        self.deadline = math.inf
        self.is_counted = self.is_trusted = False
        self._reading = _NOTHING
        self._read_bytes = 0  # of the headers, or of the body with its framing, before this chunk
        self._chunk_bytes = 0
        self._begun = 0  # requests that began in this chunk
        self._keeps_body = self._is_welcome = self._has_ended = False
        self._refusal: tuple[int, str] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time limit of the first request, or refuse the connection."""
        super().connection_made(transport)
        self.address = _group(self.client[0] if self.client else "")
        self.deadline = self.loop.time() + self._limits.header_seconds
        if not self._others.enter(self):
            self._end(503, "too many connections; try again", linger=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._others.leave(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came, and end the connection if it is too much."""
        if self._has_ended:
            self._read_bytes += len(data)
            if self._read_bytes > _LINGER_BYTES:
                self.transport.abort()
            return
        was_between = self._reading == _NOTHING
        self._begun, self._chunk_bytes = 0, len(data)
        super().data_received(data)
        if self._reading == _NOTHING or self._has_ended:
            return
        if len(self.headers) > MAX_HEADERS:
            self._end(431, f"a request must have at most {MAX_HEADERS} headers")
        elif self._begun == was_between:  # else the chunk also held an earlier request
            self._read_bytes += len(data)
            self._check_bytes()

    def _check_bytes(self) -> None:
        if self._reading == _HEAD:
            if self._read_bytes > self._limits.header_bytes:
                self._end(431, self._too_long())
        elif self._read_bytes > 2 * self._limits.body_bytes + _FRAMING:
            self._end(0)

    def on_message_begin(self) -> None:
        """Start the time limit of the headers."""
        super().on_message_begin()
        self._begun += 1
        self._reading, self._read_bytes = _HEAD, 0
        self.deadline = self.loop.time() + self._limits.header_seconds

    def on_headers_complete(self) -> None:
        """Decide by the headers whether the body is kept, and start its time limit."""
        if len(self.headers) > MAX_HEADERS:
            self._refuse(431, f"a request must have at most {MAX_HEADERS} headers")
        if self._read_bytes + self._chunk_bytes > self._limits.header_bytes:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > self._limits.header_bytes:
                self._refuse(431, self._too_long())
        if len(self.pipeline) >= _MAX_PIPELINED:
            self._refuse(0, "")
        super().on_headers_complete()
        scope: Scope = self.scope  # type: ignore[assignment]
        verdict = self._others.gate.admit(scope)
        scope[VERDICT] = verdict
        self._keeps_body = verdict.takes_body
        self._is_welcome = verdict.role != "open" and verdict.refusal is None
        if self._is_welcome and not self.is_trusted and self._others.gate.has_tokens:
            self._others.trust(self)
        self._reading, self._read_bytes = _BODY, 0
        self.deadline = self.loop.time() + self._limits.body_seconds

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body, unless nobody will read it."""
        if self._keeps_body:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End the time limits of the client: from here the service has its own."""
        super().on_message_complete()
        self._reading = _NOTHING
        if not self.flow.write_paused:
            self.deadline = math.inf
        if self._is_welcome and not self.is_trusted:
            self._others.trust(self)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of one that was refused."""
        super().on_response_complete()
        if self._reading == _HEAD:
            self.deadline = self.loop.time() + self._limits.header_seconds
        elif self._reading == _BODY and not self.cycle.response_complete:  # the answer was to an earlier request
            self.deadline = self.loop.time() + self._limits.body_seconds
        elif self._reading == _BODY:
            self._keeps_body, self.cycle.body = False, bytearray()
            self.deadline = self.loop.time() + _LINGER_SECONDS

    def pause_writing(self) -> None:
        """Start the time limit of a client that does not read its answer."""
        super().pause_writing()
        self.deadline = self.loop.time() + self._limits.body_seconds

    def resume_writing(self) -> None:
        """End the time limit of a client that reads again."""
        super().resume_writing()
        if self._reading == _NOTHING:
            self.deadline = math.inf

    def expire(self) -> None:
        """End the connection: a time limit has passed."""
        if self.transport.is_closing() or self._has_ended or self.flow.write_paused:
            self.transport.abort()
            return
        if not self._may_answer():
            self.deadline = math.inf  # the answer to an earlier request comes first, and sets the limit again
            return
        self._others.metrics.add("connections_timed_out", 1)
        if self._reading == _HEAD:
            self._end(408, f"the headers must arrive within {self._limits.header_seconds:g} seconds")
        elif self._reading == _BODY and not self.cycle.response_complete:
            self._end(408, f"the body must arrive within {self._limits.body_seconds:g} seconds")
        else:
            self._end(0)

    def give_way(self) -> None:
        """End the connection to make room for another."""
        if self._has_ended:
            self.transport.abort()
        self._end(503, "too many connections; try again", linger=False)

    def _may_answer(self) -> bool:
        """False while an earlier request is being answered: the client would take the next answer for its own."""
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]  # None at first
            return True
        return self._reading == _BODY and not self.pipeline and not self.cycle.response_started

    def send_400_response(self, msg: str) -> None:
        """Answer a request that cannot be parsed, or that was refused while it was parsed."""
        self._end(*(self._refusal or (400, msg)))

    def _too_long(self) -> str:
        return f"the headers must have at most {self._limits.header_bytes} bytes"

    def _refuse(self, status: int, detail: str) -> None:
        """Stop the parser, which reports it to :meth:`send_400_response`."""
        self._refusal = (status, detail)
        raise _StopParsingError

    def _end(self, status: int, detail: str = "", *, linger: bool = True) -> None:
        """Answer, unless the status is 0, and close.

        A connection that is closed while the client sends is reset, and the answer may be lost: ``linger`` reads and
        drops what comes for a while.
        """
        if self._has_ended or self.transport.is_closing():
            return
        self._has_ended, self._read_bytes = True, 0
        self.deadline = self.loop.time() + _LINGER_SECONDS
        if self.flow.write_paused:
            self.transport.abort()
            return
        answers = status != 0 and self._may_answer()
        if answers:
            self.transport.write(_answer(status, detail))
        if answers and linger:
            self.flow.resume_reading()
            self.transport.write_eof()
        else:
            self.transport.close()
        if self.cycle is not None and not self.cycle.response_complete:  # type: ignore[redundant-expr]  # None at first
            self.cycle.disconnected = True
            self.cycle.message_event.set()


class _StopParsingError(Exception):
    pass


def _answer(status: int, detail: str) -> bytes:
    body = json.dumps({"detail": detail}).encode()
    retry = b"retry-after: 1\r\n" if status == 503 else b""
    return b"%scontent-type: application/json\r\ncontent-length: %d\r\n%sconnection: close\r\n\r\n%s" % (
        STATUS_LINE[status], len(body), retry, body,
    )  # fmt: skip


def _group(host: str) -> str:
    """The address that connections are counted by: the network of an IPv6 address, since a client has all of it."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    return str(address.ipv4_mapped) if address.ipv4_mapped else f"{int(address) >> 64:x}::/64"
