"""A state directory: the log, the snapshots, and the models that the log names.

    STATE/                        locked by the one process that writes
    STATE/lock                    locked as well, for file systems that cannot lock a directory
    STATE/log/<first record>.log  the log, see ``log``
    STATE/models/<record>/        the model of a record of kind "model"
    STATE/refits/<record>/        the refit that began with that record, see ``refits``
    STATE/snapshots/<record>/     model/ and state.json: the state after that record
    STATE/views/, STATE/view      the newest snapshot, packed for reading (with several workers)

Opening a state directory loads the newest sound snapshot and replays the log behind it. A new snapshot removes older
snapshots and the log before them, except for the last ``keep`` snapshots: if the newest one is damaged, the replay is
longer and nothing is lost.

A state belongs to the model directory that it began from, by the fingerprint in both. If the directory holds another
model when the state is opened, that model becomes the current one, by a record of the log.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from itertools import pairwise
from pathlib import Path

from labelwood.errors import FormatError, LabelwoodError
from labelwood.methods.online.learner import learner_of
from labelwood.methods.registry import load, model_from_saved
from labelwood.methods.text_classifier import Model
from labelwood.run_context import logger
from labelwood.serve.state.frames import Record
from labelwood.serve.state.lock import lock_directory
from labelwood.serve.state.log import Clock, LogWriter, wall_clock
from labelwood.serve.state.recovery import LOG, MODEL, MODELS, SNAPSHOTS, STATE, canonical, restore, snapshots
from labelwood.serve.state.refits import REFITS
from labelwood.serve.state.state_machine import DRIFT_WINDOW, Snapshot, StateMachine
from labelwood.storage.atomic import atomic_directory, create_directory, remove_leftovers
from labelwood.storage.model_directory import fingerprint, write_model, write_model_files

_VIEWS, _VIEW = "views", "view"
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
        self.folder, self._keep, self._drift_window = folder, keep, drift_window
        create_directory(folder)
        self._lock = lock_directory(folder, busy="another service is writing to this state")
        self.damaged: list[str] = []
        try:
            self._open(model, clock)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, model: Path | None, clock: Clock) -> None:
        folder = self.folder
        for name in (SNAPSHOTS, MODELS, REFITS):
            create_directory(folder / name)
            remove_leftovers(folder / name)
        self.log = LogWriter(folder / LOG, clock=clock)
        if self.log.torn is not None:
            logger.warning("a crash left the log unfinished: %s", self.log.torn)
        if self.log.next_sequence == 1 and not snapshots(folder):
            if model is None:
                raise LabelwoodError(f"{folder}: the state is empty and there is no model to start from")
            self.log.append([self.adopt(model)])
        self.machine = self._restored()
        self.log.last_time = max(self.log.last_time, self.machine.time)
        if model is not None:
            self._compare(model)

    def holds(self, path: Path) -> bool:
        """True if the current model began from the model at ``path``."""
        return self.machine.fingerprint == fingerprint(path)

    def recover(self) -> None:
        """Rebuild the state from the newest snapshot and the log, after a frame could not be applied."""
        self.log.mend()
        self.machine.let_go()
        self.machine.take_over(self._restored())

    def adopt(self, path: Path) -> Record:
        """Copy a model into the state directory; return the record that makes it the current model."""
        name, mark = f"{self.log.next_sequence:020d}", fingerprint(path)
        model = load(path, verify=True)
        learner_of(model, owner="serve")
        if fingerprint(path) != mark:
            raise LabelwoodError(f"{path}: the model was replaced while it was read; try again")
        write_model(self.folder / MODELS / name, *model.to_saved())
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
        target = self.folder / SNAPSHOTS / f"{snapshot.sequence:020d}"
        if not target.exists():
            checksum = hashlib.sha256(canonical(snapshot.counters)).hexdigest()
            whole = {"state": snapshot.counters, "sha256": checksum}
            with atomic_directory(target) as temporary:
                (temporary / MODEL).mkdir()
                write_model_files(temporary / MODEL, snapshot.manifest, snapshot.arrays)
                (temporary / STATE).write_bytes(json.dumps(whole).encode())
        found = [int(path.name) for path in snapshots(self.folder)]
        if len(found) >= self._keep:  # with fewer snapshots, the whole log is kept as well
            self._remove_before(found[-self._keep])

    def publish(self, snapshot: Snapshot) -> None:
        """Freeze the model of a snapshot for the processes that only read, and point ``view`` at it."""
        views, link = self.folder / _VIEWS, self.folder / _VIEW
        target = views / f"{snapshot.sequence:020d}"
        model = model_from_saved(snapshot.manifest, snapshot.arrays, where="snapshot")
        write_model(target, *_frozen(model).to_saved())
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
        self._lock.release()

    def _restored(self) -> StateMachine:
        machine = restore(self.folder, drift_window=self._drift_window, on_damage=self._set_aside)
        if machine.sequence + 1 != self.log.next_sequence:
            raise FormatError(
                f"{self.folder}: the snapshots reach record {machine.sequence}, but the next record of the log is "
                f"{self.log.next_sequence}"
            )
        return machine

    def _remove_before(self, oldest: int) -> None:
        for path in snapshots(self.folder):
            if int(path.name) < oldest:
                shutil.rmtree(path, ignore_errors=True)
        self.log.drop_before(oldest + 1)
        for path in (self.folder / MODELS).iterdir():
            if path.name.isdigit() and int(path.name) <= oldest:
                shutil.rmtree(path, ignore_errors=True)

        begun = sorted(path for path in (self.folder / REFITS).iterdir() if path.name.isdigit())
        ended = [path for path, following in pairwise(begun) if int(following.name) <= oldest]
        for path in ended:  # each before another refit began; the last one may be under way
            shutil.rmtree(path, ignore_errors=True)

    def _set_aside(self, path: Path, reason: str) -> None:
        aside = path.with_suffix(".damaged")
        shutil.rmtree(aside, ignore_errors=True)
        with contextlib.suppress(OSError):  # the next start skips it again
            path.rename(aside)
        self.damaged.append(reason)


def view_of(folder: Path) -> Path:
    """The model that a process which only reads should load.

    It is the view that the writer has published. Before the first one, for example because the disk is full, it is the
    newest snapshot or the first model.
    """
    view = folder / _VIEW
    if view.exists():
        return view
    found = [path / MODEL for path in snapshots(folder)] or sorted((folder / MODELS).glob("[0-9]*"))
    return found[-1] if found else view


def _frozen(model: Model) -> Model:
    """The model, packed for reading; whole if it cannot be packed."""
    try:
        return model.with_classifier(learner_of(model, owner="serve").freeze())
    except LabelwoodError as error:
        logger.warning("readers get the whole model: %s", error)
        return model
