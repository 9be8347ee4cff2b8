"""The log: JSON lines about requests and events, and nothing that a client has sent."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

READ = "reading-token-0001"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("workers", [1, 2])
def test_requests_and_events(serving, model, tmp_path, workers):
    (tmp_path / "tokens").write_text(f"read {READ}\n")
    log = tmp_path / "log"
    service = serving(model, "--tokens", tmp_path / "tokens", "--log", log, "--workers", workers)
    secret = {"text": "a secret dog", "allowed": ["secret label"]}
    known = {"Authorization": f"Bearer {READ}"}
    assert service.http.post("/suggest", json=secret, headers=known).status_code == 200
    assert service.http.post("/suggest", json={"secret": "secret"}, headers=known).status_code == 422
    assert service.http.post("/learn", json=secret, headers={"Authorization": "Bearer secret-token"}).status_code == 401
    assert service.http.get("/labels", params={"contains": "secret"}, headers=known).status_code == 200
    assert service.http.get(f"/secret/{READ}", headers=known).status_code == 404
    with socket.create_connection((service.http.base_url.host, service.http.base_url.port)) as sock:
        sock.sendall(b"secret nonsense\r\n\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 400")
    code, said = service.stop()
    assert code == 0, said
    assert "secret" not in said
    text = log.read_text()
    assert "secret" not in text
    assert READ not in text
    lines = lines_of(log)
    assert all({"time", "level", "event", "process"} <= line.keys() for line in lines)
    # with several processes the writer logs what the readers forward too
    asked = [line for line in lines if line["event"] == "request" and line["client"]]
    assert [(line["method"], line["route"], line["status"], line["role"]) for line in asked] == [
        ("POST", "suggest", 200, "read"), ("POST", "suggest", 422, "read"), ("POST", "learn", 401, "open"),
        ("GET", "labels", 200, "read"), ("GET", "other", 404, "read"),
    ]  # fmt: skip
    assert all(line["client"] == "127.0.0.1" and line["ms"] > 0 for line in asked)
    events = [line["event"] for line in lines if line["event"] != "request"]
    assert (events[0], events[-1]) == ("serving", "stopped")


def test_levels_and_connections_ended_early(serving, model, tmp_path):
    log = tmp_path / "log"
    service = serving(model, "--log", log, "--log-level", "warning", "--header-timeout", 0.3)
    service.suggest("a dog")
    with socket.create_connection((service.http.base_url.host, service.http.base_url.port)):
        deadline = time.monotonic() + 30
        while not lines_of(log):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    service.stop()
    (line,) = lines_of(log)
    assert (line["level"], line["event"]) == ("warning", "connections ended early")
    assert (line["timed_out"], line["shed"], line["refused"]) == (1, 0, 0)


def test_a_log_on_stderr(serving, model):
    service = serving(model, "--log", "-")
    service.suggest("a dog")
    _, said = service.stop()
    events = [json.loads(line)["event"] for line in said.splitlines() if line.startswith("{")]
    assert events == ["serving", "request", "stopped"]
