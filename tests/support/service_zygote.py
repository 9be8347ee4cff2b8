"""Services of which each is forked from a process that has imported everything, and is driven over a connection.

    python service_zygote.py

reads lines of JSON, the options of :func:`serve_child`, and forks a service for each. A service connects to the address
in its options and obeys commands: requests to its ASGI application, a jump of its clock, another model, an end.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import httpx

from labelwood.methods.online.learner import learner_of
from labelwood.run_context import logger
from labelwood.serve.http.app import create_app
from labelwood.serve.service import Service
from labelwood.serve.state.log import wall_clock
from labelwood.serve.state.refits import RefitOptions
from labelwood.serve.state.store import Store
from labelwood.serve.state.writer import Writer
from labelwood.serve.telemetry import Metrics

Answer = tuple[int, Any]


def serve_child(options: dict[str, Any], service: Service, app: Any) -> None:
    """Serve until the connection ends, with an application that was made for the service beforehand."""
    os.environ["LABELWOOD_FAULTS"] = options["faults"]
    connection = Client(options["address"])
    jump = 0

    def clock() -> int:
        return wall_clock() + jump

    try:
        store = Store(Path(options["state"]), model=Path(options["model"]), keep=options["keep"], clock=clock)
        writer = Writer(
            store, snapshot_seconds=1e6, snapshot_records=options["snapshot_records"], publish=options["publish"],
            refits=RefitOptions(when="asked"),
        )  # fmt: skip
    except Exception as error:
        connection.send(("failed", repr(error)))
        raise
    service.current, service.writer = store.machine, writer
    loop = asyncio.new_event_loop()
    connection.send(("serves", os.getpid()))
    while True:
        command, *words = connection.recv()
        if command == "requests":
            connection.send(loop.run_until_complete(_ask_all(app, *words)))
        elif command == "clock":
            jump = words[0]
        elif command == "swap":
            connection.send(_swapped(writer, Path(words[0])))
        elif command == "refit":
            asked = writer.refit()
            if words[0]:
                connection.send(_refitted(writer, asked))
        elif command == "settle":
            connection.send(_settled(writer))
        elif command == "stop":
            writer.close()
            connection.send("stopped")
            return


class _NoModel:
    """Stands for the model of a service that has not started."""

    def read(self) -> Any:
        raise AssertionError("the service has not started")


async def _ask_all(app: Any, requests: list[tuple[str, str, Any, dict[str, str]]]) -> list[Answer]:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return list(await asyncio.gather(*(_ask(client, *request) for request in requests)))


async def _ask(client: httpx.AsyncClient, method: str, path: str, body: Any, headers: dict[str, str]) -> Answer:
    answer = await client.request(method, path, json=body, headers=headers)
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    return answer.status_code, answer.json() if is_json else answer.text


def _swapped(writer: Writer, path: Path) -> Answer:
    try:
        return 200, writer.swap(path).result().answer
    except Exception as error:
        return 503, str(error)


def _refitted(writer: Writer, asked: Any) -> Answer:
    try:
        asked.result()
    except Exception as error:
        return 503, str(error)
    return _settled(writer)


def _settled(writer: Writer) -> Answer:
    """Wait until no refit is under way; the number of the last record, and the result of the last refit."""
    machine = writer.store.machine
    while machine.refit is not None:
        time.sleep(0.001)
    with machine.read() as model:
        last = learner_of(model, owner="test").last_refit_
    return 200, {"sequence": machine.sequence, "last": None if last is None else asdict(last)}


class Zygote:
    """The process that forks services."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )

    def start(self, folder: Path, **options: Any) -> ServiceChild:
        """Fork a service; raise if it does not start."""
        address = str(folder / "socket")
        Path(address).unlink(missing_ok=True)
        with Listener(address) as listener:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({**options, "address": address}) + "\n")
            self._process.stdin.flush()
            connection = listener.accept()
        told, what = connection.recv()
        assert told == "serves", what
        return ServiceChild(what, connection)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


class ServiceChild:
    """A service that was forked."""

    def __init__(self, pid: int, connection: Connection) -> None:
        self._pid, self._connection = pid, connection

    def begin(self, *requests: tuple[str, str, Any, dict[str, str]]) -> None:
        """Send requests, which the service answers at once or together."""
        self._connection.send(("requests", list(requests)))

    def answers(self) -> list[Answer]:
        """Wait for the answers to the requests that were sent last."""
        return self._connection.recv()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send one request and wait for the answer."""
        self.begin((method, path, body, headers))
        return self.answers()[0]

    def swap(self, model: Path) -> Answer:
        """Replace the model."""
        self._connection.send(("swap", str(model)))
        return self._connection.recv()

    def refit(self, *, wait: bool = True) -> Answer:
        """Train the batch model of a living model again."""
        self._connection.send(("refit", wait))
        return self._connection.recv() if wait else (0, None)

    def settle(self) -> Answer:
        """Wait until no refit is under way."""
        self._connection.send(("settle",))
        return self._connection.recv()

    def set_clock(self, micros: int) -> None:
        """Let the clock be wrong by a number of microseconds."""
        self._connection.send(("clock", micros))

    def stop(self) -> None:
        """End the service in good order."""
        self._connection.send(("stop",))
        assert self._connection.recv() == "stopped"
        self.wait()

    def kill(self) -> None:
        """Kill the service and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self.wait()

    def wait(self) -> None:
        """Wait until the process is gone, and its locks with it."""
        self._connection.close()
        try:
            while True:
                os.kill(self._pid, 0)
                time.sleep(0.001)
        except ProcessLookupError:
            return


def main() -> None:
    """Fork a service for every line of the standard input."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    logger.setLevel("CRITICAL")
    service = Service(_NoModel(), Metrics())
    app = create_app(service)  # once: it takes longer than all else of a start
    for line in sys.stdin:
        if os.fork() == 0:
            try:
                serve_child(json.loads(line), service, app)
            except EOFError:
                pass
            finally:
                os._exit(0)


if __name__ == "__main__":
    main()
