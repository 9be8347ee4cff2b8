"""The write-ahead log: frames of records, flushed to disk before the records are acknowledged.

A log is a folder of files, each named by the number of its first record. ``frames`` says what is in a file.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from labelwood.errors import FormatError, LabelwoodError
from labelwood.serve.state.frames import (
    OPENING,
    VERSION,
    Frame,
    LogRefusedError,
    Record,
    TornTail,
    encode_frame,
    encode_seal,
    read_frames,
)
from labelwood.storage.atomic import create_directory, sync_directory

Clock = Callable[[], int]

SEGMENT_BYTES = 64 * 2**20
_flush = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class LogInDoubtError(LabelwoodError):
    """A frame could not be written completely and could not be removed either: the next start may find it."""


def wall_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def segments(folder: Path) -> list[tuple[int, Path]]:
    """The files of a log in order, each with the number of its first record."""
    found = [(int(path.stem), path) for path in folder.glob("*.log") if path.stem.isdigit()]
    return sorted(found)


def read_log(folder: Path, *, after: int | None = None) -> Iterator[Frame]:
    """The frames with records above number ``after``, in order, up to a torn tail; without it, all that there are."""
    expected: int | None = None
    listed = segments(folder)
    if after is not None and listed and listed[0][0] > after + 1:
        raise FormatError(
            f"{folder}: the log begins with record {listed[0][0]} and no sound snapshot comes before it"
            if after == 0
            else f"{folder}: the log begins with record {listed[0][0]}, but the snapshot before it ends with {after}"
        )
    after = after or 0
    for position, (first, path) in enumerate(listed):
        following = listed[position + 1][0] if position + 1 < len(listed) else None
        if following is not None and following <= after + 1:
            continue
        if expected is not None and first != expected:
            raise FormatError(f"{path}: the log lacks records {expected} to {first - 1}")
        expected = first
        for frame, _, _ in read_frames(path, first, following=following):
            if isinstance(frame, TornTail):
                break
            expected = frame.last + 1
            if frame.last > after:
                yield frame


class LogWriter:
    """Appends frames to a log. There must be only one writer; ``store`` holds a lock.

    Times never decrease: if the clock goes back, frames keep the latest time until the clock has caught up. A log
    can be opened on a full disk: what could not be mended then is mended before the next frame.
    """

    def __init__(self, folder: Path, *, clock: Clock = wall_clock, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder, self._clock, self._segment_bytes = folder, clock, segment_bytes
        self.torn: TornTail | None = None
        self.last_time, self.backwards = 0, 0
        self._torn_in_place: TornTail | None = None
        self._without_frames: Path | None = None
        self._file: int | None = None  # None: the next frame begins a file
        self._end, self._is_dirty = 0, False  # dirty: there may be bytes behind the end
        self.next_sequence = 1
        create_directory(folder)
        listed = segments(folder)
        if listed:
            self._continue(*listed[-1])

    @property
    def size(self) -> int:
        """Bytes of the log on disk."""
        total = 0
        for _, path in segments(self._folder):
            with contextlib.suppress(FileNotFoundError):  # removed since it was listed
                total += path.stat().st_size
        return total

    def append(self, records: Sequence[Record]) -> Frame:
        """Write records as one frame, flush it to disk and seal it."""
        now = self._clock()
        frame = Frame(self.next_sequence, max(now, self.last_time), list(records))
        data = encode_frame(frame.sequence, frame.time, frame.records)
        try:
            file = self._ready_for(len(data))
        except OSError as error:
            raise LogRefusedError(f"log: nothing was written: {error.strerror}") from error
        try:
            _write_all(file, data)
            _flush(file)
        except BaseException as error:
            self._is_dirty = True
            self._try_to_cut(file)
            if not isinstance(error, OSError):
                raise
            if self._is_dirty:
                raise LogInDoubtError(f"log: a frame is in doubt after {error.strerror}; try again") from error
            raise LogRefusedError(f"log: nothing was written: {error.strerror}") from error
        self._end += len(data)
        self.backwards += now < self.last_time
        self.next_sequence, self.last_time = frame.last + 1, frame.time
        self._seal(file)
        return frame

    def drop_before(self, sequence: int) -> None:
        """Remove the files that have only records below number ``sequence``."""
        listed = segments(self._folder)
        for (_, path), (following, _) in pairwise(listed):
            if following <= sequence:
                path.unlink(missing_ok=True)

    def rotate(self) -> None:
        """Begin a new file, so that the previous one can be removed when a snapshot covers it."""
        if self._file is not None and self._end > len(OPENING) and not self._is_dirty:
            with contextlib.suppress(OSError):  # the disk is full: continue with the old file
                self._begin_segment()

    def close(self) -> None:
        """Flush the last seal, and close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                _flush(self._file)
            os.close(self._file)
            self._file = None

    def _continue(self, first: int, path: Path) -> None:
        """Go on behind the last sound frame of a file."""
        self.next_sequence, version, sealed = first, VERSION, True
        self._end = len(OPENING)
        for piece in read_frames(path, first):
            if isinstance(piece.content, TornTail):
                self.torn = self._torn_in_place = piece.content
                break
            self._end, sealed, version = piece.end, piece.sealed, piece.content.version
            self.next_sequence, self.last_time = piece.content.last + 1, piece.content.time
        if self.next_sequence == first:
            self._without_frames = path
        elif version == VERSION:
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
            self._is_dirty = self.torn is not None
        with contextlib.suppress(OSError):  # the disk is full: mend the log before the next frame
            self.mend()
            if self._file is not None and not sealed:
                _flush(self._file)
                self._seal(self._file)

    def _ready_for(self, n_bytes: int) -> int:
        """The file for a frame of ``n_bytes`` bytes, which begins at the end of the file."""
        self.mend()
        is_full = self._end + n_bytes > self._segment_bytes and self._end > len(OPENING)
        return self._begin_segment() if self._file is None or is_full else self._file

    def mend(self) -> None:
        """Remove what a crash or a failed write has left behind the last sound frame."""
        if self._torn_in_place is not None:
            self._set_aside(self._torn_in_place)
        if self._file is not None and self._is_dirty:
            self._cut(self._file)

    def _set_aside(self, tail: TornTail) -> None:
        """Move a torn tail to a file of its own."""
        with tail.path.open("r+b") as file:
            file.seek(tail.offset)
            tail.path.with_suffix(f".{tail.offset}.torn").write_bytes(file.read())
            file.truncate(tail.offset)
            file.flush()
            os.fsync(file.fileno())
        self._torn_in_place = None

    def _begin_segment(self) -> int:
        path = self._folder / f"{self.next_sequence:020d}.log"
        is_new = path != self._without_frames
        how = os.O_EXCL if is_new else os.O_TRUNC
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | how, 0o600)
        try:
            if self._file is not None:
                _flush(self._file)  # the last seal
            _write_all(file, OPENING)
            os.fsync(file)
            sync_directory(self._folder)
        except BaseException:
            os.close(file)
            if is_new:
                path.unlink()
            raise
        if self._file is not None:
            os.close(self._file)
        self._file, self._end, self._is_dirty, self._without_frames = file, len(OPENING), False, None
        return file

    def _seal(self, file: int) -> None:
        """Say behind the last frame that it is flushed. A frame without a seal is as good until a bit of it flips."""
        data = encode_seal(self.next_sequence - 1)
        try:
            _write_all(file, data)
        except OSError:
            self._is_dirty = True
            self._try_to_cut(file)
        else:
            self._end += len(data)

    def _cut(self, file: int) -> None:
        """Remove what a failed write has left behind the end."""
        os.ftruncate(file, self._end)
        os.fsync(file)
        self._is_dirty = False

    def _try_to_cut(self, file: int) -> None:
        with contextlib.suppress(OSError):
            self._cut(file)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
