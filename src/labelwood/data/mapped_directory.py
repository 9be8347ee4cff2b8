"""Data sets as directories of plain arrays, for data that may be larger than memory.

``dataset.json`` tells the counts; ``X_indptr``, ``X_indices``, ``X_data``, ``Y_indptr`` and ``Y_indices`` are ``.npy``
files, written row by row and mapped when read; ``labels.txt`` has the names of the labels, if they have any.
"""

from __future__ import annotations

import json
import mmap
import os
import secrets
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt

from labelwood.data._files import U8, read_pieces, reading
from labelwood.data.dataset import Dataset
from labelwood.data.label_file import NAMES_FILE, encode_names, read_names
from labelwood.data.xmc_svmlight import (
    Header,
    Reader,
    TextOptions,
    read_header,
    with_empty_rows,
    without_empty_end,
)
from labelwood.errors import FormatError, LabelwoodError
from labelwood.sparse import CSR, MAX_COLUMNS, MappedCSR

FORMAT, VERSION, MANIFEST = "labelwood-dataset", 1, "dataset.json"
_TYPES = {
    "X_indptr": np.int64, "X_indices": np.int32, "X_data": np.float32, "Y_indptr": np.int64, "Y_indices": np.int32,
}  # fmt: skip
_HEADER = 128  # bytes before the data of a file: room for any length
_COUNTS = ("rows", "features", "labels", "feature_entries", "label_entries")


class DirectoryWriter:
    """Writes a data set that arrives in parts; it appears under its name when all of it is there."""

    def __init__(self, path: Path) -> None:
        if path.exists() and not is_directory(path):
            raise LabelwoodError(f"{path}: exists and is not a data set of ours; choose another path")
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        self.n_rows = self.n_features = self.n_labels = 0
        self._entries = {"X": 0, "Y": 0}

    def __enter__(self) -> Self:
        self._temporary.mkdir(parents=True)
        self._files: dict[str, IO[bytes]] = {}
        for name in _TYPES:
            file = self._files[name] = (self._temporary / f"{name}.npy").open("xb")
            file.write(bytes(_HEADER))
        for name in ("X_indptr", "Y_indptr"):
            self._files[name].write(np.zeros(1, np.int64).tobytes())
        return self

    def add(self, part: Dataset) -> None:
        """Append rows."""
        for name, matrix in (("X", part.X), ("Y", part.Y)):
            self._files[f"{name}_indptr"].write((matrix.indptr[1:] + self._entries[name]).tobytes())
            self._files[f"{name}_indices"].write(np.ascontiguousarray(matrix.indices).data)
            self._entries[name] += matrix.nnz
        self._files["X_data"].write(np.ascontiguousarray(part.X.data).data)
        self.n_rows += part.n_rows
        self.n_features = max(self.n_features, part.X.n_cols)
        self.n_labels = max(self.n_labels, part.Y.n_cols)

    def finish(self, names: tuple[str, ...] | None) -> None:
        """Write what is known only at the end."""
        counts = (self.n_rows, self.n_features, self.n_labels, self._entries["X"], self._entries["Y"])
        lengths = {"X_indptr": self.n_rows + 1, "Y_indptr": self.n_rows + 1}
        for name, file in self._files.items():
            length = lengths.get(name, self._entries[name[0]])
            file.seek(0)
            file.write(_header(_TYPES[name], length))
            file.flush()
            os.fsync(file.fileno())
        manifest = {"format": FORMAT, "version": VERSION, **dict(zip(_COUNTS, counts, strict=True))}
        (self._temporary / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        if names is not None:
            (self._temporary / NAMES_FILE).write_bytes(encode_names(names))
        if self._path.exists():
            shutil.rmtree(self._path)
        self._temporary.rename(self._path)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files.values():
            file.close()
        shutil.rmtree(self._temporary, ignore_errors=True)


def is_directory(path: Path) -> bool:
    """Whether a path is a data set of this format."""
    return (path / MANIFEST).is_file()


def read_directory(path: Path) -> Dataset:
    """The data set, its features mapped; their values are checked when they are first used."""
    known = path / MANIFEST
    with reading(known):
        text = known.read_text(encoding="utf-8")
    try:
        manifest = json.loads(text)
        counts = {name: manifest[name] for name in _COUNTS}
    except (ValueError, TypeError, KeyError):
        raise FormatError(f"{known}: is damaged") from None
    if manifest.get("format") != FORMAT or manifest.get("version") != VERSION:
        raise FormatError(f"{known}: is not a data set of this version of Labelwood")
    if any(type(count) is not int or not count >= 0 for count in counts.values()):
        raise FormatError(f"{known}: its counts must be integers, at least 0")
    if max(counts["features"], counts["labels"]) > MAX_COLUMNS:
        raise FormatError(f"{known}: at most {MAX_COLUMNS} features and labels are supported")
    n_rows, n_x, n_y = counts["rows"], counts["feature_entries"], counts["label_entries"]
    lengths = {
        "X_indptr": n_rows + 1,
        "Y_indptr": n_rows + 1,
        "X_indices": n_x,
        "X_data": n_x,
        "Y_indices": n_y,
    }
    arrays, maps = {}, []
    for name, length in lengths.items():
        arrays[name], mapped = _map(path / f"{name}.npy", _TYPES[name], length)
        if name in ("X_indices", "X_data") and mapped is not None:
            maps.append(mapped)
    X = MappedCSR(
        np.array(arrays["X_indptr"]), arrays["X_indices"], arrays["X_data"], counts["features"], tuple(maps)
    )
    ones = np.ones(n_y, np.float32)
    names = read_names(path / NAMES_FILE) if (path / NAMES_FILE).exists() else None
    try:
        Y = CSR(np.array(arrays["Y_indptr"]), np.array(arrays["Y_indices"]), ones, counts["labels"]).check()
    except LabelwoodError as error:
        raise FormatError(f"{path}: {error}") from None
    if names is not None and len(names) != Y.n_cols:
        raise FormatError(f"{path / NAMES_FILE}: holds {len(names)} names for {Y.n_cols} labels")
    return Dataset(X, Y, names)


def write_directory(path: Path, dataset: Dataset) -> None:
    """Write a data set that is in memory."""
    with DirectoryWriter(path) as writer:
        writer.add(dataset)
        writer.finish(dataset.label_names)


def _header(dtype: Any, length: int) -> bytes:
    described = {"descr": np.dtype(dtype).newbyteorder("<").str, "fortran_order": False, "shape": (length,)}
    text = repr(described).encode("latin1")
    magic = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
    return magic + text.ljust(_HEADER - 11) + b"\n"


def _map(path: Path, dtype: Any, length: int) -> tuple[npt.NDArray[Any], mmap.mmap | None]:
    wanted = _header(dtype, length)
    size = _HEADER + length * np.dtype(dtype).itemsize
    with reading(path), path.open("rb") as file:
        if file.read(_HEADER) != wanted or os.fstat(file.fileno()).st_size != size:
            raise FormatError(f"{path}: is damaged or cut short: it does not fit {MANIFEST}")
        if length == 0:
            return np.empty(0, dtype), None
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, dtype, length, _HEADER), mapped


