"""Many strings as two arrays, for kernels and models: their UTF-8 bytes, concatenated, and their offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.sparse import I64, U8, never_falls


def pack(strings: Sequence[str]) -> tuple[U8, I64]:
    """Concatenate strings; string i is ``utf8[offsets[i] : offsets[i + 1]]``.

    >>> utf8, offsets = pack(["ab", "", "ä"])
    >>> utf8.tobytes(), offsets.tolist()
    (b'ab\\xc3\\xa4', [0, 2, 2, 4])
    """
    # A string from a broken source may contain half of a surrogate pair; it is kept.
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def unpack(
    utf8: U8, offsets: I64, ids: npt.NDArray[np.integer[Any]] | None = None, *, what: str = "a string"
) -> list[str]:
    """Return all strings, or those with the given ids; ``what`` names a string in the error message."""
    text = utf8.data
    begins, ends = (offsets[:-1], offsets[1:]) if ids is None else (offsets[ids], offsets[ids + 1])
    try:
        return [
            str(text[begin:end], "utf-8", "surrogatepass")
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
    except UnicodeDecodeError:
        raise FormatError(f"{what} is not UTF-8; the model is damaged") from None


def split_lines(utf8: U8) -> list[bytes]:
    """The UTF-8 of each line; a newline ends every line.

    >>> split_lines(join_lines([b"ab", b"", b"c"]))
    [b'ab', b'', b'c']
    """
    return utf8.tobytes().split(b"\n")[:-1]


def join_lines(lines: Sequence[bytes]) -> U8:
    """Concatenate lines, each ended by a newline; no line contains one."""
    return np.frombuffer(b"\n".join([*lines, b""]), np.uint8)


def are_sound(utf8: npt.NDArray[Any], offsets: npt.NDArray[Any], count: int) -> bool:
    """True if two arrays from a file are the bytes and the offsets of ``count`` strings."""
    return bool(
        utf8.dtype == np.uint8
        and utf8.ndim == 1
        and offsets.dtype == np.int64
        and offsets.shape == (count + 1,)
        and offsets[0] == 0
        and offsets[-1] == len(utf8)
        and never_falls(offsets)
    )
