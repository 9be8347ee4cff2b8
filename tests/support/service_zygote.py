"""Services in a process that has imported everything, or forked from it, driven over a connection.

    python service_zygote.py

reads lines of JSON, the options of :func:`serve_child`, and runs a service for each, or forks one if the options say
so. A service connects to the address in its options and obeys commands: requests to its ASGI application, a jump of
its clock, another model, an end.

A service that is not forked is killed without the end of a process: from one moment on, every call that changes a file
fails, and then its threads end. What was not flushed at that moment stays unflushed for the services after it, so that
a power cut may still undo it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
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

from injection import Faults

from labelwood.methods.online.learner import learner_of
from labelwood.run_context import logger
from labelwood.serve.http.app import create_app
from labelwood.serve.service import Service
from labelwood.serve.state import refits
from labelwood.serve.state import writer as writing
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
        return
    service.current, service.writer = store.machine, writer
    loop = asyncio.new_event_loop()
    connection.send(("serves", os.getpid()))
    try:
        while (command := connection.recv())[0] != "end":
            if command[0] == "clock":
                jump = command[1]
            else:
                _obey(command, connection, loop, app, writer)
        writer.close(snapshot=command[1])
        connection.send("ended")
    finally:
        writer.close(snapshot=False)
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def _obey(command: tuple[Any, ...], connection: Any, loop: Any, app: Any, writer: Writer) -> None:
    what, *words = command
    if what == "requests":
        connection.send(loop.run_until_complete(_ask_all(app, *words)))
    elif what == "swap":
        connection.send(_swapped(writer, Path(words[0])))
    elif what == "refit":
        asked = writer.refit()
        if words[0]:
            connection.send(_refitted(writer, asked))
    elif what == "settle":
        connection.send(_settled(writer))


class _NoModel:
    """Stands for the model of a service that has not started."""

    def read(self) -> Any:
        raise AssertionError("the service has not started")


async def _ask_all(app: Any, requests: list[tuple[str, str, Any, dict[str, str]]]) -> list[Answer]:
    return list(await asyncio.gather(*(_ask(app, *request) for request in requests)))


async def _ask(app: Any, method: str, target: str, body: Any, headers: dict[str, str]) -> Answer:
    """Call the application as a server does, with the whole body at once."""
    path, _, query = target.partition("?")
    data = b"" if body is None else json.dumps(body).encode()
    given = {"host": "localhost", "content-length": str(len(data)), **headers}
    given |= {} if body is None else {"content-type": "application/json"}
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "path": path, "root_path": "",
        "raw_path": path.encode(), "query_string": query.encode(), "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
        "headers": [(name.lower().encode(), text.encode()) for name, text in given.items()],
    }  # fmt: skip
    sent: list[Any] = []
    ended = asyncio.Event()
    pieces = iter([{"type": "http.request", "body": data, "more_body": False}])

    async def receive() -> Any:
        for piece in pieces:
            return piece
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    ended.set()
    content = b"".join(message.get("body", b"") for message in sent)
    is_json = dict(sent[0]["headers"]).get(b"content-type", b"").startswith(b"application/json")
    return sent[0]["status"], json.loads(content) if is_json else content.decode()


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
    """The process that serves, or forks services."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )

    def start(self, folder: Path, faults: Faults, *, forks: bool, **options: Any) -> ServiceChild:
        """Start a service; raise if it does not start."""
        address = str(folder / "socket")
        Path(address).unlink(missing_ok=True)
        with Listener(address) as listener:
            assert self._process.stdin is not None
            all_options = {**options, "address": address, "faults": str(faults.path), "forks": forks}
            self._process.stdin.write(json.dumps(all_options) + "\n")
            self._process.stdin.flush()
            connection = listener.accept()
        told, what = connection.recv()
        assert told == "serves", what
        return ServiceChild(what, connection) if forks else ServiceWithin(connection, faults, options["state"])

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
        self._end(snapshot=True)
        self.wait()

    def _end(self, *, snapshot: bool) -> None:
        self._connection.send(("end", snapshot))
        while self._connection.recv() != "ended":  # answers that nobody has waited for
            pass

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


class ServiceWithin(ServiceChild):
    """A service that was not forked."""

    def __init__(self, connection: Connection, faults: Faults, state: str) -> None:
        self._connection, self._faults, self._state = connection, faults, state

    def kill(self) -> None:
        """From now on the service changes no file; then it ends."""
        self._faults.set(f"change {self._state}* 0 -1 fail {errno.EIO}")
        self._end(snapshot=False)
        self.wait()

    def wait(self) -> None:
        """The service has ended."""
        self._connection.close()


def main() -> None:
    """Run or fork a service for every line of the standard input."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    logger.setLevel("CRITICAL")
    injector = ctypes.CDLL(os.environ["LD_PRELOAD"])
    for module in (writing, refits):  # at low priority, every answer waits for the other processes of the machine
        module.stand_back = lambda: None  # type: ignore[attr-defined]
    service = Service(_NoModel(), Metrics())
    app = create_app(service)  # once: it takes longer than all else of a start
    known = ""
    for line in sys.stdin:
        options = json.loads(line)
        if options["state"] != known:
            injector.fault_forget()
            known = options["state"]
        is_child = options["forks"] and os.fork() == 0
        if options["forks"] and not is_child:
            continue
        try:
            if is_child:
                injector.fault_forget()
            with contextlib.suppress(EOFError, ConnectionResetError, BrokenPipeError):
                serve_child(options, service, app)
        finally:
            if is_child:
                os._exit(0)


if __name__ == "__main__":
    main()
