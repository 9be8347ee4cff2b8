"""The writer: one thread takes records from a queue, makes them durable, applies them, and answers.

A record is answered when its frame is on disk and readers can see what it changed. A client that gets no answer may
send the record again with the same key; the record counts once.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from labelwood.errors import LabelwoodError
from labelwood.methods.text_classifier import estimator_of
from labelwood.run_context import logger
from labelwood.serve.state.log import LogRefusedError, Record
from labelwood.serve.state.records import Answer
from labelwood.serve.state.state_machine import Snapshot
from labelwood.serve.state.store import Store

_GROUP = 256
_IDLE_SECONDS = 1.0
_NICE_STEPS = 5  # a third of the CPU time of a thread that has not stood back


class QueueFullError(LabelwoodError):
    """The queue is full."""


class KeyReusedError(LabelwoodError):
    """An idempotency key came again with other contents."""


class StoppedError(LabelwoodError):
    """The writer takes no more records: it is shutting down, or it has failed."""


@dataclass(frozen=True)
class Learned:
    """The answer to a record; ``replayed`` if an earlier request with the same key had been applied."""

    answer: Answer
    replayed: bool = False


@dataclass(frozen=True)
class _Request:
    record: Record
    future: Future[Learned] = field(default_factory=Future)


@dataclass(frozen=True)
class _Swap:
    model: Path
    future: Future[Learned] = field(default_factory=Future)


Task = Callable[[], None]


class Writer:
    """Writes to the store and applies records to its state machine, from one thread."""

    def __init__(
        self,
        store: Store,
        *,
        n_jobs: int = 1,
        queue_length: int = 1000,
        snapshot_seconds: float = 60.0,
        snapshot_records: int = 10_000,
        publish: bool = False,
        alarm_below: float = 0.0,
    ) -> None:
        self.store, self._machine = store, store.machine
        self._machine.share(n_jobs=n_jobs)
        self._failed = ""  # until the next start
        self._refused = ""  # until the log takes records again
        self._snapshots_failed = 0
        self._alarm_below = alarm_below
        self._queue: queue.Queue[_Request | Task] = queue.Queue(queue_length)
        self._swaps: deque[_Swap] = deque()
        self._snapshot_seconds, self._snapshot_records = snapshot_seconds, snapshot_records
        self._snapshot_at, self._snapshot_sequence = time.monotonic(), self._machine.sequence
        self._snapshot_thread: threading.Thread | None = None
        self._publishes = publish
        self._stopping = self._ended = False
        if publish:
            store.publish(self._machine.snapshot())
        self._thread = threading.Thread(target=self._work, name="write", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Why records are refused at the moment; empty if they are not."""
        return self._failed or self._refused

    def gauges(self) -> dict[str, float]:
        """The gauges of a service that learns."""
        machine, drift = self._machine, self._machine.drift
        return {
            "examples_learned": machine.learned,
            "labels": estimator_of(machine.model).n_labels_,
            "log_bytes": self.store.log.size,
            "log_sequence": machine.sequence,
            "queue_length": self._queue.qsize(),
            "learning_refused": float(bool(self.trouble)),
            "reload_failed": float(bool(self._machine.reload_error)),
            "snapshots_failed": self._snapshots_failed,
            "clock_went_back": self.store.log.backwards,
            "drift_examples": drift.examples,
            "drift_precision_at_1": drift.precision or 0.0,
            "drift_new_label_rate": drift.new_label_rate or 0.0,
            "drift_alarm": float(drift.alarm(self._alarm_below)),
        }

    def submit(self, record: Record) -> Future[Learned]:
        """Put a record into the queue."""
        request = _Request(record)
        self._put(request)
        return request.future

    def swap(self, model: Path) -> Future[Learned]:
        """Replace the current model by the one at ``model`` if the current one began from another.

        Calls that come before the writer gets to them count as one. A full queue does not matter.
        """
        if self._stopping or self._failed:
            raise StoppedError(self._failed or "the service is shutting down")
        swap = _Swap(model)
        self._swaps.append(swap)
        with contextlib.suppress(queue.Full):  # a full queue: the writer is awake
            self._queue.put_nowait(lambda: None)
        return swap.future

    def close(self, *, snapshot: bool = True) -> None:
        """Apply what is in the queue, write a last snapshot, close the store; do nothing the second time."""
        if self._stopping:
            return
        self._stopping = True
        self._queue.put(self._end)
        self._thread.join()
        for swap in self._swaps:
            swap.future.set_exception(StoppedError("the service is shutting down"))
        if self._snapshot_thread is not None:
            self._snapshot_thread.join()
        if snapshot and not self._failed and self._machine.sequence > self._snapshot_sequence:
            self._write_snapshot(self._take_snapshot())
        self.store.close()

    def _put(self, item: _Request | Task) -> None:
        if self._stopping or self._failed:
            raise StoppedError(self._failed or "the service is shutting down")
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            raise QueueFullError("too many examples are waiting to be learned; try again") from None

    def _end(self) -> None:
        self._ended = True

    def _work(self) -> None:
        stand_back()
        while not self._ended:
            group, task = self._take()
            if group:
                self._apply(group)
            if task is not None:
                task()
            self._maybe_swap()
            self._maybe_snapshot()

    def _take(self) -> tuple[list[_Request], Task | None]:
        """The requests to put into one frame, and a task to do after them. Both may be missing."""
        group: list[_Request] = []
        try:
            item = self._queue.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            return group, None
        while isinstance(item, _Request):
            if item.future.set_running_or_notify_cancel():  # False: the client has gone
                group.append(item)
            if len(group) >= _GROUP or self._queue.empty():
                return group, None
            item = self._queue.get()
        return group, item

    def _apply(self, group: list[_Request]) -> None:
        fresh, repeated = self._split_by_key(group)
        if fresh:
            self._log_and_apply(fresh)
        for request in repeated:
            self._answer_again(request)

    def _split_by_key(self, group: list[_Request]) -> tuple[list[_Request], list[_Request]]:
        """New requests, and requests with a key that came before, in the log or earlier in the group."""
        keys: set[str] = set()
        fresh: list[_Request] = []
        repeated: list[_Request] = []
        for request in group:
            key = request.record.get("key")
            seen = key is not None and (key in keys or key in self._machine.keys)
            (repeated if seen else fresh).append(request)
            if key is not None:
                keys.add(key)
        return fresh, repeated

    def _answer_again(self, request: _Request) -> None:
        digest, answer = self._machine.keys.get(request.record["key"], (None, None))
        if answer is None:  # the first request with this key could not be logged
            request.future.set_exception(StoppedError(self.trouble))
        elif digest != request.record["digest"]:
            request.future.set_exception(KeyReusedError("this Idempotency-Key came before, with other contents"))
        else:
            request.future.set_result(Learned(answer, replayed=True))

    def _log_and_apply(self, fresh: list[_Request]) -> None:
        try:
            answers = self._durable_answers([request.record for request in fresh])
        except LabelwoodError as error:
            for request in fresh:
                request.future.set_exception(error)
            return
        for request, answer in zip(fresh, answers, strict=True):
            request.future.set_result(Learned(answer))
        self._machine.catch_up()

    def _durable_answers(self, records: list[Record]) -> list[Answer]:
        if self._failed:
            raise StoppedError(self._failed)
        try:
            frame = self.store.log.append(records)
        except LogRefusedError as error:
            self._refused = str(error)
            logger.warning("%s", error)
            raise
        self._refused = ""
        try:
            return self._machine.apply(frame)
        except Exception as error:
            # The frame is on disk and the next start applies it. Until then the model may hold half of the frame,
            # so nothing more is learned.
            self._failed = f"learning has stopped until the next start: {error!r}"
            logger.exception("learning has stopped")
            raise StoppedError(self._failed) from error

    def _maybe_swap(self) -> None:
        asked = [self._swaps.popleft() for _ in range(len(self._swaps))]
        waiting = [swap for swap in asked if swap.future.set_running_or_notify_cancel()]
        if not waiting:
            return
        try:
            learned = self._swap(waiting[-1].model)
        except (LabelwoodError, OSError) as error:
            self._machine.reload_error = str(error)
            logger.warning("the model in use is kept: %s", error)
            for swap in waiting:
                swap.future.set_exception(StoppedError(str(error)))
            return
        self._machine.reload_error = ""
        for swap in waiting:
            swap.future.set_result(learned)

    def _swap(self, model: Path) -> Learned:
        if self.store.holds(model):
            return Learned({}, replayed=True)
        (answer,) = self._durable_answers([self.store.adopt(model)])
        self._snapshot_at = -math.inf  # processes that only read see the new model with the next snapshot
        return Learned(answer)

    def _take_snapshot(self) -> Snapshot:
        self.store.log.rotate()
        self._snapshot_at, self._snapshot_sequence = time.monotonic(), self._machine.sequence
        return self._machine.snapshot()

    def _maybe_snapshot(self) -> None:
        if self._snapshot_thread is not None and self._snapshot_thread.is_alive():
            return
        n_new = self._machine.sequence - self._snapshot_sequence
        waited = time.monotonic() - self._snapshot_at
        due = n_new >= self._snapshot_records or waited >= self._snapshot_seconds
        if n_new and due and not self._failed:
            self._snapshot_thread = threading.Thread(
                target=self._write_beside, args=(self._take_snapshot(),), name="snapshot", daemon=True
            )
            self._snapshot_thread.start()

    def _write_beside(self, snapshot: Snapshot) -> None:
        stand_back()  # behind the writer as well, whose priority this thread has inherited
        self._write_snapshot(snapshot)

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        try:
            self.store.write_snapshot(snapshot)
            if self._publishes:
                self.store.publish(snapshot)
        except (OSError, LabelwoodError) as error:
            self._snapshots_failed += 1
            logger.warning("a snapshot could not be written; the log keeps its records: %s", error)


def stand_back() -> None:
    """Lower the priority of this thread and of the threads that it starts.

    The thread that answers requests then runs first while a snapshot is written; ``benchmarks/service/tricks.py``
    measures the gain. Linux has priorities by thread; on other systems this does nothing.
    """
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + _NICE_STEPS)
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
