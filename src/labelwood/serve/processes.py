"""The processes of the service: one that does everything, or one writer and several readers behind one port.

With several workers the first process only writes. It publishes frozen snapshots, and listens on a socket in a private
directory. The readers map the newest snapshot, answer from it, and forward requests that change the model to that
socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from labelwood import __version__
from labelwood.methods import load
from labelwood.run_context import logger
from labelwood.serve.event_log import Level, check_log, events, open_log
from labelwood.serve.http.app import create_app
from labelwood.serve.http.auth import Tokens, check_host
from labelwood.serve.http.forward import Forward
from labelwood.serve.http.gate import Gate
from labelwood.serve.http.limits import Limits
from labelwood.serve.http.listening import GRACE_SECONDS, listen, public_config, server_config, url_of
from labelwood.serve.service import Service
from labelwood.serve.state.followed_model import FollowedModel
from labelwood.serve.state.refits import RefitOptions
from labelwood.serve.state.state_machine import DRIFT_WINDOW
from labelwood.serve.state.store import KEPT_SNAPSHOTS, Store, view_of
from labelwood.serve.state.writer import Writer
from labelwood.serve.telemetry import Metrics
from labelwood.storage.atomic import private_directory
from labelwood.vocabulary import load_vocabulary

_SWITCH_SECONDS = 0.0005  # the writer releases the interpreter often, so that suggestions do not wait for it


@dataclass(frozen=True)
class Options:
    """The options of ``labelwood serve``."""

    model: Path
    host: str = "127.0.0.1"
    port: int = 8765
    state: Path | None = None
    learn: bool = True
    workers: int = 1
    n_jobs: int = 1
    tokens: Path | None = None
    vocabulary: Path | None = None
    language: str | None = None
    limits: Limits = field(default_factory=Limits)
    queue_length: int = 1000
    snapshot_seconds: float = 60.0
    keep: int = KEPT_SNAPSHOTS
    drift_window: int = DRIFT_WINDOW
    alarm_below: float = 0.0
    refits: RefitOptions = field(default_factory=RefitOptions)
    log: str | None = None
    log_level: Level = "info"

    @property
    def state_folder(self) -> Path:
        """The directory of the log and the snapshots."""
        return self.state or self.model.with_name(self.model.name + ".state")


def serve(options: Options, announce: Callable[[dict[str, Any]], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``announce`` is called with the address when the port is open."""
    check_host(options.host, Tokens.find(options.tokens))
    if options.log not in (None, "-"):
        check_log(options.log, options.model, options.state_folder)
    open_log(options.log, options.log_level)
    sys.setswitchinterval(_SWITCH_SECONDS)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the server has started; then it compares the models
    ended = threading.Event()  # by a signal before uvicorn handles signals; it raises them again at its end
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda sig, frame: ended.set())
    learns = options.learn and load(options.model).can_learn
    if not learns and options.state_folder.exists():
        text = "%s is served without learning: what %s has learned is not used"
        logger.warning(text, options.model, options.state_folder)
    with listen(options.host, options.port) as sock:
        _serve_on(sock, options, learns, announce, ended)


def _serve_on(
    sock: socket.socket,
    options: Options,
    learns: bool,
    announce: Callable[[dict[str, Any]], None],
    ended: threading.Event,
) -> None:
    facts: dict[str, Any] = {"url": url_of(sock), "learns": learns}
    if learns:
        facts["state"] = str(options.state_folder)
    events.info("serving", extra={"facts": {**facts, "model": str(options.model), "version": __version__}})
    if options.workers > 1:
        _serve_many(options, sock, learns, lambda: announce(facts), ended)
    else:
        service = _service(options, Metrics(), learns=learns)
        config = public_config(_app(options, service), options.limits, service.metrics, has_log=options.log is not None)
        server = _Server(config, lambda: service.reload(options.model), ended)
        announce(facts)
        server.run(sockets=[sock])
    events.info("stopped")


def _serve_many(
    options: Options, sock: socket.socket, learns: bool, announce: Callable[[], None], ended: threading.Event
) -> None:
    closed = threading.Event()
    with _private_directory(n_rows=options.workers + 1) as private:
        metrics = Metrics(private / "metrics", n_rows=options.workers + 1)
        service = _service(options, metrics, learns=learns, publish=True)
        readers = _Readers(options, sock, private, learns=learns)
        service.push_gauges()
        pushing = threading.Thread(target=_push, args=(service, closed), daemon=True)
        pushing.start()
        config = server_config(
            _app(options, service), options.limits, has_log=options.log is not None, uds=str(private / "writer")
        )
        server = _WriterServer(config, lambda: service.reload(options.model), ended, readers)
        announce()
        server.run()
        closed.set()
        pushing.join()  # a thread that holds the model must not outlive the interpreter


