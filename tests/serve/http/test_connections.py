"""Clients without a token that are slow, large or many. They get an answer, and those who have a token keep theirs."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Running, online_model

READ = "reading-token-0001"
HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
QUICK = ("--header-timeout", 1, "--body-timeout", 1, "--idle-timeout", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("connections")
    online_model().save(folder / "model")
    (folder / "tokens").write_text(f"read {READ}\n")
    return folder


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Running]:
    """A service with tokens and all limits at their defaults."""
    running = guarded(folder)
    yield running
    running.kill()


@pytest.fixture(scope="module")
def quick(folder: Path) -> Iterator[Running]:
    """A service with tokens and short time limits."""
    running = guarded(folder, *QUICK)
    yield running
    running.kill()


def guarded(folder: Path, *words: object, **options: Any) -> Running:
    state = folder / f"state-{len(list(folder.iterdir()))}"
    running = Running(folder / "model", "--state", state, "--tokens", folder / "tokens", *words, **options)
    running.http.headers["Authorization"] = f"Bearer {READ}"
    return running


def connect(service: Running) -> socket.socket:
    url = httpx.URL(service.facts["url"])
    return socket.create_connection((url.host, url.port), timeout=20)


@contextlib.contextmanager
def connections(service: Running, count: int, *, sends: bytes = b"") -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(connect(service)) for _ in range(count)]
        for sock in opened:
            if sends:
                sock.sendall(sends)
        yield opened


def answer_on(sock: socket.socket) -> tuple[int, bytes]:
    """The status and the body of the next answer on a connection; (0, b"") if it was closed without one."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while chunk := sock.recv(65536):
            received += chunk
            head, end, body = received.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            if end and length and len(body) >= int(length[1]):
                return int(head.split()[1]), body
    return 0, received


def is_closed(sock: socket.socket, within: float) -> bool:
    """Read until the service closes the connection."""
    end = time.monotonic() + within
    with contextlib.suppress(ConnectionError):
        while (left := end - time.monotonic()) > 0:
            sock.settimeout(left)
            try:
                if not sock.recv(65536):
                    return True
            except TimeoutError:
                return False
        return False
    return True


def resident(service: Running) -> int:
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024  # type: ignore[index]


def suggested(service: Running, count: int = 25) -> list[int]:
    return [service.http.post("/suggest", json={"text": "tax"}).status_code for _ in range(count)]


@pytest.mark.parametrize("path", [b"/healthz", b"/suggest", b"/nowhere"])
def test_slow_bodies_do_not_keep_others_from_suggestions(service, path):
    with connections(service, 257, sends=HEAD % path + b"Content-Length: 1000\r\n\r\n{"):
        assert set(suggested(service)) == {200}


@pytest.mark.parametrize("framing", [b"Content-Length: 4000000\r\n", b"Transfer-Encoding: chunked\r\n"])
@pytest.mark.parametrize("path", [b"/healthz", b"/suggest"])
def test_bodies_without_a_token_take_no_memory(service, path, framing):
    suggested(service)
    before = resident(service)
    body = b"x" * 3_900_000
    part = b"%x\r\n%s" % (4_000_000, body) if b"chunked" in framing else body
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            sock = stack.enter_context(connect(service))
            with contextlib.suppress(ConnectionError):
                sock.sendall(HEAD % path + framing + b"\r\n" + part)
        assert set(suggested(service)) == {200}
        assert resident(service) - before < 30e6


def test_a_route_without_a_body_refuses_one(service):
    heads = {b"GET /healthz": 413, b"GET /labels": 413, b"GET /page.js": 413, b"POST /healthz": 405, b"POST /no": 404}
    for head, expected in heads.items():
        with connect(service) as sock:
            sock.sendall(
                head + b" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + READ.encode()
                + b"\r\nContent-Length: 5\r\n\r\n{"
            )  # fmt: skip
            status, body = answer_on(sock)
            assert (status, b"takes no body" in body) == (expected, expected == 413), head


def test_endless_headers_are_refused_early(service):
    before = resident(service)
    line = b"x-padding: " + b"y" * 8000 + b"\r\n"
    with connect(service) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 72_000_000:
                sock.sendall(line * 8)
                sent += 8 * len(line)
        assert sent < 20_000_000
        assert answer_on(sock)[0] == 431
    assert resident(service) - before < 20e6
    assert set(suggested(service)) == {200}


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nx: " + b"y" * 20_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"GET /" + b"y" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nx: " + b"y" * 20_000,  # the header does not end
    ],
)
def test_headers_have_a_limit(service, head):
    with connect(service) as sock:
        sock.sendall(head[:9000])
        time.sleep(0.05)
        sock.sendall(head[9000:])
        status, body = answer_on(sock)
        assert (status, b"header" in body) == (431, True)
        assert is_closed(sock, 10)


def test_endless_trailers_are_refused(service):
    head = HEAD % b"/suggest" + b"Authorization: Bearer " + READ.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connect(service) as sock:
        sock.sendall(head + b"0\r\n" + b"a: b\r\n" * 5000)
        assert answer_on(sock)[0] == 431


def test_half_requests_are_closed(quick):
    halves = {
        b"": 0, b"GET": 408, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n": 408,
        HEAD % b"/suggest" + b"Authorization: Bearer " + READ.encode() + b"\r\nContent-Length: 9\r\n\r\n{": 408,
        HEAD % b"/suggest" + b"Content-Length: 9\r\n\r\n{": 401,
    }  # fmt: skip
    with contextlib.ExitStack() as stack:
        opened = [(stack.enter_context(connect(quick)), *half) for half in halves.items()]
        for sock, sends, _ in opened:
            sock.sendall(sends)
        for sock, sends, status in opened:
            assert answer_on(sock)[0] == status, sends
            assert is_closed(sock, 10), sends


