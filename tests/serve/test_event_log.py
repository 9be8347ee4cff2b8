"""The log: JSON lines about requests and events, and nothing that a client has sent."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from labelwood.cli import main
from labelwood.errors import LabelwoodError
from labelwood.serve.event_log import check_log

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


def test_a_log_that_cannot_be_written_stops_nothing(serving, model, tmp_path):
    """The directory of the log is moved away: time limits of connections go on, and so does the log when it is back."""
    folder, away = tmp_path / "logs", tmp_path / "away"
    folder.mkdir()
    service = serving(model, "--log", folder / "log", "--header-timeout", 0.3)
    service.suggest("a dog")
    folder.rename(away)
    for _ in range(3):
        service.suggest("a dog")
        with socket.create_connection((service.http.base_url.host, service.http.base_url.port), timeout=30) as sock:
            while sock.recv(1000):  # until the service closes it
                pass
    deadline = time.monotonic() + 60
    while service.http.get("/metrics").text.count("connections_timed_out") == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    folder.mkdir()
    service.suggest("a dog")
    _, said = service.stop()
    assert said.count("the log cannot be written: [Errno 2]") == 1
    assert "Traceback" not in said
    assert [line["event"] for line in lines_of(folder / "log")][-1] == "stopped"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only some systems have a device that is full")
def test_a_full_disk_of_the_log_stops_nothing(serving, model):
    service = serving(model, "--log", "/dev/full")
    for _ in range(5):
        service.suggest("a dog")
    code, said = service.stop()
    assert code == 0
    assert said.count("the log cannot be written: [Errno 28]") == 1
    assert "Traceback" not in said


@pytest.mark.parametrize("place", ["manifest.json", "new.log"])
def test_a_log_is_never_within_the_model_or_the_state(model, tmp_path, place):
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    for folder in (model, tmp_path / "state"):
        with pytest.raises(LabelwoodError, match="--log must not be within"):
            check_log(str(folder / place), model, tmp_path / "state")
    assert main(["serve", str(model), "--port", "0", "--log", str(model / place)]) == 1
    assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_a_log_is_no_pipe(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LabelwoodError, match="--log must not be a named pipe"):
        check_log(str(tmp_path / "pipe"), model)
