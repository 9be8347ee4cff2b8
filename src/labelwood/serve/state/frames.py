"""The bytes of a log file: frames of records, each with a checksum, and a seal behind each frame that was flushed.

A frame is written and flushed, then sealed, then acknowledged. So a damaged frame with a seal or a sound frame behind
it had been acknowledged, and reading stops with an error. A damaged frame at the end without a seal is a torn tail: a
crash cut the write short, and nobody was told that the records are safe. ``docs/develop/file-format.md`` specifies the
bytes.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import to_json

from labelwood.errors import FormatError, LabelwoodError

Record = dict[str, Any]

VERSION = 2  # version 1 has no seals
OPENINGS = {version: b"labelwood-log %d\n" % version for version in (1, VERSION)}
OPENING = OPENINGS[VERSION]
_MAGIC = b"LwFr"
_HEADER = struct.Struct("<4sIQqI")  # magic, bytes of the payload, first record, microseconds, crc32
_CHECKED = struct.Struct("<IQq")  # the part of the header that the checksum covers
_SEAL_MAGIC = b"LwSe"
_SEAL = struct.Struct("<4sQI")  # magic, last record, crc32
_NUMBER = struct.Struct("<Q")
SEAL_BYTES = _SEAL.size
MAX_PAYLOAD = 2**30


class LogRefusedError(LabelwoodError):
    """A frame could not be written, and the log is unchanged."""


@dataclass(frozen=True)
class Frame:
    """Records ``sequence``, ``sequence + 1``, ..., flushed together at ``time`` (microseconds since 1970).

    ``version`` is the version of the log that holds them.
    """

    sequence: int
    time: int
    records: list[Record]
    version: int = field(default=VERSION, compare=False)

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


class Piece(NamedTuple):
    """A frame of a file, or its torn tail, and the offset of its end; ``sealed`` if a seal follows the frame."""

    content: Frame | TornTail
    end: int
    sealed: bool = False


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


def encode_seal(last: int) -> bytes:
    """The bytes that say that all records up to number ``last`` are flushed."""
    return _SEAL.pack(_SEAL_MAGIC, last, zlib.crc32(_NUMBER.pack(last)))


def read_frames(path: Path, first: int, *, following: int | None = None) -> Iterator[Piece]:
    """The frames of a file whose first record has number ``first``, and last a torn tail if there is one.

    ``following`` is the first record of the next file; None if this is the last file. The end of a sealed frame is the
    end of its seal.
    """
    data = path.read_bytes()
    version = next((version for version, opening in OPENINGS.items() if data.startswith(opening)), None)
    if version is None:
        if _is_line(data) or following not in (None, first) or _is_acknowledged(data, 0, first, VERSION):
            raise FormatError(f"{path}: not a log of this version: it must begin with {OPENING!r}")
        yield Piece(TornTail(path, 0, len(data), "the file has no complete first line"), 0)
        return
    offset, expected = len(OPENINGS[version]), first
    while offset < len(data):
        frame, end, reason = _frame_at(data, offset, expected, version)
        if frame is None:
            if following not in (None, expected) or _is_acknowledged(data, offset + 1, expected, version):
                raise FormatError(
                    f"{path}: {reason} at byte {offset}, and the records there were acknowledged: the log is damaged. "
                    "Restore the file from a backup, start from a later snapshot, or restore a time before the damage."
                )
            yield Piece(TornTail(path, offset, len(data) - offset, reason), offset)
            return
        offset, expected = end, frame.last + 1
        sealed = version > 1 and _seal_at(data, offset) == frame.last
        offset += SEAL_BYTES if sealed else 0
        yield Piece(frame, offset, sealed)


def _is_line(data: bytes) -> bool:
    """True if a file has the first line of some version of the log."""
    line, ended, _ = data[:64].partition(b"\n")
    return bool(ended) and line.startswith(OPENING[:-3]) and line[len(OPENING) - 2 :].isdigit()


def _frame_at(data: bytes, offset: int, expected: int | None, version: int) -> tuple[Frame | None, int, str]:
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
    return Frame(sequence, micros, json.loads(payload), version), start + length, ""


def _seal_at(data: bytes, offset: int) -> int | None:
    """The number of the last record that the seal at an offset covers; None if there is no sound seal."""
    if len(data) - offset < SEAL_BYTES:
        return None
    magic, last, check = _SEAL.unpack_from(data, offset)
    return int(last) if magic == _SEAL_MAGIC and zlib.crc32(_NUMBER.pack(last)) == check else None


def _is_acknowledged(data: bytes, offset: int, expected: int, version: int) -> bool:
    """True if a sound frame or a seal behind ``offset`` proves that record ``expected`` had been flushed."""
    at = offset
    while version > 1 and (at := data.find(_SEAL_MAGIC, at)) >= 0:
        sealed = _seal_at(data, at)
        if sealed is not None and sealed >= expected:
            return True
        at += 1
    at = offset
    while (at := data.find(_MAGIC, at)) >= 0:
        frame, _, _ = _frame_at(data, at, None, version)
        if frame is not None and frame.sequence > expected:
            return True
        at += 1
    return False
