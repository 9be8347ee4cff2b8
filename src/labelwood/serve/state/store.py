"""A state directory: the log, the snapshots, and the models that the log names.

    STATE/lock                    locked by the one process that writes
    STATE/log/<first record>.log  the log, see ``log``
    STATE/models/<record>/        the model of a record of kind "model"
    STATE/snapshots/<record>/     model/ and state.json: the state after that record
    STATE/views/, STATE/view      the newest snapshot, packed for reading (with several workers)

Opening a state directory loads the newest sound snapshot and replays the log behind it. A new snapshot removes older
snapshots and the log before them, except for the last ``keep`` snapshots: if the newest one is damaged, the replay is
longer and nothing is lost.

A state belongs to the model directory that it began from, by the fingerprint in both. If the directory holds another
model when the state is opened, that model becomes the current one, by a record of the log.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labelwood.errors import FormatError, LabelwoodError
from labelwood.methods.online.learner import learner_of
from labelwood.methods.registry import load, model_from_saved
from labelwood.run_context import logger
from labelwood.serve.state.log import Clock, Frame, LogWriter, Record, read_log, wall_clock
from labelwood.serve.state.state_machine import DRIFT_WINDOW, Snapshot, StateMachine
from labelwood.storage.atomic import atomic_directory, remove_leftovers
from labelwood.storage.model_directory import fingerprint, write_model, write_model_files

_LOG, _MODELS, _SNAPSHOTS, _VIEWS, VIEW = "log", "models", "snapshots", "views", "view"
_STATE, _MODEL = "state.json", "model"
KEPT_SNAPSHOTS = 2


class Store:
    """A state directory open for writing."""

    def __init__(
        self,
        folder: Path,
        *,
        model: Path | None = None,
        keep: int = KEPT_SNAPSHOTS,
        drift_window: int = DRIFT_WINDOW,
        clock: Clock = wall_clock,
    ) -> None:
        self.folder, self._keep = folder, keep
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(folder / "lock")
        self.damaged: list[str] = []
        for name in (_SNAPSHOTS, _MODELS):
            (folder / name).mkdir(exist_ok=True)
            remove_leftovers(folder / name)
        self.log = LogWriter(folder / _LOG, clock=clock)
        if self.log.torn is not None:
            logger.warning("a crash left the log unfinished: %s", self.log.torn)
        if self.log.next_sequence == 1 and not snapshots(folder):
            if model is None:
                raise LabelwoodError(f"{folder}: the state is empty and there is no model to start from")
            self.log.append([self.adopt(model)])
        self.machine = restore(folder, drift_window=drift_window, on_damage=self._set_aside)
        if self.machine.sequence + 1 != self.log.next_sequence:
            raise FormatError(
                f"{folder}: the snapshots reach record {self.machine.sequence}, but the next record of the log is "
                f"{self.log.next_sequence}"
            )
        self.log.last_time = max(self.log.last_time, self.machine.time)
        if model is not None:
            self._compare(model)

    def holds(self, path: Path) -> bool:
        """True if the current model began from the model at ``path``."""
        return self.machine.fingerprint == fingerprint(path)

    def adopt(self, path: Path) -> Record:
        """Copy a model into the state directory; return the record that makes it the current model."""
        name, mark = f"{self.log.next_sequence:020d}", fingerprint(path)
        model = load(path, verify=True)
        learner_of(model, owner="serve")
        if fingerprint(path) != mark:
            raise LabelwoodError(f"{path}: the model was replaced while it was read; try again")
        write_model(self.folder / _MODELS / name, *model.to_saved())
        return {"kind": "model", "model": name, "fingerprint": mark}

    def _compare(self, path: Path) -> None:
        """Make the model at ``path`` the current one if the state began from another."""
        if self.machine.fingerprint is None:  # a state of an earlier version does not say
            self.machine.fingerprint = fingerprint(path)
        if self.holds(path):
            return
        learned = self.machine.learned
        try:
            self.machine.apply(self.log.append([self.adopt(path)]))
        except (LabelwoodError, OSError) as error:
            self.machine.reload_error = str(error)
            logger.warning("the model in use is kept, although %s holds another: %s", path, error)
            return
        logger.warning(
            "%s holds another model than the one that %s began from: the new model is served. The state has learned %s "
            "so far; the log keeps what was learned, the new model does not contain it",
            path, self.folder, "1 example" if learned == 1 else f"{learned} examples",
        )  # fmt: skip

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Write a snapshot, then remove what the kept snapshots do not need."""
        target = self.folder / _SNAPSHOTS / f"{snapshot.sequence:020d}"
        if not target.exists():
            checksum = hashlib.sha256(_canonical(snapshot.counters)).hexdigest()
            whole = {"state": snapshot.counters, "sha256": checksum}
            with atomic_directory(target) as temporary:
                (temporary / _MODEL).mkdir()
                write_model_files(temporary / _MODEL, snapshot.manifest, snapshot.arrays)
                (temporary / _STATE).write_bytes(json.dumps(whole).encode())
        found = [int(path.name) for path in snapshots(self.folder)]
        if len(found) >= self._keep:  # with fewer snapshots, the whole log is kept as well
            self._remove_before(found[-self._keep])

    def publish(self, snapshot: Snapshot) -> None:
        """Freeze the model of a snapshot for the processes that only read, and point ``view`` at it."""
        views, link = self.folder / _VIEWS, self.folder / VIEW
        target = views / f"{snapshot.sequence:020d}"
        model = model_from_saved(snapshot.manifest, snapshot.arrays, where="snapshot")
        frozen = model.with_classifier(learner_of(model, owner="serve").freeze())
        write_model(target, *frozen.to_saved())
        fresh = link.with_name(".view")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(Path(_VIEWS) / target.name)
        fresh.replace(link)
        for path in views.iterdir():
            if path != target:
                shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Close the log and release the lock."""
        self.log.close()
        os.close(self._lock)

    def _remove_before(self, oldest: int) -> None:
        for path in snapshots(self.folder):
            if int(path.name) < oldest:
                shutil.rmtree(path, ignore_errors=True)
        self.log.drop_before(oldest + 1)
        for path in (self.folder / _MODELS).iterdir():
            if path.name.isdigit() and int(path.name) <= oldest:
                shutil.rmtree(path, ignore_errors=True)

    def _set_aside(self, path: Path, reason: str) -> None:
        aside = path.with_suffix(".damaged")
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)
        self.damaged.append(reason)


def restore(
    folder: Path,
    *,
    at: int | None = None,
    drift_window: int = DRIFT_WINDOW,
    on_damage: Callable[[Path, str], None] | None = None,
) -> StateMachine:
    """The newest state of a directory, or the state at a time (microseconds since 1970).

    Nothing is written, and a service may write to the directory meanwhile. ``on_damage`` is called with every damaged
    snapshot that is skipped, and the reason.
    """
    machine = _newest_snapshot(folder, at, drift_window, on_damage)
    for frame in read_log(folder / _LOG, after=0 if machine is None else machine.sequence):
        if at is not None and frame.time > at:
            break
        if machine is None:
            machine = _first_state(folder, frame, drift_window)
        elif frame.sequence == machine.sequence + 1:
            machine.apply(frame)
        else:
            break
    if machine is None:
        when = "" if at is None else " at that time or before"
        raise FormatError(f"{folder}: there is no state{when} that could be read")
    return machine


def snapshots(folder: Path) -> list[Path]:
    """The snapshots of a state directory, oldest first."""
    found = (folder / _SNAPSHOTS).glob("*") if (folder / _SNAPSHOTS).is_dir() else ()
    return sorted(path for path in found if path.name.isdigit())


def _newest_snapshot(
    folder: Path, at: int | None, drift_window: int, on_damage: Callable[[Path, str], None] | None
) -> StateMachine | None:
    for path in reversed(snapshots(folder)):
        try:
            counters = _read_counters(path)
            if at is None or counters["time"] <= at:
                model = load(path / _MODEL, verify=True)
                return StateMachine.from_counters(counters, model, folder / _MODELS, drift_window=drift_window)
        except (FormatError, OSError) as error:
            logger.warning("a damaged snapshot is skipped: %s", error)
            if on_damage is not None:
                on_damage(path, str(error))
    return None


def _first_state(folder: Path, frame: Frame, drift_window: int) -> StateMachine:
    if frame.sequence != 1:
        raise FormatError(
            f"{folder}: the log begins with record {frame.sequence} and no sound snapshot comes before it"
        )
    models = folder / _MODELS
    model = load(models / frame.records[0]["model"], verify=True)
    machine = StateMachine(model, models, sequence=frame.last, time=frame.time, drift_window=drift_window)
    machine.fingerprint = frame.records[0].get("fingerprint")
    return machine


def _read_counters(path: Path) -> dict[str, Any]:
    try:
        whole = json.loads((path / _STATE).read_bytes())
        counters, checksum = whole["state"], whole["sha256"]
    except (ValueError, TypeError, KeyError):
        raise FormatError(f"{path / _STATE}: the file is damaged") from None
    if hashlib.sha256(_canonical(counters)).hexdigest() != checksum:
        raise FormatError(f"{path / _STATE}: its checksum does not match")
    return dict(counters)


def _canonical(counters: Any) -> bytes:
    return json.dumps(counters, sort_keys=True, separators=(",", ":")).encode()


def _lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise LabelwoodError(f"{path.parent}: another service is writing to this state") from None
    return descriptor
