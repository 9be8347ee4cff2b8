"""The ``npz`` format: the arrays of X and Y in one NumPy archive, without pickle.

The archive holds ``X_indptr``, ``X_indices``, ``X_data``, ``X_shape``, ``Y_indptr``, ``Y_indices``, ``Y_shape`` and, if
the labels have names, ``label_names``: the UTF-8 bytes of a names file.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.data._files import check_claim, reading, writing
from labelwood.data.dataset import Dataset
from labelwood.data.label_file import decode_names, encode_names
from labelwood.errors import FormatError, LabelwoodError
from labelwood.sparse import CSR, MAX_COLUMNS

_INTEGERS = ("X_indptr", "X_indices", "X_shape", "Y_indptr", "Y_indices", "Y_shape")


def read_npz(path: Path, max_memory: int | None = None) -> Dataset:
    """Read a data set from an archive and check every invariant."""
    arrays = _read_arrays(path, max_memory)
    for name in _INTEGERS:
        if arrays[name].dtype.kind not in "iu":
            raise FormatError(f"{path}: {name} must hold integers; got {arrays[name].dtype}")
    if arrays["X_data"].dtype.kind not in "fiub":
        raise FormatError(f"{path}: X_data must hold real numbers; got {arrays['X_data'].dtype}")
    X = _matrix(path, "X", arrays, arrays["X_data"])
    Y = _matrix(path, "Y", arrays, np.ones(len(arrays["Y_indices"]), np.float32))
    try:
        return Dataset(X, Y, _names(path, arrays)).check()
    except FormatError:
        raise
    except LabelwoodError as error:
        raise FormatError(f"{path}: {error}") from None


def write_npz(path: Path, dataset: Dataset) -> None:
    """Write a data set as an uncompressed archive."""
    arrays: dict[str, Any] = {
        f"{name}_{part}": value
        for name, matrix in (("X", dataset.X), ("Y", dataset.Y))
        for part, value in (
            ("indptr", matrix.indptr),
            ("indices", matrix.indices),
            ("shape", np.array([matrix.n_rows, matrix.n_cols], dtype=np.int64)),
        )
    }
    arrays["X_data"] = dataset.X.data
    if dataset.label_names is not None:
        arrays["label_names"] = np.frombuffer(encode_names(dataset.label_names), dtype=np.uint8)
    with writing(path) as stream:
        np.savez(stream, **arrays)


def _read_arrays(path: Path, max_memory: int | None) -> dict[str, npt.NDArray[Any]]:
    try:
        with reading(path), path.open("rb") as file:
            if file.read(2) != b"PK":
                raise FormatError(f"{path}: not a .npz archive")
            with zipfile.ZipFile(file) as parts:
                size = sum(part.file_size for part in parts.infolist())
            check_claim(path, "its decompressed arrays", size, max_memory)
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                missing = [name for name in (*_INTEGERS, "X_data") if name not in archive]
                if missing:
                    raise FormatError(
                        f"{path}: the archive has no array {missing[0]}; labelwood.data.save writes such archives"
                    )
                arrays = {name: archive[name] for name in (*_INTEGERS, "X_data", "label_names") if name in archive}
    except FormatError:
        raise
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError, SyntaxError) as error:
        raise FormatError(f"{path}: broken .npz archive ({error})") from None
    for name, array in arrays.items():
        if array.ndim != 1:
            raise FormatError(f"{path}: {name} must be one-dimensional; got shape {array.shape}")
    return arrays


def _matrix(path: Path, name: str, arrays: dict[str, npt.NDArray[Any]], data: npt.NDArray[Any]) -> CSR:
    indptr, indices, shape = (arrays[f"{name}_{part}"] for part in ("indptr", "indices", "shape"))
    if len(shape) != 2 or shape[0] != len(indptr) - 1 or not 0 <= shape[1] <= MAX_COLUMNS:
        raise FormatError(
            f"{path}: {name}_shape must be the number of rows, {len(indptr) - 1}, and of columns; got {shape}"
        )
    if len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]:
        raise FormatError(f"{path}: {name}_indices must be in [0, {shape[1]}); got {indices.min()}..{indices.max()}")
    with np.errstate(over="ignore"):  # check() refuses the infinities
        values = np.ascontiguousarray(data, dtype=np.float32)
    return CSR(
        np.ascontiguousarray(indptr, dtype=np.int64),
        np.ascontiguousarray(indices, dtype=np.int32),
        values,
        int(shape[1]),
    )


def _names(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> tuple[str, ...] | None:
    if "label_names" not in arrays:
        return None
    if arrays["label_names"].dtype != np.uint8:
        raise FormatError(f"{path}: label_names must hold bytes; got {arrays['label_names'].dtype}")
    return decode_names(arrays["label_names"].tobytes(), f"{path}: label_names")
