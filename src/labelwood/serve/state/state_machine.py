"""The state of a learning service: the current model, and the counters that belong to it.

The state is the fold of the log. :class:`StateMachine` applies frames of records in their order, so that a replay of
the same log gives the same state, bit for bit. Nothing else changes the model or replaces it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.methods.online.learner import learner_of
from labelwood.methods.registry import load, model_from_saved
from labelwood.methods.text_classifier import Model
from labelwood.serve.state.drift import Drift
from labelwood.serve.state.frames import Frame, Record
from labelwood.serve.state.records import SPARE_IN_VERSION_1, SPARE_LABEL_NUMBERS, Answer, Step, apply_records
from labelwood.serve.state.refits import REFITS, batch_of

DRIFT_WINDOW = 1000
REMEMBERED_KEYS = 100_000


@dataclass(frozen=True)
class Snapshot:
    """The state at one record, in memory: counters as JSON values, the model as manifest and arrays."""

    counters: dict[str, Any]
    manifest: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]

    @property
    def sequence(self) -> int:
        """Number of the last record in the snapshot."""
        return int(self.counters["sequence"])


@dataclass
class _Copy:
    model: Model
    readers: int = 0


class StateMachine:
    """Owns the current model: applies records to it, replaces it, lends it to readers.

    One thread applies frames. From :meth:`share` on there are two copies of the model. Readers use the front copy while
    the back copy learns a frame. Then the two change places, and :meth:`catch_up` teaches the other copy the same. So
    readers never wait for learning and never see half of a frame.
    """

    def __init__(
        self, model: Model, models: Path, *, sequence: int, time: int, drift_window: int = DRIFT_WINDOW
    ) -> None:
        self.sequence, self.time, self.learned = sequence, time, 0
        self.keys: OrderedDict[str, tuple[str, Answer]] = OrderedDict()
        self.drift = Drift(drift_window)
        self.skipped = 0  # records that cannot be applied
        self.fingerprint: str | None = None  # of the model directory that the current model began from
        self.reload_error = ""  # why the newest model of that directory is not in use
        self.refit: int | None = None  # the record that began the refit under way
        self._models, self._refits = models, models.with_name(REFITS)
        self._front = _Copy(_deferring(model))
        self._back: _Copy | None = None
        self._n_jobs, self._is_shared = 1, False
        self._owed: list[Step] = []
        self._changed = threading.Condition()

    @classmethod
    def from_counters(cls, counters: dict[str, Any], model: Model, models: Path, *, drift_window: int) -> StateMachine:
        """The state of a snapshot."""
        machine = cls(model, models, sequence=counters["sequence"], time=counters["time"])
        machine.learned = counters["learned"]
        machine.keys.update((key, (digest, answer)) for key, digest, answer in counters["keys"])
        machine.drift = Drift.restore(counters["drift"], drift_window)
        machine.fingerprint = counters.get("fingerprint")  # states of earlier versions have none
        machine.refit = counters.get("refit")
        return machine

    def snapshot(self) -> Snapshot:
        """A copy of the state; the state may change afterwards."""
        counters = {
            "sequence": self.sequence,
            "time": self.time,
            "learned": self.learned,
            "keys": [[key, digest, answer] for key, (digest, answer) in self.keys.items()],
            "drift": self.drift.state(),
        }
        if self.fingerprint is not None:
            counters["fingerprint"] = self.fingerprint
        if self.refit is not None:
            counters["refit"] = self.refit
        return Snapshot(counters, *self.model.to_saved())

    @property
    def model(self) -> Model:
        """The current model, for the thread that applies frames; other threads use :meth:`read`."""
        return self._front.model

    @contextlib.contextmanager
    def read(self) -> Iterator[Model]:
        """Lend the current model. It does not change until the block ends."""
        with self._changed:
            copy = self._front
            copy.readers += 1
        try:
            yield copy.model
        finally:
            with self._changed:
                copy.readers -= 1
                if not copy.readers:
                    self._changed.notify_all()

    def share(self, *, n_jobs: int) -> None:
        """Make the second copy, so that :meth:`read` may be used while frames are applied."""
        self._n_jobs, self._is_shared = n_jobs, True
        self._put_copies(self.model)

    def apply(self, frame: Frame, *, skipped: Mapping[int, str] | None = None) -> list[Answer]:
        """Apply a frame and show the result to readers; return the answer to each record.

        If this raises, the back copy may hold half of the frame; see :meth:`let_go`. Records whose numbers are in
        ``skipped`` are refused for the reason given there.
        """
        self.catch_up()
        if frame.records[0]["kind"] == "model":  # always alone in its frame
            answers = [self._replace_model(frame.records[0])]
        elif frame.records[0]["kind"] == "refit":  # as above
            answers = [self._change_refit(frame.records[0], frame.sequence)]
        else:
            answers = self._learn(frame, skipped or {})
        for offset, (record, answer) in enumerate(zip(frame.records, answers, strict=True)):
            answer["sequence"] = frame.sequence + offset
            self.learned += answer.get("learned", 0)
            if record.get("key") is not None:
                self._remember(record["key"], record["digest"], answer)
        self.sequence, self.time = frame.last, frame.time
        return answers

    def catch_up(self) -> None:
        """Teach the back copy what the front copy has learned, as soon as the last reader has left the back copy."""
        back = self._back
        if back is None or not self._owed:
            return
        with self._changed:
            self._changed.wait_for(lambda: not back.readers)
        for step in self._owed:
            step(learner_of(back.model, owner="serve"))
        self._owed = []

    def let_go(self) -> None:
        """Drop the back copy, which may hold half of a frame. Readers keep the front copy; nothing can be applied."""
        self._back, self._owed = None, []

    def take_over(self, other: StateMachine) -> None:
        """Continue from another state; readers of the previous model finish with it."""
        self._owed = []
        self._put_copies(other.model)
        self.sequence, self.time, self.learned = other.sequence, other.time, other.learned
        self.keys, self.drift, self.skipped = other.keys, other.drift, other.skipped
        self.fingerprint, self.refit = other.fingerprint, other.refit

    def _learn(self, frame: Frame, skipped: Mapping[int, str]) -> list[Answer]:
        numbered = dict(enumerate(frame.records, frame.sequence))
        kept = [number for number in numbered if number not in skipped]
        spare = SPARE_LABEL_NUMBERS if frame.version > 1 else SPARE_IN_VERSION_1
        model = self.model if self._back is None else self._back.model
        found, steps = apply_records(model, [numbered[number] for number in kept], self.drift, spare=spare)
        self._change_places(steps)
        answers = dict(zip(kept, found, strict=True))
        return [answers.get(number) or {"refused": skipped[number]} for number in numbered]

    def _change_places(self, steps: list[Step]) -> None:
        """Show readers what the back copy has learned; the other copy is owed the steps."""
        if self._back is not None:
            with self._changed:
                self._front, self._back = self._back, self._front
            self._owed = steps

    def _change_refit(self, record: Record, sequence: int) -> Answer:
        """Begin or end a refit of the current model; every replay judges the same model in the same way."""
        model = self.model if self._back is None else self._back.model
        learner, action = learner_of(model, owner="serve"), record["action"]
        try:
            if action == "begin":
                step: Step = lambda other: other.begin_refit()  # noqa: E731
            elif action == "drop":
                step = lambda other: other.drop_refit(record["reason"])  # noqa: E731
            else:
                job = learner.refit_under_way
                if job is None or self.refit is None:
                    raise LabelwoodError("serve: no refit is under way")
                folder = self._refits / f"{self.refit:020d}"
                batch = batch_of(folder, record["fingerprint"], job, learner.n_labels_)
                step = lambda other: other.end_refit(batch)  # noqa: E731
            step(learner)
        except LabelwoodError as error:
            return {"refused": str(error)}
        self.refit = sequence if action == "begin" else None
        self._change_places([step])
        return {"refit": action}

    def _replace_model(self, record: Record) -> Answer:
        name = record["model"]
        self._put_copies(load(self._models / name, verify=True))
        self.drift, self.refit = Drift(self.drift.window), None
        self.fingerprint = record.get("fingerprint")
        return {"model": name}

    def _put_copies(self, model: Model) -> None:
        """Make a model current, in two copies if it is shared; readers of the previous one finish with it."""
        if not self._is_shared:
            self._front = _Copy(_deferring(model))
            return
        copies = _deferring(model), _deferring(model_from_saved(*model.to_saved(), where="copy"))
        for copy in copies:
            copy.set_threads(self._n_jobs)
        with self._changed:
            self._front, self._back = map(_Copy, copies)

    def _remember(self, key: str, digest: str, answer: Answer) -> None:
        self.keys[key] = (digest, answer)
        while len(self.keys) > REMEMBERED_KEYS:
            self.keys.popitem(last=False)


def _deferring(model: Model) -> Model:
    """The model; a record of the log says when it trains again."""
    learner_of(model, owner="serve").defers_refits = True
    return model
