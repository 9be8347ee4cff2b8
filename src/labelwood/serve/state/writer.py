"""The one writer: takes records from a queue, makes them durable together, applies them, and answers.

A record is answered after its frame is on disk and after readers can see what it changed. Whoever gets no answer may
send it again with the same key; it counts once.

The writer's thread stands back behind the one that answers requests, so that on a busy core a suggestion is not held
up by what is learned beside it. When records have had to wait for long, a second thread of full priority takes over
until they no longer do, while the first one waits: under any load learning gets its share.
"""

from __future__ import annotations

import queue
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from labelwood.errors import LabelwoodError
from labelwood.run_context import logger
from labelwood.serve.os_tuning import stand_back
from labelwood.serve.state.log import LogRefusedError, Record
from labelwood.serve.state.model_views import LiveView, copy_of, from_saved, packed_for_reading
from labelwood.serve.state.state_machine import Answer
from labelwood.serve.state.store import Captured, Store, capture
from labelwood.storage.model_directory import write_model

_GROUP = 256


class QueueFullError(LabelwoodError):
    """Too much is waiting to be learned."""


class KeyReusedError(LabelwoodError):
    """An idempotency key came again with other contents."""


class StoppedError(LabelwoodError):
    """The writer takes nothing more: it is shutting down, or has failed."""


@dataclass(frozen=True)
class Learned:
    """The answer to a record, with its number, and whether it had been done before."""

    answer: Answer
    replayed: bool = False


@dataclass(frozen=True)
class _Waiting:
    record: Record
    future: Future[Learned] = field(default_factory=Future)
    since: float = field(default_factory=time.monotonic)


