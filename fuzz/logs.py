"""Fuzz the service's log with mutated files.

The frames read must be a run of the frames written, or the log must be refused. A forged frame with a correct
checksum may hold anything; it must be refused or read back unchanged.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from mutate import spoil_bytes, spoil_json

from labelwood import LabelwoodError
from labelwood.serve.state.frames import Frame, encode_frame
from labelwood.serve.state.log import LogWriter, read_log, segments

_RECORDS: list[dict[str, Any]] = [
    {"kind": "learn", "examples": [{"text": "cats and \u2028 dogs", "labels": ["pets", 1]}], "key": "k1"},
    {"kind": "label", "action": "merge", "label": "a", "to": "b"},
    {"kind": "learn", "examples": [{"features": {"1": 0.5}, "labels": []}]},
]


def make(folder: Path) -> Callable[[Random], bool]:
    """Make the target. It writes logs to ``folder``."""
    log = LogWriter(folder / "good", segment_bytes=600)
    frames = [log.append(_RECORDS[: 1 + number % 3]) for number in range(7)]
    log.close()
    files = {path.name: path.read_bytes() for _, path in segments(folder / "good")}
    assert len(files) > 1

    def run(random: Random) -> bool:
        spoiled = folder / "spoiled"
        shutil.rmtree(spoiled, ignore_errors=True)
        spoiled.mkdir()
        name = random.choice(tuple(files))
        forged = random.randrange(3) == 0
        for other, data in files.items():
            if other != name:
                (spoiled / other).write_bytes(data)
            elif forged:
                (spoiled / other).write_bytes(data + _forged(random, frames))
            elif random.randrange(10):
                (spoiled / other).write_bytes(spoil_bytes(random, data))
        try:
            found = list(read_log(spoiled))
            _check(found, frames, forged=forged)
            _goes_on(spoiled, found)
        except LabelwoodError as error:
            assert "\n" not in str(error), error
            return False
        return True

    return run


def _forged(random: Random, frames: list[Frame]) -> bytes:
    """A frame with a correct checksum and wrong records or numbers."""
    records = [{"was": spoil_json(random, record)} for record in random.choice(frames).records]
    try:
        sequence = random.choice((frames[-1].last + 1, 0, 1, 2**63, 2**64 - 1))
        return encode_frame(sequence, random.choice((0, -1, 2**62)), records)
    except ValueError:  # no frame can hold these values
        return b""


def _check(found: list[Frame], frames: list[Frame], *, forged: bool) -> None:
    """Check that all frames read were written, and that none is missing between them."""
    known = [frame for frame in found if frame in frames]
    assert forged or len(known) == len(found), "read a frame that was never written"
    if known:
        start = frames.index(known[0])
        assert known == frames[start : start + len(known)], "frames are missing between those read"


def _goes_on(folder: Path, before: list[Frame]) -> None:
    """Check that a writer continues after the last complete frame."""
    log = LogWriter(folder)
    try:
        added = log.append([_RECORDS[0]])
    finally:
        log.close()
    assert list(read_log(folder)) == [*before, added]
