"""A state directory: the log, the snapshots that fold it, and the models it started from.

    STATE/lock                    held by the one process that writes
    STATE/log/<first record>.log  the log, see ``wal``
    STATE/models/<record>/        the model that a record of the log starts from
    STATE/snapshots/<record>/     model/ and state.json: the fold of the log up to that record
    STATE/views/, STATE/view      the latest snapshot, packed for reading (with several workers)

Opening takes the newest snapshot that is sound and replays what the log has beyond it. A snapshot removes the log and
the snapshots behind the ones that are kept, so that a damaged newest snapshot costs a longer replay and nothing else.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from labelwood.errors import FormatError, LabelwoodError
from labelwood.methods import load
from labelwood.methods.online.learner import learner_of
from labelwood.methods.text_classifier import Model
from labelwood.run_context import logger
from labelwood.serve.state.drift import Drift
from labelwood.serve.state.log import Clock, Frame, LogWriter, Record, read_log, wall_clock
from labelwood.serve.state.state_machine import DRIFT_WINDOW, Answer, Replica
from labelwood.storage.atomic import atomic_directory, remove_leftovers
from labelwood.storage.model_directory import write_model, write_model_files

_LOG, _MODELS, _SNAPSHOTS = "log", "models", "snapshots"
_STATE, _MODEL = "state.json", "model"
KEPT_SNAPSHOTS = 2


@dataclass(frozen=True)
class Captured:
    """A replica at one moment, in memory: what a snapshot writes."""

    state: dict[str, Any]
    manifest: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]

    @property
    def sequence(self) -> int:
        """Number of the last record in it."""
        return int(self.state["sequence"])


def capture(replica: Replica) -> Captured:
    """Copy what a snapshot needs; the replica may go on changing afterwards."""
    state = {
        "sequence": replica.sequence,
        "time": replica.time,
        "learned": replica.learned,
        "keys": [[key, digest, answer] for key, (digest, answer) in replica.keys.items()],
        "drift": replica.drift.state(),
    }
    return Captured(state, *replica.model.to_saved())


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
        self.replica = restore(folder, drift_window=drift_window, on_damage=self._set_aside)
        if self.replica.sequence + 1 != self.log.next_sequence:
            raise FormatError(
                f"{folder}: the snapshots reach record {self.replica.sequence}, but the log goes on with "
                f"{self.log.next_sequence}"
            )
        self.log.last_time = max(self.log.last_time, self.replica.time)

    def adopt(self, path: Path) -> Record:
        """Copy a model into the state directory; the record that makes the service start from it."""
        name = f"{self.log.next_sequence:020d}"
        model = load(path, verify=True)
        learner_of(model, owner="serve")
        write_model(self.folder / _MODELS / name, *model.to_saved())
        return {"kind": "model", "model": name}

    def load_model(self, name: str) -> Model:
        """A model that a record names."""
        return load(self.folder / _MODELS / name, verify=True)

    def write_snapshot(self, captured: Captured) -> Path:
        """Write a snapshot, then remove what is behind the ones that are kept."""
        target = _write_snapshot(self.folder / _SNAPSHOTS, captured)
        found = [int(path.name) for path in snapshots(self.folder)]
        if len(found) >= self._keep:  # until then the beginning of the log is one more to fall back on
            self._forget_before(found[-self._keep])
        return target

    def _forget_before(self, oldest: int) -> None:
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

    def close(self) -> None:
        """Close the log and let others in."""
        self.log.close()
        os.close(self._lock)


def restore(
    folder: Path,
    *,
    at: int | None = None,
    drift_window: int = DRIFT_WINDOW,
    on_damage: Callable[[Path, str], None] | None = None,
) -> Replica:
    """The state of a directory, now or at a time (microseconds since 1970).

    Nothing is written, and a service may be writing to it; ``on_damage`` is told of snapshots that are damaged.
    """
    replica = None
    for path in reversed(snapshots(folder)):
        try:
            replica = _read_snapshot(path, drift_window, at)
        except (FormatError, OSError) as error:
            logger.warning("a snapshot is damaged and passed over: %s", error)
            if on_damage is not None:
                on_damage(path, str(error))
        if replica is not None:
            break
    base = 0 if replica is None else replica.sequence
    for frame in read_log(folder / _LOG, after=base):
        if at is not None and frame.time > at:
            break
        if replica is None:
            replica = _first(folder, frame, drift_window)
            continue
        if frame.sequence != replica.sequence + 1:
            break
        replica.apply(frame, lambda name: load(folder / _MODELS / name, verify=True))
    if replica is None:
        when = "" if at is None else " at that time or before"
        raise FormatError(f"{folder}: there is no state{when} that could be read")
    return replica


def _first(folder: Path, frame: Frame, drift_window: int) -> Replica:
    if frame.sequence != 1:
        raise FormatError(
            f"{folder}: the log begins with record {frame.sequence} and no sound snapshot comes before it"
        )
    model = load(folder / _MODELS / frame.records[0]["model"], verify=True)
    return Replica(model, frame.last, frame.time, drift=Drift(drift_window))


def snapshots(folder: Path) -> list[Path]:
    """The snapshots of a state directory, oldest first."""
    found = (folder / _SNAPSHOTS).glob("*") if (folder / _SNAPSHOTS).is_dir() else ()
    return sorted(path for path in found if path.name.isdigit())


def _read_state(path: Path) -> dict[str, Any]:
    try:
        whole = json.loads((path / _STATE).read_bytes())
        state, check = whole["state"], whole["sha256"]
    except (ValueError, TypeError, KeyError):
        raise FormatError(f"{path / _STATE}: the file is damaged") from None
    if hashlib.sha256(_canonical(state)).hexdigest() != check:
        raise FormatError(f"{path / _STATE}: its checksum does not match")
    return dict(state)


def _read_snapshot(path: Path, drift_window: int, at: int | None) -> Replica | None:
    state = _read_state(path)
    if at is not None and state["time"] > at:
        return None
    keys: OrderedDict[str, tuple[str, Answer]] = OrderedDict(
        (key, (digest, answer)) for key, digest, answer in state["keys"]
    )
    drift = Drift.restore(state["drift"], drift_window)
    model = load(path / _MODEL, verify=True)
    return Replica(model, state["sequence"], state["time"], state["learned"], keys, drift)


def _write_snapshot(folder: Path, captured: Captured) -> Path:
    target = folder / f"{captured.sequence:020d}"
    if target.exists():
        return target
    whole = {"state": captured.state, "sha256": hashlib.sha256(_canonical(captured.state)).hexdigest()}
    with atomic_directory(target) as temporary:
        (temporary / _MODEL).mkdir()
        write_model_files(temporary / _MODEL, captured.manifest, captured.arrays)
        (temporary / _STATE).write_bytes(json.dumps(whole).encode())
    return target


def _canonical(state: Any) -> bytes:
    return json.dumps(state, sort_keys=True, separators=(",", ":")).encode()


def _lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise LabelwoodError(f"{path.parent}: another service is writing to this state") from None
    return descriptor