class Learner:
    """Owns the store and the live view, from one thread at a time."""

    def __init__(
        self,
        store: Store,
        *,
        n_jobs: int = 1,
        queue_length: int = 1000,
        snapshot_seconds: float = 60.0,
        snapshot_records: int = 10_000,
        patience_seconds: float = 0.25,
        publish: bool = False,
    ) -> None:
        self.store, self._n_jobs = store, n_jobs
        self.view = LiveView(store.replica.model, copy_of(store.replica.model), n_jobs=n_jobs)
        self.failed = ""
        self.refused = ""
        self.snapshots_failed = 0
        self._queue: queue.Queue[_Waiting | Callable[[], None] | None] = queue.Queue(queue_length)
        self._snapshot_seconds, self._snapshot_records = snapshot_seconds, snapshot_records
        self._patience_seconds, self._publish = patience_seconds, publish
        self._snapshot_at, self._snapshot_sequence = time.monotonic(), store.replica.sequence
        self._snapshot: threading.Thread | None = None
        self._is_late = False
        self._stopping = False
        if publish:
            self._publish_view(capture(store.replica))
        self._overdue = ThreadPoolExecutor(1, "learn-overdue")
        # A thread takes over the priority of the one that starts it, so it is started here, with nothing to do.
        self._overdue.submit(int)
        self._thread = threading.Thread(target=self._work, name="learn", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Records in the queue."""
        return self._queue.qsize()

    def submit(self, record: Record) -> Future[Learned]:
        """Hand a record to the writer."""
        waiting = _Waiting(record)
        self._put(waiting)
        return waiting.future

    def swap(self, model: Path) -> Future[Learned]:
        """Hot swap: from the next record on, the service works with another model."""
        future: Future[Learned] = Future()

        def work() -> None:
            try:
                record = self.store.adopt(model)
                self._apply([_Waiting(record, future)])
            except (LabelwoodError, OSError) as error:
                logger.warning("the model in use is kept: %s", error)
                future.set_exception(StoppedError(str(error)))

        self._put(work)
        return future

    def close(self, *, snapshot: bool = True) -> None:
        """Learn what is waiting, write a last snapshot, close the store."""
        if not self._stopping:
            self._stopping = True
            self._queue.put(None)
        self._thread.join()
        self._overdue.shutdown()
        if self._snapshot is not None:
            self._snapshot.join()
        if snapshot and not self.failed and self.store.replica.sequence > self._snapshot_sequence:
            self._write_snapshot(self._capture())
        self.store.close()

    def _put(self, item: _Waiting | Callable[[], None]) -> None:
        if self._stopping or self.failed:
            raise StoppedError(self.failed or "the service is shutting down")
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            raise QueueFullError("too many examples are waiting to be learned; try again") from None

    def _work(self) -> None:
        stand_back()
        going = True
        while going:
            going = self._overdue.submit(self._hurry).result() if self._is_late else self._take_up()

    def _hurry(self) -> bool:
        going = True
        while going and self._is_late:
            going = self._take_up()
        return going

    def _take_up(self) -> bool:
        """Do what is next, and note whether it had to wait for long; False if it was the last."""
        self._is_late = False
        try:
            item = self._queue.get(timeout=1.0)
        except queue.Empty:
            self._maybe_snapshot()
            return True
        group: list[_Waiting] = []
        while isinstance(item, _Waiting):
            if item.future.set_running_or_notify_cancel():  # else nobody waits for it any more
                group.append(item)
            if len(group) >= _GROUP or self._queue.empty():
                break
            item = self._queue.get()
        if group:
            self._is_late = time.monotonic() - group[0].since > self._patience_seconds
            self._apply(group)
        if item is None:
            return False
        if not isinstance(item, _Waiting):
            item()
        self._maybe_snapshot()
        return True

    def _apply(self, group: list[_Waiting]) -> None:
        fresh, repeated = self._sort_out(group)
        if self.failed:
            for waiting in fresh:
                waiting.future.set_exception(StoppedError(self.failed))
            fresh = []
        if fresh:
            self._log_and_learn(fresh)
        for waiting in repeated:
            self._answer_again(waiting)

    def _sort_out(self, group: list[_Waiting]) -> tuple[list[_Waiting], list[_Waiting]]:
        """What is new, and what has a key that was seen: before, or earlier in the group."""
        keys: set[str] = set()
        fresh: list[_Waiting] = []
        repeated: list[_Waiting] = []
        for waiting in group:
            key = waiting.record.get("key")
            seen = key is not None and (key in keys or key in self.store.replica.keys)
            (repeated if seen else fresh).append(waiting)
            if key is not None:
                keys.add(key)
        return fresh, repeated

    def _answer_again(self, waiting: _Waiting) -> None:
        digest, answer = self.store.replica.keys.get(waiting.record["key"], (None, None))
        if answer is None:  # the first with this key could not be logged
            waiting.future.set_exception(StoppedError(self.failed or self.refused))
        elif digest != waiting.record["digest"]:
            waiting.future.set_exception(
                KeyReusedError("this Idempotency-Key came before, with other contents")
            )
        else:
            waiting.future.set_result(Learned(answer, replayed=True))

    def _log_and_learn(self, fresh: list[_Waiting]) -> None:
        records = [waiting.record for waiting in fresh]
        try:
            frame = self.store.log.append(records)
        except LogRefusedError as refusal:
            self.refused = str(refusal)
            logger.warning("%s", refusal)
            for waiting in fresh:
                waiting.future.set_exception(refusal)
            return
        self.refused = ""
        replica = self.store.replica
        try:
            if records[0]["kind"] == "model":
                answers = replica.apply(frame, self.store.load_model)
                self.view.replace(replica.model, copy_of(replica.model), n_jobs=self._n_jobs)
            else:
                answers = self.view.teach(lambda model: replica.apply_to(model, frame))
        except Exception as error:
            # The frame is on disk: the next start applies it. Until then nobody may learn on top of a doubtful model.
            self.failed = f"learning has stopped until the next start: {error!r}"
            logger.exception("learning has stopped")
            for waiting in fresh:
                waiting.future.set_exception(StoppedError(self.failed))
            return
        for waiting, answer in zip(fresh, answers, strict=True):
            waiting.future.set_result(Learned(answer))
        self.view.catch_up()

    def _capture(self) -> Captured:
        self.store.log.rotate()
        self._snapshot_at, self._snapshot_sequence = time.monotonic(), self.store.replica.sequence
        return capture(self.store.replica)

    def _maybe_snapshot(self) -> None:
        if self._snapshot is not None and self._snapshot.is_alive():
            return
        n_new = self.store.replica.sequence - self._snapshot_sequence
        waited = time.monotonic() - self._snapshot_at
        due = n_new >= self._snapshot_records or waited >= self._snapshot_seconds
        if n_new and due and not self.failed:
            captured = self._capture()
            self._snapshot = threading.Thread(
                target=self._write_aside, args=(captured,), name="snapshot", daemon=True
            )
            self._snapshot.start()

    def _write_aside(self, captured: Captured) -> None:
        stand_back()  # once more than the writer, who started this thread
        self._write_snapshot(captured)

    def _write_snapshot(self, captured: Captured) -> None:
        try:
            self.store.write_snapshot(captured)
            if self._publish:
                self._publish_view(captured)
        except (OSError, LabelwoodError) as error:
            self.snapshots_failed += 1
            logger.warning("a snapshot could not be written, the log goes on: %s", error)

    def _publish_view(self, captured: Captured) -> None:
        """Pack a snapshot for the other processes and point ``view`` at it."""
        views, link = self.store.folder / "views", self.store.folder / "view"
        target = views / f"{captured.sequence:020d}"
        packed = packed_for_reading(from_saved(captured.manifest, captured.arrays))
        write_model(target, *packed.to_saved())
        fresh = link.with_name(".view")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(Path(views.name) / target.name)
        fresh.replace(link)
        for path in views.iterdir():
            if path != target:
                shutil.rmtree(path, ignore_errors=True)
