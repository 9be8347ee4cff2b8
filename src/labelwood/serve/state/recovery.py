"""The state of a state directory: the newest sound snapshot, and the log behind it.

Reading takes no lock, and a service may write to the directory meanwhile. If the service removes what is being read,
reading begins again.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labelwood.errors import FormatError, LabelwoodError
from labelwood.methods.registry import load
from labelwood.run_context import logger
from labelwood.serve.state.frames import Frame
from labelwood.serve.state.log import read_log, segments
from labelwood.serve.state.state_machine import DRIFT_WINDOW, StateMachine

LOG, MODELS, SNAPSHOTS = "log", "models", "snapshots"
STATE, MODEL = "state.json", "model"
_MOST_TRIES = 100
# Errors that say nothing about the record: too little memory, a thread that could not start, a file that cannot be
# read. Another attempt may succeed, so the record must not be skipped.
_PASSING = (MemoryError, RuntimeError, OSError, LabelwoodError)
_OUT_OF = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # descriptors or memory: the file may be sound


@dataclass
class _Replay:
    """What earlier attempts have found: frames to apply record by record, and records that cannot be applied."""

    apart: set[int] = field(default_factory=set)
    skipped: dict[int, str] = field(default_factory=dict)

    def parts(self, frame: Frame) -> Iterator[Frame]:
        if frame.sequence not in self.apart:
            yield frame
            return
        for number, record in enumerate(frame.records, frame.sequence):
            yield Frame(number, frame.time, [record], frame.version)

    def note(self, frame: Frame, error: Exception) -> None:
        """Note that a frame cannot be applied, or its record if it has only one."""
        if len(frame.records) > 1:
            self.apart.add(frame.sequence)
            return
        self.skipped[frame.sequence] = f"this record cannot be applied ({type(error).__name__})"
        logger.error("record %d cannot be applied and is skipped: %r", frame.sequence, error)


class _BeginAgainError(Exception):
    """A frame could not be applied; the model may hold half of it."""


def restore(
    folder: Path,
    *,
    at: int | None = None,
    drift_window: int = DRIFT_WINDOW,
    on_damage: Callable[[Path, str], None] | None = None,
) -> StateMachine:
    """The newest state of a directory, or the state at a time (microseconds since 1970).

    Nothing is written, and a service may write to the directory meanwhile. ``on_damage`` is called with every damaged
    snapshot that is skipped, and the reason. A record that cannot be applied is skipped, on every replay.
    """
    replay, tries = _Replay(), 0
    while True:
        listed, damaged = _listing(folder), list[tuple[Path, str]]()
        try:
            machine = _fold(folder, at, drift_window, replay, damaged)
        except _BeginAgainError:
            continue
        except (FormatError, OSError):
            tries += 1
            if tries == _MOST_TRIES or _listing(folder) == listed:
                raise
            continue  # a service has removed what was being read
        for path, reason in damaged:
            if not path.exists():  # removed by a service, not damaged
                continue
            logger.warning("a damaged snapshot is skipped: %s", reason)
            if on_damage is not None:
                on_damage(path, reason)
        machine.skipped = len(replay.skipped)
        return machine


def snapshots(folder: Path) -> list[Path]:
    """The snapshots of a state directory, oldest first."""
    found = (folder / SNAPSHOTS).glob("*") if (folder / SNAPSHOTS).is_dir() else ()
    return sorted(path for path in found if path.name.isdigit())


def canonical(counters: Any) -> bytes:
    """Counters as the bytes that their checksum covers."""
    return json.dumps(counters, sort_keys=True, separators=(",", ":")).encode()


def _listing(folder: Path) -> tuple[list[Path], list[tuple[int, Path]]]:
    return snapshots(folder), segments(folder / LOG)


def _fold(
    folder: Path, at: int | None, drift_window: int, replay: _Replay, damaged: list[tuple[Path, str]]
) -> StateMachine:
    machine = _newest_snapshot(folder, at, drift_window, damaged)
    first = 0 if at is None else None  # the log may begin after the time that is asked for
    for frame in read_log(folder / LOG, after=first if machine is None else machine.sequence):
        if at is not None and frame.time > at:
            break
        if machine is None:
            machine = _first_state(folder, frame, drift_window)
            continue
        if frame.sequence != machine.sequence + 1:
            raise FormatError(
                f"{folder}: record {machine.sequence + 1} must follow; the log goes on with record {frame.sequence}"
            )
        for part in replay.parts(frame):
            try:
                machine.apply(part, skipped=replay.skipped)
            except _PASSING:
                raise
            except Exception as error:
                replay.note(part, error)
                raise _BeginAgainError from error
    if machine is None:
        when = "" if at is None else " at that time or before"
        raise FormatError(f"{folder}: there is no state{when} that could be read")
    return machine


def _newest_snapshot(
    folder: Path, at: int | None, drift_window: int, damaged: list[tuple[Path, str]]
) -> StateMachine | None:
    for path in reversed(snapshots(folder)):
        try:
            counters = _read_counters(path)
            if at is None or counters["time"] <= at:
                model = load(path / MODEL, verify=True)
                return StateMachine.from_counters(counters, model, folder / MODELS, drift_window=drift_window)
        except (FormatError, OSError) as error:
            if getattr(error, "errno", None) in _OUT_OF:
                raise
            damaged.append((path, str(error)))
    return None


def _first_state(folder: Path, frame: Frame, drift_window: int) -> StateMachine:
    if frame.sequence != 1:
        raise FormatError(f"{folder}: the first record must have number 1; got {frame.sequence}")
    models = folder / MODELS
    model = load(models / frame.records[0]["model"], verify=True)
    machine = StateMachine(model, models, sequence=frame.last, time=frame.time, drift_window=drift_window)
    machine.fingerprint = frame.records[0].get("fingerprint")
    return machine


def _read_counters(path: Path) -> dict[str, Any]:
    try:
        whole = json.loads((path / STATE).read_bytes())
        counters, checksum = whole["state"], whole["sha256"]
    except (ValueError, TypeError, KeyError):
        raise FormatError(f"{path / STATE}: the file is damaged") from None
    if hashlib.sha256(canonical(counters)).hexdigest() != checksum:
        raise FormatError(f"{path / STATE}: its checksum does not match")
    return dict(counters)
