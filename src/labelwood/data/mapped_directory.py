"""Data sets as directories of plain arrays, for data that may be larger than memory (format ``lw``).

``dataset.json`` holds the counts. ``X_indptr``, ``X_indices``, ``X_data``, ``Y_indptr`` and ``Y_indices`` are ``.npy``
files: they are written part by part and mapped when they are read. ``labels.txt`` holds the label names, if there are
any.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.data._files import reading
from labelwood.data.dataset import Dataset
from labelwood.data.label_file import NAMES_FILE, encode_names, read_names
from labelwood.errors import FormatError, LabelwoodError
from labelwood.sparse import CSR, MAX_COLUMNS, MappedCSR
from labelwood.storage.atomic import OwnDirectory, atomic_directory

FORMAT, VERSION, MANIFEST = "labelwood-dataset", 1, "dataset.json"
_TYPES = {
    "X_indptr": np.int64, "X_indices": np.int32, "X_data": np.float32, "Y_indptr": np.int64, "Y_indices": np.int32,
}  # fmt: skip
# The header of an array file has a fixed size, so that it can be written after the data.
_HEADER_BYTES = 128
_COUNTS = ("rows", "features", "labels", "feature_entries", "label_entries")


def is_directory(path: Path) -> bool:
    """True if the path is a data set directory."""
    return (path / MANIFEST).is_file()


def _files_of(path: Path) -> list[str]:
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    if manifest["format"] != FORMAT:
        raise ValueError(manifest["format"])
    return [MANIFEST, NAMES_FILE, *(f"{name}.npy" for name in _TYPES)]


_DATA_SET = OwnDirectory("Labelwood data set", _files_of)


def write_directory(path: Path, parts: Iterable[Dataset], label_names: tuple[str, ...] | None = None) -> None:
    """Write the rows of all parts as one data set; it replaces the one at ``path`` when it is complete.

    Only one part is held in memory at a time.
    """
    with atomic_directory(path, _DATA_SET) as folder:
        counts = _write_parts(folder, parts)
        manifest = {"format": FORMAT, "version": VERSION, **counts}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        if label_names is not None:
            (folder / NAMES_FILE).write_bytes(encode_names(label_names))


def read_directory(path: Path) -> Dataset:
    """Read a data set; its features are mapped, and their values are checked when they are first used."""
    counts = _read_counts(path / MANIFEST)
    arrays, maps = {}, []
    for name, length in _lengths(counts).items():
        arrays[name], mapped = _map_array(path / f"{name}.npy", _TYPES[name], length)
        if name in ("X_indices", "X_data") and mapped is not None:
            maps.append(mapped)
    X = MappedCSR(np.array(arrays["X_indptr"]), arrays["X_indices"], arrays["X_data"], counts["features"], tuple(maps))
    ones = np.ones(counts["label_entries"], np.float32)
    try:
        Y = CSR(np.array(arrays["Y_indptr"]), np.array(arrays["Y_indices"]), ones, counts["labels"]).check()
    except LabelwoodError as error:
        raise FormatError(f"{path}: {error}") from None
    names = read_names(path / NAMES_FILE) if (path / NAMES_FILE).exists() else None
    if names is not None and len(names) != Y.n_cols:
        raise FormatError(f"{path / NAMES_FILE}: {len(names)} names for {Y.n_cols} labels")
    return Dataset(X, Y, names)


def _write_parts(folder: Path, parts: Iterable[Dataset]) -> dict[str, int]:
    """Append the rows of each part to the array files; return the counts of the whole data set."""
    counts = dict.fromkeys(_COUNTS, 0)
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context((folder / f"{name}.npy").open("xb")) for name in _TYPES}
        for name, file in files.items():
            file.write(bytes(_HEADER_BYTES))
            if name.endswith("_indptr"):
                file.write(np.zeros(1, np.int64).tobytes())
        for part in parts:
            for name, matrix, entries in (("X", part.X, "feature_entries"), ("Y", part.Y, "label_entries")):
                files[f"{name}_indptr"].write((matrix.indptr[1:] + counts[entries]).tobytes())
                files[f"{name}_indices"].write(np.ascontiguousarray(matrix.indices).data)
                counts[entries] += matrix.nnz
            files["X_data"].write(np.ascontiguousarray(part.X.data).data)
            counts["rows"] += part.n_rows
            counts["features"] = max(counts["features"], part.X.n_cols)
            counts["labels"] = max(counts["labels"], part.Y.n_cols)
        for name, length in _lengths(counts).items():
            files[name].seek(0)
            files[name].write(_array_header(_TYPES[name], length))
    return counts


def _read_counts(path: Path) -> dict[str, int]:
    with reading(path):
        text = path.read_text(encoding="utf-8")
    try:
        manifest = json.loads(text)
        counts = {name: manifest[name] for name in _COUNTS}
    except (ValueError, TypeError, KeyError):
        raise FormatError(f"{path}: the file is damaged") from None
    if manifest.get("format") != FORMAT or manifest.get("version") != VERSION:
        raise FormatError(f"{path}: not a data set that this version of Labelwood can read")
    if any(type(count) is not int or not count >= 0 for count in counts.values()):
        raise FormatError(f"{path}: the counts must be integers, at least 0")
    if max(counts["features"], counts["labels"]) > MAX_COLUMNS:
        raise FormatError(f"{path}: at most {MAX_COLUMNS} features and labels are supported")
    return counts


def _lengths(counts: dict[str, int]) -> dict[str, int]:
    """Entries of each array."""
    return {
        "X_indptr": counts["rows"] + 1,
        "X_indices": counts["feature_entries"],
        "X_data": counts["feature_entries"],
        "Y_indptr": counts["rows"] + 1,
        "Y_indices": counts["label_entries"],
    }


def _array_header(dtype: Any, length: int) -> bytes:
    described = {"descr": np.dtype(dtype).newbyteorder("<").str, "fortran_order": False, "shape": (length,)}
    text = repr(described).encode("latin1")
    magic = b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little")
    return magic + text.ljust(_HEADER_BYTES - 11) + b"\n"


def _map_array(path: Path, dtype: Any, length: int) -> tuple[npt.NDArray[Any], mmap.mmap | None]:
    expected = _array_header(dtype, length)
    size = _HEADER_BYTES + length * np.dtype(dtype).itemsize
    with reading(path), path.open("rb") as file:
        if file.read(_HEADER_BYTES) != expected or os.fstat(file.fileno()).st_size != size:
            raise FormatError(f"{path}: the file is damaged or truncated: it does not match {MANIFEST}")
        if length == 0:
            return np.empty(0, dtype), None
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, dtype, length, _HEADER_BYTES), mapped
