"""The write-ahead log: frames of records, each with a checksum, flushed to disk before the records are acknowledged.

Each frame is flushed on its own, so a crash can tear only the last frame, whose records were not acknowledged. A
damaged frame with sound frames behind it is not a torn tail: acknowledged records are unreadable, and reading stops
with an error. ``docs/develop/file-format.md`` specifies the bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from labelwood.errors import FormatError, LabelwoodError
from labelwood.storage.atomic import sync_directory

Record = dict[str, Any]
Clock = Callable[[], int]

OPENING = b"labelwood-log 1\n"
_MAGIC = b"LwFr"
_HEADER = struct.Struct("<4sIQqI")  # magic, bytes of the payload, first record, microseconds, crc32
_CHECKED = struct.Struct("<IQq")  # the part of the header that the checksum covers
MAX_PAYLOAD = 2**30
SEGMENT_BYTES = 64 * 2**20
_flush = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class LogRefusedError(LabelwoodError):
    """A frame could not be written. The log is unchanged, or closed until the next start."""


@dataclass(frozen=True)
class Frame:
    """Records ``sequence``, ``sequence + 1``, ..., flushed together at ``time`` (microseconds since 1970)."""

    sequence: int
    time: int
    records: list[Record]

    @property
    def last(self) -> int:
        """Number of the last record."""
        return self.sequence + len(self.records) - 1


@dataclass(frozen=True)
class TornTail:
    """An unfinished frame at the end of a log, left by a crash."""

    path: Path
    offset: int
    lost_bytes: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason} at byte {self.offset}; {self.lost_bytes} bytes are moved to a .torn file"


def wall_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def segments(folder: Path) -> list[tuple[int, Path]]:
    """The files of a log in order, each with the number of its first record."""
    found = [(int(path.stem), path) for path in folder.glob("*.log") if path.stem.isdigit()]
    return sorted(found)


def encode_frame(sequence: int, micros: int, records: Sequence[Record]) -> bytes:
    """The bytes of a frame."""
    try:
        payload = to_json(list(records))
    except ValueError as error:  # a record that no request can make
        raise LogRefusedError(f"log: nothing was written: {error}") from error
    if len(payload) > MAX_PAYLOAD:
        raise LogRefusedError(f"log: a frame must have at most {MAX_PAYLOAD} bytes; got {len(payload)}")
    check = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(len(payload), sequence, micros)))
    return _HEADER.pack(_MAGIC, len(payload), sequence, micros, check) + payload


def read_log(folder: Path, *, after: int = 0) -> Iterator[Frame]:
    """The frames with records above number ``after``, in order, up to a torn tail."""
    expected: int | None = None
    listed = segments(folder)
    for position, (first, path) in enumerate(listed):
        is_last = position + 1 == len(listed)
        if not is_last and listed[position + 1][0] <= after + 1:
            continue
        if expected is not None and first != expected:
            raise FormatError(f"{path}: the log lacks records {expected} to {first - 1}")
        expected = first
        for _, frame in _frames(path, first, may_be_torn=is_last):
            if isinstance(frame, TornTail):
                return
            expected = frame.last + 1
            if frame.last > after:
                yield frame


def _frames(path: Path, first: int, *, may_be_torn: bool) -> Iterator[tuple[int, Frame | TornTail]]:
    """The frames of a file, each with the offset of its end, and last a torn tail if there is one."""
    data = path.read_bytes()
    offset, expected = len(OPENING), first
    if not data.startswith(OPENING):
        if may_be_torn and OPENING.startswith(data):
            yield 0, TornTail(path, 0, len(data), "the file has no complete first line")
            return
        raise FormatError(f"{path}: not a log of this version: it must begin with {OPENING!r}")
    while offset < len(data):
        frame, end, reason = _frame_at(data, offset, expected)
        if frame is None:
            follower = _next_frame(data, offset + 1, expected)
            if follower is not None or not may_be_torn:
                raise FormatError(
                    f"{path}: {reason} at byte {offset}, and acknowledged records follow: the log is damaged. "
                    "Start from a later snapshot, or restore a time before the damage."
                )
            yield offset, TornTail(path, offset, len(data) - offset, reason)
            return
        yield end, frame
        offset, expected = end, frame.last + 1


def _frame_at(data: bytes, offset: int, expected: int | None) -> tuple[Frame | None, int, str]:
    """The frame at an offset and the offset of its end, or None and the reason."""
    if len(data) - offset < _HEADER.size:
        return None, offset, "the header of a frame is cut short"
    magic, length, sequence, micros, check = _HEADER.unpack_from(data, offset)
    start = offset + _HEADER.size
    if magic != _MAGIC or length > MAX_PAYLOAD:
        return None, offset, "there is no frame"
    if start + length > len(data):
        return None, offset, "a frame is cut short"
    payload = data[start : start + length]
    if zlib.crc32(payload, zlib.crc32(_CHECKED.pack(length, sequence, micros))) != check:
        return None, offset, "the checksum of a frame does not match"
    if expected is not None and sequence != expected:
        return None, offset, f"there is record {sequence} instead of record {expected}"
    return Frame(sequence, micros, json.loads(payload)), start + length, ""


def _next_frame(data: bytes, offset: int, expected: int) -> Frame | None:
    """A sound frame behind a damaged one; None if there is none."""
    while (offset := data.find(_MAGIC, offset)) >= 0:
        frame, _, _ = _frame_at(data, offset, None)
        if frame is not None and frame.sequence > expected:
            return frame
        offset += 1
    return None


class LogWriter:
    """Appends frames to a log. There must be only one writer; ``store`` holds a lock.

    Times never decrease: if the clock goes back, frames keep the latest time until the clock has caught up.
    """

    def __init__(self, folder: Path, *, clock: Clock = wall_clock, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder, self._clock, self._segment_bytes = folder, clock, segment_bytes
        self.torn: TornTail | None = None
        self.last_time, self.backwards = 0, 0
        self._broken = ""
        folder.mkdir(exist_ok=True)
        listed = segments(folder)
        if listed:
            self._continue(*listed[-1])
        else:
            self.next_sequence = 1
            self._begin_segment()

    @property
    def size(self) -> int:
        """Bytes of the log on disk."""
        total = 0
        for _, path in segments(self._folder):
            with contextlib.suppress(FileNotFoundError):  # a snapshot has just covered the file
                total += path.stat().st_size
        return total

    def append(self, records: Sequence[Record]) -> Frame:
        """Write records as one frame and flush it to disk."""
        if self._broken:
            raise LogRefusedError(self._broken)
        now = self._clock()
        self.backwards += now < self.last_time
        frame = Frame(self.next_sequence, max(now, self.last_time), list(records))
        data = encode_frame(frame.sequence, frame.time, frame.records)
        try:
            if self._end + len(data) > self._segment_bytes and self._end > len(OPENING):
                self._begin_segment()
            _write_all(self._file, data)
            _flush(self._file)
        except OSError as error:
            self._undo(error)
            raise LogRefusedError(f"log: nothing was written: {error.strerror}") from error
        self._end += len(data)
        self.next_sequence, self.last_time = frame.last + 1, frame.time
        return frame

    def drop_before(self, sequence: int) -> None:
        """Remove the files that have only records below number ``sequence``."""
        listed = segments(self._folder)
        for (_, path), (following, _) in pairwise(listed):
            if following <= sequence:
                path.unlink()

    def rotate(self) -> None:
        """Begin a new file, so that the previous one can be removed when a snapshot covers it."""
        if self._end > len(OPENING) and not self._broken:
            with contextlib.suppress(OSError):  # the disk is full: continue with the old file
                self._begin_segment()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _continue(self, first: int, path: Path) -> None:
        end, self.next_sequence = len(OPENING), first
        for offset, frame in _frames(path, first, may_be_torn=True):
            if isinstance(frame, TornTail):
                self.torn = frame
                break
            end, self.next_sequence, self.last_time = offset, frame.last + 1, frame.time
        if self.torn is not None:
            self._set_aside(path, self.torn)
        self._file, self._path = os.open(path, os.O_WRONLY | os.O_APPEND), path
        if self.torn is not None and self.torn.offset == 0:
            _write_all(self._file, OPENING)
            os.fsync(self._file)
        self._end = end

    def _set_aside(self, path: Path, tail: TornTail) -> None:
        """Move a torn tail to a file of its own."""
        with path.open("r+b") as file:
            file.seek(tail.offset)
            path.with_suffix(f".{tail.offset}.torn").write_bytes(file.read())
            file.truncate(tail.offset)
            file.flush()
            os.fsync(file.fileno())

    def _begin_segment(self) -> None:
        path = self._folder / f"{self.next_sequence:020d}.log"
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _write_all(file, OPENING)
            os.fsync(file)
            sync_directory(self._folder)
        except OSError:
            os.close(file)
            path.unlink()
            raise
        if hasattr(self, "_file"):
            os.close(self._file)
        self._file, self._path, self._end = file, path, len(OPENING)

    def _undo(self, error: OSError) -> None:
        """Remove what a failed append has left; if that fails, refuse further frames."""
        try:
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)
        except OSError:
            self._broken = f"log: closed until the next start, after {error.strerror}"


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
