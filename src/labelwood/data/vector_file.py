"""Vectors in a .npy file, such as sentence embeddings: one row for each text of a data file."""

from __future__ import annotations

import math
import os
import re
import stat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.data.load_save import PathLike
from labelwood.errors import FormatError

_KEPT = (np.float32, np.float16)  # types that kernels read as they are
_BRAIN = np.dtype("V2")  # how .npy files name bfloat16: numbers of two bytes that NumPy does not know

_LONGEST_HEADER = 10_000
_BEGINS = {b"\x93NUMPY\x01\x00": 10, b"\x93NUMPY\x02\x00": 12, b"\x93NUMPY\x03\x00": 12}  # of the header, by version
_HEADER = re.compile(
    rb"\{\s*'descr':\s*'([<>|=][biufcSUV][0-9]{1,6})',\s*'fortran_order':\s*(True|False),"
    rb"\s*'shape':\s*\(([0-9, ]{0,200})\),?\s*\}\s*"
)


def load_vectors(path: PathLike, *, n_rows: int | None = None) -> npt.NDArray[Any]:
    """Map a .npy file of float32, float16 or bfloat16 vectors; ``n_rows`` is the number of texts that they belong to.

    The rows stay in the file until they are used. Files of bfloat16 need the package ml_dtypes.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "vectors.npy")
    >>> np.save(path, np.ones((2, 3), np.float32))
    >>> load_vectors(path, n_rows=2).shape
    (2, 3)
    """
    where = os.fspath(path)
    header = _read_header(Path(path))
    dtype, shape = header.dtype, header.shape
    if len(shape) != 2:
        raise FormatError(f"{where}: vectors must be two-dimensional (rows x columns); got {len(shape)} dimensions")
    if dtype not in (*_KEPT, _BRAIN):
        raise FormatError(
            f"{where}: vectors must be float32 or float16; got {dtype}. Save vectors.astype(numpy.float32)"
        )
    if 0 in shape:
        raise FormatError(f"{where}: vectors must have at least one row and one column; got {shape}")
    if header.is_by_columns and 1 not in shape:
        raise FormatError(
            f"{where}: vectors must lie row by row; the file is in Fortran order. Save numpy.ascontiguousarray(vectors)"
        )
    if n_rows is not None and shape[0] != n_rows:
        raise FormatError(f"{where}: there must be one vector per text; got {shape[0]} vectors for {n_rows} texts")
    vectors = np.memmap(path, dtype, "r", header.size, shape)
    return _as_bfloat16(vectors, where) if dtype == _BRAIN else vectors


class _Header(NamedTuple):
    """What the header of a file says, and its own size."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_by_columns: bool
    size: int


def _read_header(path: Path) -> _Header:
    """The header of a file that holds the array it tells of. NumPy would evaluate it with Python's parser."""
    if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
        raise FormatError(f"{path}: must be a plain file, which can be mapped")
    with path.open("rb") as file:
        start = file.read(_LONGEST_HEADER)
        size = os.fstat(file.fileno()).st_size
    if start.startswith(b"PK"):
        raise FormatError(f"{path}: must be a .npy file with one array; it is an .npz archive")
    if start[:8] not in _BEGINS:
        raise FormatError(f"{path}: is no whole .npy file of numbers. Save the vectors with numpy.save")
    begin = _BEGINS[start[:8]]
    end = begin + int.from_bytes(start[8:begin], "little")
    found = _HEADER.fullmatch(start[begin:end])
    if found is None:
        raise FormatError(f"{path}: is no whole .npy file of numbers (its header is damaged)")
    shape = tuple(map(int, re.findall(rb"\d+", found[3])))
    try:
        dtype = np.dtype(found[1].decode())
    except TypeError:
        raise FormatError(f"{path}: is no whole .npy file of numbers (its type is damaged)") from None
    if end + math.prod(shape) * dtype.itemsize > size:
        raise FormatError(f"{path}: is no whole .npy file of numbers ({size} bytes do not hold {dtype} {shape})")
    return _Header(dtype, shape, found[2] == b"True", end)


def _as_bfloat16(vectors: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    try:
        import ml_dtypes  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - an optional package
    except ImportError:
        raise FormatError(f"{where}: vectors of bfloat16 need the package ml_dtypes: pip install ml_dtypes") from None
    return vectors.view(ml_dtypes.bfloat16)