_PIECE = 1 << 24  # bytes of text that are read at a time


def stream_to_directory(
    source: Path, target: Path, *, svmlight: bool, options: TextOptions, names: tuple[str, ...] | None
) -> None:
    """Turn a text file into a data set directory; memory does not grow with its size."""
    if svmlight:
        options = _with_first_id(source, options)
    with DirectoryWriter(target) as writer:
        for part in read_parts(source, svmlight=svmlight, options=options):
            writer.add(part)
        if names is not None and len(names) != writer.n_labels:
            raise FormatError(
                f"{source}: has {writer.n_labels} labels, but there are {len(names)} label names"
            )
        writer.finish(names)


def read_parts(path: Path, *, svmlight: bool, options: TextOptions, piece: int = _PIECE) -> Iterator[Dataset]:
    """The rows of a text file in parts; where svmlight ids start must be known."""
    held, header, line, n_rows = b"", None, 1, 0
    for more in read_pieces(path, piece):
        held += more
        if header is None:
            header = read_header(path, _bytes(held), svmlight, options)
            options = _with_counts(options, header)
            held, line = held[header.size :], line + (header.size > 0)
        body, _ = without_empty_end(_bytes(held[: held.rfind(b"\n") + 1]))
        if len(body):
            part = Reader(path, body, body, Header(), svmlight, options, line).read()
            n_rows, line = n_rows + part.n_rows, line + int((body == ord("\n")).sum())
            held = held[len(body) :]
            yield part
    if header is None:
        raise FormatError(f"{path}: the file is empty")
    complete = held.endswith(b"\n") or not held
    body, n_empty = without_empty_end(_bytes(held if complete else held + b"\n"))
    if len(body):
        part = Reader(path, body, body, Header(), svmlight, options, line).read()
        n_rows += part.n_rows
        yield part
    counted = header.n_rows
    lacking = 0 if counted is None or svmlight else min(n_empty, max(0, counted - n_rows))
    if lacking:
        yield with_empty_rows(_nothing(options), lacking)
    if n_rows + lacking != (n_rows if counted is None else counted) or n_rows + lacking == 0:
        told = "the file has no rows" if counted is None else f"the header counts {counted} rows"
        raise FormatError(f"{path}: {told}; it has {n_rows + lacking}, it may be cut short")
    if not complete:
        warnings.warn(f"{path}: the last line has no newline; the file may be cut short", stacklevel=3)


def _bytes(text: bytes) -> U8:
    return np.frombuffer(text, np.uint8)


def _with_counts(options: TextOptions, header: Header) -> TextOptions:
    """The options with what the header tells and they do not."""
    n_features = header.n_features if options.n_features is None else options.n_features
    known = (options.n_labels, header.n_labels, options.n_names)
    n_labels = next((count for count in known if count is not None), None)
    zero_based = True if options.zero_based is None else options.zero_based
    return replace(options, n_features=n_features, n_labels=n_labels, zero_based=zero_based)


def _with_first_id(path: Path, options: TextOptions) -> TextOptions:
    """Options that say where the feature ids of an svmlight file start, which only all of it may tell."""
    if options.zero_based is not None:
        return options
    start = next(read_pieces(path, _PIECE), b"")
    if start and read_header(path, _bytes(start), True, options).n_rows is not None:
        return replace(options, zero_based=True)
    loose = replace(options, n_features=None, zero_based=True)
    parts = read_parts(path, svmlight=True, options=loose)
    lowest = min((int(part.X.indices.min()) for part in parts if part.X.nnz), default=0)
    return replace(options, zero_based=lowest == 0)


def _nothing(options: TextOptions) -> Dataset:
    def empty(n_cols: int | None) -> CSR:
        return CSR(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), n_cols or 0)

    return Dataset(empty(options.n_features), empty(options.n_labels))