def test_one_byte_at_a_time_does_not_move_the_time_limit(quick):
    with connect(quick) as sock:
        started = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < started + 10:
                sock.sendall(b"G" if time.monotonic() == started else b"E")
                time.sleep(0.1)
        assert time.monotonic() < started + 8


def test_idle_connections_are_closed(quick):
    with connect(quick) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answer_on(sock)[0] == 200
        assert is_closed(sock, 10)


def test_a_client_that_does_not_read_is_given_up(quick):
    request = b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connect(quick) as sock:
        sock.settimeout(1)
        with contextlib.suppress(TimeoutError, ConnectionError):
            for _ in range(100_000):
                sock.sendall(request)
        deadline = time.monotonic() + 10
        while quick.metric("connections_open") > 1:  # that of the client which asks
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_pipelined_requests_have_a_limit(service):
    before = resident(service)
    with connect(service) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10_000)
        assert is_closed(sock, 10)
    assert resident(service) - before < 20e6


def test_a_few_pipelined_requests_are_answered(service):
    with connect(service) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
        received = b""
        while received.count(b'{"status":"alive"') < 3:
            received += sock.recv(65536)
        assert received.count(b"HTTP/1.1 200") == 3


def test_the_body_of_a_pipelined_request_may_come_later(service):
    body = b'{"text": "tax", "k": 1}'
    token = b"Authorization: Bearer " + READ.encode() + b"\r\n"
    head = HEAD % b"/suggest" + token + b"Content-Length: %d\r\n\r\n" % len(body)
    with connect(service) as sock:
        sock.sendall(head + body + head + body[:5])
        first = answer_on(sock)
        time.sleep(0.2)
        sock.sendall(body[5:])
        assert first[0] == 200
        assert answer_on(sock) == first


def test_strangers_make_room_for_holders_of_a_token(folder):
    service = guarded(folder, "--max-connections", 20, "--max-per-address", 15)
    try:
        assert set(suggested(service)) == {200}  # this connection stays open
        with connections(service, 40, sends=b"GET /healthz HTTP/1.1\r\n") as strangers:
            assert set(suggested(service)) == {200}
            with httpx.Client(base_url=service.facts["url"], headers=service.http.headers) as another:
                assert another.post("/suggest", json={"text": "tax"}).status_code == 200
            assert answer_on(strangers[0])[0] == 503
            assert service.metric("connections_open") <= 15
    finally:
        service.kill()


def test_connections_of_holders_of_a_token_are_not_closed_for_another(folder):
    service = guarded(folder, "--max-connections", 4, "--max-per-address", 4)
    try:
        ask = b"GET /model HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + READ.encode() + b"\r\n\r\n"
        with connections(service, 4, sends=ask) as known:
            assert [answer_on(sock)[0] for sock in known] == [200] * 4
            with connect(service) as one_more:
                status, body = answer_on(one_more)
                assert (status, b"too many connections" in body) == (503, True)
            for sock in known:
                sock.sendall(ask)
            assert [answer_on(sock)[0] for sock in known] == [200] * 4
    finally:
        service.kill()


def test_few_file_descriptors(folder):
    few = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150)); "
    service = guarded(folder, before=few)
    try:
        with connections(service, 300), httpx.Client(base_url=service.facts["url"], timeout=20) as client:
            client.headers.update(service.http.headers)
            assert client.post("/suggest", json={"text": "tax"}).status_code == 200
    finally:
        service.kill()


def test_no_file_descriptors_for_connections(folder):
    none = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); "
    with pytest.raises(RuntimeError, match="64 file descriptors leave none for connections; raise the limit"):
        guarded(folder, before=none)


def test_bodies_under_way_have_a_limit(folder):
    service = guarded(folder, "--max-body", 700_000, "--max-bodies", 1_000_000)
    head = HEAD % b"/suggest" + b"Authorization: Bearer " + READ.encode() + b"\r\nContent-Length: 400000\r\n\r\n"
    try:
        with connections(service, 4, sends=head + b" " * 399_000) as slow:
            refused = [sock for sock in slow if _has_answer(sock)]
            assert refused
            assert {answer_on(sock)[0] for sock in refused} == {503}
            assert set(suggested(service, 5)) == {200}
        deadline = time.monotonic() + 10
        while service.http.post("/suggest", json={"text": "tax " * 150_000}).status_code != 200:
            assert time.monotonic() < deadline
    finally:
        service.kill()


def _has_answer(sock: socket.socket) -> bool:
    sock.settimeout(1)
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False


@pytest.mark.parametrize("digits", ["0" * 5000 + "12", "0" * 30, "9" * 18])
def test_a_length_of_many_digits_is_refused(service, digits):
    """Python refuses to read numbers of thousands of digits, zeros included."""
    with connect(service) as sock:
        sock.sendall(HEAD % b"/suggest" + f"Authorization: Bearer {READ}\r\nContent-Length: {digits}\r\n\r\n".encode())
        assert answer_on(sock)[0] == 413


def test_a_client_may_wait_for_leave_to_send_its_body(service):
    body = b'{"text": "tax", "k": 1}'
    head = HEAD % b"/suggest" + b"Expect: 100-continue\r\nContent-Length: %d\r\n" % len(body)
    with connect(service) as sock:
        sock.sendall(head + b"Authorization: Bearer " + READ.encode() + b"\r\n\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 100")
        sock.sendall(body)
        assert answer_on(sock)[0] == 200
    with connect(service) as sock:
        sock.sendall(head + b"\r\n")
        assert answer_on(sock)[0] == 401
