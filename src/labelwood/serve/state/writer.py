"""The writer: one thread takes records from a queue, makes them durable, applies them, and answers.

A record is answered when its frame is on disk and readers can see what it changed. A client that gets no answer may
send the record again with the same key; the record counts once.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from labelwood.errors import LabelwoodError
from labelwood.methods.online.living_batch import RefitResult
from labelwood.methods.text_classifier import estimator_of
from labelwood.run_context import logger
from labelwood.serve.state.frames import LogRefusedError, Record
from labelwood.serve.state.priority import stand_back
from labelwood.serve.state.records import Answer
from labelwood.serve.state.refits import RefitOptions, Refits
from labelwood.serve.state.state_machine import Snapshot
from labelwood.serve.state.store import Store

_GROUP = 256
_IDLE_SECONDS = 1.0
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 1.0, 60.0


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
        refits: RefitOptions | None = None,
    ) -> None:
        self.store, self._machine = store, store.machine
        self._machine.share(n_jobs=n_jobs)
        self._failed = ""  # until the state has been rebuilt
        self._recoveries, self._retry_at, self._retry_seconds = 0, 0.0, _FIRST_RETRY_SECONDS
        self._taken: list[_Request] = []
        self._refused = ""  # until the log takes records again
        self._snapshots_failed = self._snapshots_in_vain = 0  # since the start; since the last one that was written
        self._alarm_below = alarm_below
        self._queue: queue.Queue[_Request | Task] = queue.Queue(queue_length)
        self._refits = Refits(store, refits or RefitOptions(), self._durable_answers, self._wake)
        self._swaps: deque[_Swap] = deque()
        self._snapshot_seconds, self._snapshot_records = snapshot_seconds, snapshot_records
        self._snapshot_at, self._snapshot_sequence = time.monotonic(), self._machine.sequence
        self._snapshot_thread: threading.Thread | None = None
        self._publishes, self._is_published = publish, True
        self._stopping = self._ended = False
        if publish:
            self._publish(self._machine.snapshot())
        self._thread = threading.Thread(target=self._work, name="write", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Why records are refused at the moment; empty if they are not."""
        if not self._stopping and not self._thread.is_alive():
            return "the thread that writes has ended"
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
            "learning_recoveries": self._recoveries,
            "records_skipped": machine.skipped,
            "reload_failed": float(bool(self._machine.reload_error)),
            "snapshots_failed": self._snapshots_failed,
            "clock_went_back": self.store.log.backwards,
            "drift_examples": drift.examples,
            "drift_precision_at_1": drift.precision or 0.0,
            "drift_new_label_rate": drift.new_label_rate or 0.0,
            "drift_alarm": float(drift.alarm(self._alarm_below)),
            **self._refits.gauges(),
        }

    def remembers(self, key: str) -> bool:
        """True if a record with this idempotency key has been applied."""
        return key in self._machine.keys

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
        self._wake()
        return swap.future

    def refit(self) -> Future[RefitResult]:
        """Train the batch model again, whether or not that is due; the result comes when the refit has ended."""
        if self._stopping or self._failed:
            raise StoppedError(self._failed or "the service is shutting down")
        asked = self._refits.ask()
        self._wake()
        return asked

    def _wake(self) -> None:
        with contextlib.suppress(queue.Full):  # a full queue: the writer is awake
            self._queue.put_nowait(lambda: None)

    def close(self, *, snapshot: bool = True) -> None:
        """Apply what is in the queue, write a last snapshot, close the store; do nothing the second time."""
        if self._stopping:
            return
        self._stopping = True
        self._queue.put(self._end)
        self._thread.join()
        self._refits.close()
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
            try:
                self._work_once()
            except BaseException as error:
                self._fail(error)

    def _work_once(self) -> None:
        if self._failed and time.monotonic() >= self._retry_at:
            self._recover()
        task = self._take()
        if self._taken:
            self._apply(self._taken)
        if task is not None:
            task()
        self._maybe_swap()
        if not self._failed and self._refits.step():
            self._snapshot_at = -math.inf  # as after a swap
            self._wake()  # another refit may be due
        self._maybe_snapshot()

    def _take(self) -> Task | None:
        """Take the requests to put into one frame, and return a task to do after them. Both may be missing."""
        self._taken = []
        try:
            item = self._queue.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            return None
        while isinstance(item, _Request):
            if item.future.set_running_or_notify_cancel():  # False: the client has gone
                self._taken.append(item)
            if len(self._taken) >= _GROUP or self._queue.empty():
                return None
            item = self._queue.get()
        return item

    def _fail(self, error: BaseException) -> None:
        """Refuse records from here on, and rebuild the state soon: the model may hold half of a frame."""
        self._failed = f"learning has failed and will be tried again: {error!r}"
        self._retry_at = time.monotonic()
        for request in self._taken:
            if not request.future.done():
                request.future.set_exception(StoppedError(self._failed))
        with contextlib.suppress(Exception):  # memory may be short
            logger.error("learning has failed", exc_info=error)

    def _recover(self) -> None:
        try:
            self.store.recover()
        except BaseException as error:
            self._retry_at = time.monotonic() + self._retry_seconds
            self._retry_seconds = min(2 * self._retry_seconds, _LONGEST_RETRY_SECONDS)
            with contextlib.suppress(Exception):
                logger.warning("the state cannot be rebuilt yet: %r", error)
            return
        self._failed, self._retry_seconds = "", _FIRST_RETRY_SECONDS
        self._recoveries += 1
        logger.warning("learning goes on from record %d", self._machine.sequence)

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
        except Exception as error:  # the log keeps itself in order
            self._refused = f"nothing was learned: {error!r}"
            logger.warning("%s", self._refused)
            raise StoppedError(self._refused) from error
        self._refused = ""
        return self._machine.apply(frame)

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
        except BaseException as error:
            for swap in waiting:
                swap.future.set_exception(StoppedError(f"the model in use is kept: {error!r}"))
            raise
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
        self._snapshot_at = time.monotonic()
        self.store.log.rotate()
        return self._machine.snapshot()

    def _maybe_snapshot(self) -> None:
        if self._snapshot_thread is not None and self._snapshot_thread.is_alive():
            return
        n_new = self._machine.sequence - self._snapshot_sequence
        waited = time.monotonic() - self._snapshot_at
        many = n_new >= self._snapshot_records * (1 + self._snapshots_in_vain)
        due = many or waited >= self._snapshot_seconds
        if not due or self._failed or not (n_new or not self._is_published):
            return
        try:
            snapshot = self._take_snapshot()
            self._snapshot_thread = threading.Thread(
                target=self._write_beside, args=(snapshot,), name="snapshot", daemon=True
            )
            self._snapshot_thread.start()
        except Exception as error:  # too little memory, or no further thread
            self._note_no_snapshot(error)

    def _write_beside(self, snapshot: Snapshot) -> None:
        stand_back()  # behind the writer as well, whose priority this thread has inherited
        self._write_snapshot(snapshot)

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        try:
            self.store.write_snapshot(snapshot)
        except Exception as error:
            self._note_no_snapshot(error)
        else:
            self._snapshot_sequence, self._snapshots_in_vain = snapshot.sequence, 0
        if self._publishes:
            self._publish(snapshot)

    def _note_no_snapshot(self, error: Exception) -> None:
        self._snapshots_failed += 1
        self._snapshots_in_vain += 1
        logger.warning("a snapshot could not be written; the log keeps its records: %s", error)

    def _publish(self, snapshot: Snapshot) -> None:
        try:
            self.store.publish(snapshot)
            self._is_published = True
        except Exception as error:
            self._is_published = False
            logger.warning("readers keep the model that they have; the new one could not be written: %s", error)
