"""Vectors in a .npy file, such as sentence embeddings: one row for each text of a data file."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.data.load_save import PathLike
from labelwood.errors import FormatError

_KEPT = (np.float32, np.float16)  # types that kernels read as they are
_MAGIC, _ZIP = b"\x93NUMPY", b"PK"  # how .npy files and .npz archives begin
_BRAIN = np.dtype("V2")  # how .npy files name bfloat16: numbers of two bytes that NumPy does not know


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
    with open(path, "rb") as file:
        begins = file.read(len(_MAGIC))
    if begins.startswith(_ZIP):
        raise FormatError(f"{where}: must be a .npy file with one array; it is an .npz archive")
    if begins != _MAGIC:
        raise FormatError(f"{where}: is no whole .npy file of numbers. Save the vectors with numpy.save")
    try:
        with np.errstate(over="ignore"):  # a header may promise more numbers than there can be
            vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OverflowError) as error:
        told = str(error).partition("\n")[0]
        raise FormatError(f"{where}: is no whole .npy file of numbers ({told})") from None
    if vectors.ndim != 2:
        raise FormatError(f"{where}: vectors must be two-dimensional (rows x columns); got {vectors.ndim} dimensions")
    if vectors.dtype == _BRAIN:
        vectors = _as_bfloat16(vectors, where)
    elif vectors.dtype not in _KEPT:
        raise FormatError(
            f"{where}: vectors must be float32 or float16; got {vectors.dtype}. Save vectors.astype(numpy.float32)"
        )
    if 0 in vectors.shape:
        raise FormatError(f"{where}: vectors must have at least one row and one column; got {vectors.shape}")
    if not vectors.flags.c_contiguous:
        raise FormatError(
            f"{where}: vectors must lie row by row; the file is in Fortran order. Save numpy.ascontiguousarray(vectors)"
        )
    if n_rows is not None and len(vectors) != n_rows:
        raise FormatError(f"{where}: there must be one vector per text; got {len(vectors)} vectors for {n_rows} texts")
    found: npt.NDArray[Any] = vectors
    return found


def _as_bfloat16(vectors: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    try:
        import ml_dtypes  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - an optional package
    except ImportError:
        raise FormatError(f"{where}: vectors of bfloat16 need the package ml_dtypes: pip install ml_dtypes") from None
    return vectors.view(ml_dtypes.bfloat16)
