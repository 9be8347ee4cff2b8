"""Refits of a service: the batch model of a living model, trained beside the service.

A refit is three kinds of records, each alone in its frame:

    {"kind": "refit", "action": "begin"}               the rows of the refit are those of the model at this record
    {"kind": "refit", "action": "end", "fingerprint"}  judge the trained model, and take it up if it is no worse
    {"kind": "refit", "action": "drop", "reason"}      the training failed

    STATE/refits/<record>/job/    the rows of the refit that began with that record, for another process
    STATE/refits/<record>/model/  the trained model

The trained model is a function of the rows, so a replay that does not find it trains it again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from labelwood.errors import FormatError, LabelwoodError
from labelwood.methods.online.learner import StreamLearner, learner_of
from labelwood.methods.online.living_batch import Batch, RefitResult, TrainingJob, train_batch
from labelwood.methods.online.row_store import Rows
from labelwood.run_context import logger
from labelwood.serve.state.frames import Record
from labelwood.serve.state.priority import stand_back
from labelwood.serve.state.records import Answer
from labelwood.sparse import CSR
from labelwood.storage.model_directory import fingerprint, read_model, write_model

if TYPE_CHECKING:
    from labelwood.serve.state.state_machine import StateMachine
    from labelwood.serve.state.store import Store

REFITS = "refits"
JOB, MODEL = "job", "model"
PROCESS_ROWS = 2000  # a refit of fewer rows takes less time than the start of a process
_RETRY_SECONDS = 5.0  # after the log has refused a record
_ENTRIES = ("positions", "x_indptr", "x_indices", "x_data", "y_indptr", "y_indices")


def write_job(path: Path, job: TrainingJob) -> None:
    """Write a job for another process."""
    X, Y = job.rows.X, job.rows.Y
    parts = (job.rows.positions, X.indptr, X.indices, X.data, Y.indptr, Y.indices)
    facts = {"parameters": dict(job.parameters), "seed": job.seed, "until": job.until}
    write_model(path, {**facts, "n_features": X.n_cols, "n_labels": Y.n_cols}, dict(zip(_ENTRIES, parts, strict=True)))


def read_job(path: Path) -> TrainingJob:
    """The inverse of :func:`write_job`."""
    facts, arrays = read_model(path)
    positions, x_indptr, x_indices, x_data, y_indptr, y_indices = (arrays[name] for name in _ENTRIES)
    Y = CSR(y_indptr, y_indices, np.ones(len(y_indices), np.float32), facts["n_labels"])
    rows = Rows(positions, CSR(x_indptr, x_indices, x_data, facts["n_features"]), Y)
    return TrainingJob(rows, facts["parameters"], facts["seed"], facts["until"])


def write_batch(path: Path, batch: Batch) -> None:
    """Write a trained batch model."""
    facts, arrays = batch.saved()
    write_model(path, {"batch": facts}, arrays)


def batch_of(folder: Path, mark: str, job: TrainingJob, n_labels: int) -> Batch:
    """The batch model of a refit: the one that was written if it bears the mark, else it is trained again."""
    try:
        if fingerprint(folder / MODEL) == mark:
            facts, arrays = read_model(folder / MODEL, verify=True)
            return Batch.restore(facts["batch"], arrays, n_labels)
    except (FormatError, OSError, KeyError):
        pass
    logger.info("the batch model of %s is trained again", folder)
    return train_batch(job, n_jobs=1)


@dataclass(frozen=True)
class RefitOptions:
    """When a service trains a living model again, and how.

    ``when``: if it is due by the model's own parameters, or only if it is asked for. ``seconds``: besides, if this much
    time has passed and something was learned. Trainings of fewer than ``process_rows`` rows run in a thread.
    """

    when: Literal["due", "asked"] = "due"
    seconds: float | None = None
    n_jobs: int = 1
    process_rows: int = PROCESS_ROWS


class Trainer:
    """Trains the batch model of one refit at a time, in a process of low priority, or in a thread if it is small."""

    def __init__(self, folder: Path, options: RefitOptions, wake: Callable[[], None]) -> None:
        self._folder, self._n_jobs, self._process_rows = folder, options.n_jobs, options.process_rows
        self._wake = wake  # called when a training has ended
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self.name: str | None = None  # of the refit that was started last
        self._error, self._has_ended = "", threading.Event()

    def start(self, name: str, job: TrainingJob) -> None:
        """Begin a training; the one before must have ended."""
        self.name, self._error = name, ""
        self._has_ended.clear()
        self._thread = threading.Thread(target=self._train, args=(self._folder / name, job), name="refit", daemon=True)
        self._thread.start()

    def outcome(self) -> dict[str, Any] | None:
        """The record that ends the refit; None if the training has not ended."""
        if self.name is None or not self._has_ended.is_set():
            return None
        if not self._error:
            try:
                return {"kind": "refit", "action": "end", "fingerprint": fingerprint(self._folder / self.name / MODEL)}
            except (LabelwoodError, OSError) as error:
                self._error = str(error)
        return {"kind": "refit", "action": "drop", "reason": self._error}

    def stop(self) -> None:
        """End the training under way; its result is not used."""
        self._stopping = True
        if self._process is not None:
            self._process.kill()
        if self._thread is not None:
            self._thread.join()
        self._thread = self.name = self._process = None
        self._stopping = False

    def _train(self, folder: Path, job: TrainingJob) -> None:
        for _ in range(3):
            stand_back()
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            if job.rows.X.n_rows < self._process_rows:
                write_batch(folder / MODEL, train_batch(job, n_jobs=self._n_jobs))
                return
            write_job(folder / JOB, job)
            self._train_beside(folder)
        except Exception as error:
            self._error = f"{type(error).__name__}: {error}"
        finally:
            self._has_ended.set()
            self._wake()

    def _train_beside(self, folder: Path) -> None:
        words = ["-m", "labelwood.serve.state.refit_process", str(folder), str(self._n_jobs), str(os.getpid())]
        self._process = subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        if self._stopping:
            self._process.kill()
        _, said = self._process.communicate()
        if self._process.returncode:
            last = said.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {self._process.returncode}"]
            self._error = f"the training failed: {last[0]}"
        shutil.rmtree(folder / JOB, ignore_errors=True)


class Refits:
    """Lets refits begin and end, by records of the log. The writer calls :meth:`step` between frames."""

    def __init__(
        self, store: Store, options: RefitOptions, log: Callable[[list[Record]], list[Answer]], wake: Callable[[], None]
    ) -> None:
        self._store, self._options, self._log = store, options, log
        self._trainer = Trainer(store.folder / REFITS, options, wake)
        self._asked: list[Future[RefitResult]] = []
        self._waiting: list[Future[RefitResult]] = []  # for the refit under way
        self._begun_at, self._retry_at, self._learned_before = time.monotonic(), 0.0, store.machine.learned
        self.taken = self.not_taken = 0

    def ask(self) -> Future[RefitResult]:
        """Ask for a refit; the next one that begins counts."""
        asked: Future[RefitResult] = Future()
        self._asked.append(asked)
        self._retry_at = 0.0
        return asked

    def step(self) -> bool:
        """Begin a refit, or end one whose training has ended; return True if a new model is in use."""
        try:
            return time.monotonic() >= self._retry_at and self._step(self._store.machine)
        except LabelwoodError as error:  # the log takes no records at the moment
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            self._answer(self._asked, error)
            return False

    def gauges(self) -> dict[str, float]:
        """Age, rows and quality of the batch model."""
        learner = learner_of(self._store.machine.model, owner="serve")
        last, batch = learner.last_refit_, learner.batch_rows_and_age
        return {
            "refits_taken": self.taken,
            "refits_not_taken": self.not_taken,
            "refit_running": float(self._store.machine.refit is not None),
            "batch_rows": batch[0],
            "batch_age_rows": batch[1],
            "refit_quality_before": 0.0 if last is None else last.before,
            "refit_quality_after": 0.0 if last is None else last.after,
        }

    def close(self) -> None:
        """End the training under way; the next start of the service begins it again."""
        self._trainer.stop()
        self._answer(self._asked + self._waiting, LabelwoodError("the service is shutting down"))

    def _step(self, machine: StateMachine) -> bool:
        learner = learner_of(machine.model, owner="serve")
        if machine.refit is None:
            if self._trainer.name is not None:  # another model is in use since
                self._trainer.stop()
                self._answer(self._waiting, LabelwoodError("the model was replaced"))
            if self._asked and not learner.can_refit:
                self._answer(self._asked, LabelwoodError(f"{learner.method_name} has no batch model to train again"))
            if not self._is_wanted(machine, learner):
                return False
            (answer,) = self._log([{"kind": "refit", "action": "begin"}])
            if "refused" in answer:
                self._answer(self._asked, LabelwoodError(answer["refused"]))
                return False
            self._waiting, self._asked = self._asked, []
            self._begun_at, self._learned_before = time.monotonic(), machine.learned
        name = f"{machine.refit:020d}"
        if self._trainer.name != name:
            self._trainer.stop()
            job = learner_of(machine.model, owner="serve").refit_under_way
            assert job is not None
            self._trainer.start(name, job)
            return False
        record = self._trainer.outcome()
        return record is not None and self._end(machine, record)

    def _is_wanted(self, machine: StateMachine, learner: StreamLearner) -> bool:
        if self._asked:
            return True
        seconds = self._options.seconds
        waited = seconds is not None and time.monotonic() - self._begun_at >= seconds
        if waited and machine.learned > self._learned_before and learner.can_refit:
            return True
        return self._options.when == "due" and bool(learner.refit_due)

    def _end(self, machine: StateMachine, record: Record) -> bool:
        self._log([record])
        self._trainer.stop()
        result = learner_of(machine.model, owner="serve").last_refit_
        assert result is not None
        if result.taken:
            self.taken += 1
            logger.info("refit %d is taken up: quality %.4f, before %.4f", result.number, result.after, result.before)
        else:
            self.not_taken += 1
            logger.warning("refit %d is not taken up: %s", result.number, result.reason)
        for asked in self._waiting:
            asked.set_result(result)
        self._waiting = []
        return result.taken

    @staticmethod
    def _answer(asked: list[Future[RefitResult]], error: Exception) -> None:
        for one in asked:
            one.set_exception(error)
        asked.clear()