@contextlib.contextmanager
def _private_directory(*, n_rows: int) -> Iterator[Path]:
    """A directory for the socket and the metrics: in memory if possible, so that a full disk does not matter."""
    places = [Path("/dev/shm"), None]
    with contextlib.ExitStack() as stack:
        for place in places:
            try:
                own = private_directory("labelwood-serve", {"metrics", "writer"}, folder=place)
                private = stack.enter_context(own)
                Metrics(private / "metrics", n_rows=n_rows)
                break
            except OSError:
                if place is None:
                    raise
        yield private


class _Server(uvicorn.Server):
    """Calls ``reload`` on the event loop when it has started, and at every SIGHUP from then on.

    It ends at once if ``ended`` is set by then.
    """

    def __init__(self, config: uvicorn.Config, reload: Callable[[], None], ended: threading.Event) -> None:
        super().__init__(config)
        self._reload, self._ended = reload, ended

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # A handler of the event loop never interrupts other code, so it may take locks.
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
        await super().startup(sockets=sockets)
        self._reload()
        if self._ended.is_set():
            self.handle_exit(signal.SIGTERM, None)


class _WriterServer(_Server):
    """Stops the readers before itself, so that requests which they have forwarded are still answered."""

    def __init__(
        self, config: uvicorn.Config, reload: Callable[[], None], ended: threading.Event, readers: _Readers
    ) -> None:
        super().__init__(config, reload, ended)
        self._readers = readers

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        def stop() -> None:
            self._readers.stop()
            self.should_exit = True

        threading.Thread(target=stop, daemon=True).start()


class _Readers:
    """The reader processes. A reader that ends unexpectedly is started again."""

    def __init__(self, options: Options, sock: socket.socket, private: Path, *, learns: bool) -> None:
        self._arguments = (options, sock, private, learns, os.getpid())
        self._context = multiprocessing.get_context("spawn")
        self._stopping = False
        self._processes = [self._start(row) for row in range(1, options.workers + 1)]
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self) -> None:
        """Let the readers finish their requests, and end them."""
        self._stopping = True
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(GRACE_SECONDS)

    def _start(self, row: int) -> Any:
        process = self._context.Process(target=_read, args=(*self._arguments, row), daemon=True)
        process.start()
        return process

    def _watch(self) -> None:
        while not self._stopping:
            ended = multiprocessing.connection.wait([one.sentinel for one in self._processes], timeout=1)
            for place, process in enumerate(self._processes):
                if process.sentinel in ended and not self._stopping:
                    logger.warning(
                        "reader %d ended with exit code %s and is started again", place + 1, process.exitcode
                    )
                    self._processes[place] = self._start(place + 1)


def _read(options: Options, sock: socket.socket, private: Path, learns: bool, writer: int, row: int) -> None:
    """The main function of a reader process; ``writer`` is the id of the writer process."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(writer,), daemon=True).start()
    open_log(options.log, options.log_level)
    current = FollowedModel(lambda: view_of(options.state_folder) if learns else options.model, n_jobs=options.n_jobs)
    metrics = Metrics(private / "metrics", row=row, n_rows=options.workers + 1)
    service = Service(current, metrics, writer_elsewhere=learns, sets_gauges=False, name=options.model.name)
    app = _app(options, service, forward=private / "writer" if learns else None)
    config = public_config(app, options.limits, metrics, has_log=options.log is not None)
    uvicorn.Server(config).run(sockets=[sock])


def _end_with(parent: int) -> None:
    """End when the writer process has ended, even if it was killed before this process had started."""
    waiting = threading.Event()
    while os.getppid() == parent:
        waiting.wait(1.0)
    os.kill(os.getpid(), signal.SIGTERM)


def _service(options: Options, metrics: Metrics, *, learns: bool, publish: bool = False) -> Service:
    if not learns:
        lent = FollowedModel(lambda: options.model, n_jobs=options.n_jobs)
        return Service(lent, metrics, name=options.model.name)
    store = Store(options.state_folder, model=options.model, keep=options.keep, drift_window=options.drift_window)
    writer = Writer(
        store,
        n_jobs=options.n_jobs,
        queue_length=options.queue_length,
        snapshot_seconds=options.snapshot_seconds,
        publish=publish,
        alarm_below=options.alarm_below,
        refits=options.refits,
    )
    return Service(store.machine, metrics, writer, name=options.model.name)


def _app(options: Options, service: Service, *, forward: Path | None = None) -> Gate:
    if options.vocabulary is not None:
        service.vocabulary = load_vocabulary(options.vocabulary)
    service.language = options.language
    with service.current.read() as model:
        service.names(model)  # a language without names is an error at the start
    return create_app(
        service,
        tokens=Tokens.find(options.tokens),
        limits=options.limits,
        inner=None if forward is None else lambda app: Forward(app, forward),
    )


def _push(service: Service, ended: threading.Event) -> None:
    while not ended.wait(1.0):
        service.push_gauges()
