"""The files of a foreign model: opened without following surprises, and errors that name them."""

from __future__ import annotations

import contextlib
import io
import json
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError, LabelwoodError

# The errors that damaged files cause while they are read.
_UNSOUND = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, EOFError, NotImplementedError)
_ZIPPED = (zipfile.BadZipFile, RuntimeError, SyntaxError, OSError)  # OSError: of a seek within bytes in memory
_LARGEST_JSON = 1 << 20


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let every error of the block name the file that it comes from."""
    try:
        yield
    except FormatError as error:
        text = str(error)
        raise FormatError(text if text.startswith(str(path)) else f"{path}: {text}") from None
    except LabelwoodError as error:
        raise FormatError(f"{path}: {error}") from None
    except _UNSOUND as error:
        raise FormatError(f"{path}: damaged ({' '.join(str(error).split()) or type(error).__name__})") from None


def read_bytes(path: Path) -> bytes:
    """The content of a plain file."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise FormatError(f"{path}: not a plain file")
    return path.read_bytes()


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a small file."""
    content = read_bytes(path)
    if len(content) > _LARGEST_JSON:
        raise FormatError(f"{path}: larger than {_LARGEST_JSON} bytes")
    with naming(path):
        try:
            found = json.loads(content.decode("utf-8"))
        except RecursionError:
            raise FormatError("its JSON is nested too deeply") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path}: must hold a JSON object")
    return found


def count(holder: dict[str, Any], name: str, path: Path, least: int = 0) -> int:
    """A whole number of a JSON object."""
    value = holder.get(name)
    if type(value) is not int or not least <= value < 2**31:
        raise FormatError(f"{path}: {name} must be a whole number, {least} or more; got {value!r:.60}")
    return value


def whole(numbers: npt.NDArray[Any], what: str) -> npt.NDArray[np.int64]:
    """Numbers that count or number something, as integers."""
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < 2**53 and np.all(numbers == np.floor(numbers))):
        raise FormatError(f"{what} must be whole numbers, 0 or more")
    return numbers.astype(np.int64)


class Entries(NamedTuple):
    """Row, column and value of every entry of a matrix."""

    shape: tuple[int, int]
    row: npt.NDArray[Any]
    column: npt.NDArray[Any]
    value: npt.NDArray[Any]


def read_matrix(path: Path) -> Entries:
    """The sparse matrix in a file that scipy saved, without pickle."""
    content = read_bytes(path)
    with naming(path):
        if content[:2] != b"PK":
            raise FormatError("not a matrix that scipy saved")
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as parts:
                claimed = sum(part.file_size for part in parts.infolist())
            if claimed > 64 * len(content) + 2**20:
                raise FormatError(f"its arrays claim {claimed} bytes in a file of {len(content)}")
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in ("indptr", "indices", "data", "shape", "format")}
        except _ZIPPED as error:
            raise FormatError(f"damaged ({error})") from None
        except MemoryError:
            raise FormatError("its arrays claim more memory than there is") from None
        return _entries(arrays)


def _entries(arrays: dict[str, npt.NDArray[Any]]) -> Entries:
    form = arrays["format"].item()
    form = form.decode("ascii") if isinstance(form, bytes) else form
    if form not in ("csr", "csc"):
        raise FormatError(f"the matrix must be csr or csc; it is {form!r:.20}")
    indptr, indices, data, shape = (arrays[name] for name in ("indptr", "indices", "data", "shape"))
    if any(array.ndim != 1 for array in (indptr, indices, data, shape)) or data.dtype.kind != "f" or len(shape) != 2:
        raise FormatError("the arrays of the matrix must be one-dimensional, and its values floats")
    rows, columns = (int(side) for side in whole(shape, "shape"))
    outer, inner = (rows, columns) if form == "csr" else (columns, rows)
    pointer, minor = whole(indptr, "indptr"), whole(indices, "indices")
    if len(pointer) != outer + 1 or pointer[0] != 0 or pointer[-1] != len(minor) or np.any(np.diff(pointer) < 0):
        raise FormatError("indptr does not fit the matrix")
    if len(minor) != len(data) or (len(minor) and minor.max() >= inner):
        raise FormatError("indices do not fit the matrix")
    major = np.repeat(np.arange(outer), np.diff(pointer))
    row, column = (major, minor) if form == "csr" else (minor, major)
    return Entries((rows, columns), row, column, data)
