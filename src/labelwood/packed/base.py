"""What packed models share: pickling of their fields alone, and the checks of what was read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.sparse import CSR, I64, never_falls


class PicklesFieldsOnly:
    """A frozen dataclass of which only the fields are pickled and copied.

    Kernels cannot be pickled. Cached properties are made anew on first use.
    """

    def __getstate__(self) -> dict[str, Any]:
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]  # subclasses are dataclasses
        return {name: getattr(self, name) for name in names}


def require(owner: str, condition: Any, message: str) -> None:
    """Raise a :class:`FormatError` unless the condition holds."""
    if not condition:
        raise FormatError(f"{owner}: {message}")


def pointer_to(counts: npt.ArrayLike) -> I64:
    """Where each of several parts of these sizes begins if they lie end to end, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64))]).astype(np.int64)


def check_pointer(owner: str, name: str, pointer: npt.NDArray[Any], n_rows: int, total: int) -> None:
    """Require that a pointer array rises from 0 to ``total`` over ``n_rows`` rows."""
    fits = len(pointer) == n_rows + 1 and pointer[0] == 0 and pointer[-1] == total and never_falls(pointer)
    require(owner, fits, f"{name} must rise from 0 to {total} over {n_rows} rows")


def restored_csr(arrays: Mapping[str, Any], prefix: str, n_cols: int) -> CSR:
    """The matrix whose arrays have names that begin with ``prefix``; checks every invariant."""
    indptr, indices, data = (arrays[prefix + part] for part in ("indptr", "indices", "data"))
    if (indptr.dtype, indices.dtype, data.dtype) != (np.int64, np.int32, np.float32):
        raise FormatError(f"{prefix}indptr, indices and data must be of int64, int32 and float32")
    return CSR(indptr, indices, data, n_cols).check()
