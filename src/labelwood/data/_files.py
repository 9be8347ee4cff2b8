"""Read and write data files, plain or compressed."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import mmap
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal, cast

import numpy as np

from labelwood.errors import FormatError, LabelwoodError
from labelwood.progress import loading
from labelwood.sparse import U8
from labelwood.storage.atomic import atomic_file

Format = Literal["xmc", "svmlight", "npz", "lw"]

_FORMATS: dict[str, Format] = {
    ".txt": "xmc",
    ".xmc": "xmc",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".npz": "npz",
    ".lw": "lw",
}
_SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")
_PIECE = 1 << 22  # bytes decompressed between two updates of the progress bar
# Without a limit of the caller, a file may claim memory up to this multiple of its size, and always up to a gigabyte.
_EXPANSION = 100
_ALWAYS_ALLOWED = 10**9
COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}


def guess_format(path: Path, given: str | None) -> Format:
    """Return the given format, or the one that the suffixes of the file stand for."""
    if given is not None:
        if given not in _FORMATS.values():
            raise LabelwoodError(f"data: format must be one of 'xmc', 'svmlight', 'npz', 'lw'; got {given!r}")
        return cast(Format, given)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    if suffixes and suffixes[-1] in _FORMATS:
        return _FORMATS[suffixes[-1]]
    if path.is_dir():
        raise LabelwoodError(f"{path}: is a directory, not a data file")
    if suffixes and suffixes[-1] in _SPREADSHEETS:
        raise LabelwoodError(f"{path}: spreadsheets are not read; save the table as CSV in UTF-8")
    raise LabelwoodError(
        f"{path}: the format is not known from the suffix; pass format='xmc' (or svmlight, npz, lw). Suffixes of "
        f"vectors are {', '.join(_FORMATS)}, of texts .csv, .tsv, .jsonl, .parquet"
    )


def check_exists(path: Path) -> None:
    """Raise if there is no such file, which is more to the point than that its format is not known."""
    try:
        path.stat()
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file") from None
    except OSError:
        return  # reading will say why


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors while a file is opened and read into a FormatError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FormatError(f"{path}: is a directory, not a data file") from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        kind = COMPRESSIONS.get(path.suffix.lower(), "archive")
        raise FormatError(f"{path}: broken or truncated {kind} file ({error})") from None
    except OSError as error:
        if error.errno is None and path.suffix.lower() in COMPRESSIONS:  # a broken stream, as bz2 reports it
            kind = COMPRESSIONS[path.suffix.lower()]
            raise FormatError(f"{path}: broken or truncated {kind} file ({error})") from None
        raise FormatError(f"{path}: cannot be read ({error.strerror or error})") from None


def check_claim(path: Path, what: str, claimed: int, max_memory: int | None) -> None:
    """Refuse a file that makes its reader need more memory than ``max_memory``; by default, out of proportion to it.

    ``what`` says what needs the ``claimed`` bytes, as the subject of a sentence.
    """
    files = path.iterdir() if path.is_dir() else [path]
    allowed = max_memory or max(_ALWAYS_ALLOWED, _EXPANSION * sum(file.stat().st_size for file in files))
    if claimed > allowed:
        limit = f"max_memory allows {allowed}" if max_memory else f"at most {allowed} is in proportion to the file"
        raise FormatError(
            f"{path}: {what} need at least {claimed} bytes of memory, but {limit}. If the file is "
            "sound, allow more with max_memory"
        )


def read_text(path: Path, max_memory: int | None = None) -> tuple[U8, bool]:
    """Return the decompressed bytes of a file, and whether its last line is complete.

    The bytes end in a newline unless the file is empty. A plain file is mapped, so it must not be truncated while it
    is in use.
    """
    with reading(path):
        if path.suffix.lower() in COMPRESSIONS:
            return _closed(b"".join(read_pieces(path, _PIECE, max_memory)))
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode) and size > 0:
                text = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)
                if text[-1] == ord("\n"):
                    return text, True
            return _closed(file.read())


def read_pieces(path: Path, size: int, max_memory: int | None = None) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in pieces; the progress bar counts compressed bytes."""
    total, is_compressed = 0, path.suffix.lower() in COMPRESSIONS
    with (
        reading(path),
        path.open("rb") as raw,
        _decompressing(path, raw) as stream,
        loading(f"read {path.name}", os.fstat(raw.fileno()).st_size) as progress,
    ):
        while piece := stream.read(size):
            total += len(piece)
            if is_compressed:
                check_claim(path, "its decompressed bytes", total, max_memory)
            yield piece
            if progress is not None:
                progress(raw.tell())


def read_start(path: Path, size: int) -> bytes:
    """Return the first decompressed bytes of a file."""
    with reading(path), path.open("rb") as raw, _decompressing(path, raw) as stream:
        return stream.read(size)


def _closed(content: bytes) -> tuple[U8, bool]:
    complete = content.endswith(b"\n") or not content
    return np.frombuffer(content if complete else content + b"\n", dtype=np.uint8), complete


def _decompressing(path: Path, raw: IO[bytes]) -> contextlib.AbstractContextManager[IO[bytes]]:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast(IO[bytes], gzip.open(raw, "rb"))
    if suffix == ".bz2":
        return bz2.open(raw, "rb")
    return lzma.open(raw, "rb") if suffix == ".xz" else contextlib.nullcontext(raw)


def _compressing(raw: IO[bytes], suffix: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    if suffix == ".gz":  # without name and time: the same data give the same bytes
        return cast(IO[bytes], gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6))
    if suffix == ".bz2":
        return bz2.open(raw, "wb")
    if suffix == ".xz":
        return lzma.open(raw, "wb")
    return contextlib.nullcontext(raw)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file atomically, compressed if its suffix says so."""
    try:
        with atomic_file(path) as raw, _compressing(raw, path.suffix.lower()) as stream:
            yield stream
    except OSError as error:
        raise LabelwoodError(f"{path}: cannot be written ({error.strerror or error})") from error
