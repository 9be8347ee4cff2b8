"""Reads the X of a user: sparse and dense matrices, tables, vectors, and blocks of them side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.hybrid import Hybrid, beside, check_vectors, widened, without_words
from labelwood.sparse import CSR, MAX_COLUMNS, from_scipy

_KEPT = (np.float32, np.float16)  # types of vectors that are not converted
_BRAIN = "bfloat16"  # of the package ml_dtypes


def as_features(X: Any, *, owner: str, n_features: int | None = None) -> CSR:
    """Convert the X of a user to checked rows.

    X is a CSR, a scipy sparse matrix, a dense two-dimensional array, an Arrow array of fixed-size lists, or a mapping
    of names to such blocks, which stand side by side: sparse ones first. A dense array becomes vectors if at least half
    of its entries differ from zero, else a sparse matrix; a dense block of a mapping becomes vectors in any case. Error
    messages start with ``owner``. ``n_features`` is the number of features that the model was trained with.
    """
    matrix = _from_blocks(X, owner) if isinstance(X, Mapping) else _from_block(X, owner, may_be_sparse=True)
    if n_features is not None and matrix.n_cols != n_features:
        raise LabelwoodError(
            f"{owner}: X has {matrix.n_cols} features, but {owner} is expecting {n_features} features as input"
        )
    return matrix


def _from_block(X: Any, owner: str, *, may_be_sparse: bool) -> CSR:
    import scipy.sparse as sp  # noqa: PLC0415 - importing labelwood must not import scipy

    if isinstance(X, CSR):
        return X.check()
    given: Any = X if sp.issparse(X) else _as_array(X)
    if given.ndim != 2:
        raise LabelwoodError(
            f"{owner}: X must be two-dimensional (rows x features); got {given.ndim}-d input. "
            "Reshape your data: pass a single row as X.reshape(1, -1)."
        )
    _refuse_complex(given, owner)
    if sp.issparse(X):
        if given.dtype.kind not in "biuf":
            raise LabelwoodError(f"{owner}: X must hold real numbers; got dtype {given.dtype}")
        return from_scipy(given)
    vectors = as_vectors(given, owner=owner)
    if may_be_sparse and 2 * np.count_nonzero(vectors) < vectors.size:
        return from_scipy(sp.csr_array(widened(vectors)))
    return without_words(vectors)


def _from_blocks(blocks: Mapping[Any, Any], owner: str) -> CSR:
    """Blocks side by side, in the order of the mapping: the sparse ones, then the dense ones."""
    import scipy.sparse as sp  # noqa: PLC0415 - importing labelwood must not import scipy

    if not blocks:
        raise LabelwoodError(f"{owner}: X must have at least one block; got an empty mapping")
    parts = {
        name: _from_block(block, f"{owner}: block {name!r}", may_be_sparse=False) for name, block in blocks.items()
    }
    lengths = {name: part.n_rows for name, part in parts.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name!r} has {count}" for name, count in lengths.items())
        raise LabelwoodError(f"{owner}: the blocks of X must have the same number of rows; {told}")
    sparse = [part for part in parts.values() if not isinstance(part, Hybrid)]
    dense = [part.vectors for part in parts.values() if isinstance(part, Hybrid)]
    if any(isinstance(part, Hybrid) and part.n_sparse for part in parts.values()):
        raise LabelwoodError(f"{owner}: a block of X must be sparse or dense; got a block of both")
    if not sparse:
        return without_words(_joined(dense))
    words = sparse[0] if len(sparse) == 1 else from_scipy(sp.hstack([part.to_scipy() for part in sparse], "csr"))
    return beside(words, _joined(dense)) if dense else words


def _joined(dense: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return dense[0] if len(dense) == 1 else np.hstack([widened(part) for part in dense])


def as_vectors(given: Any, *, owner: str, what: str = "X") -> npt.NDArray[Any]:
    """Checked vectors, row by row in memory: float32 and float16 as they are, bfloat16 as bits, others as float32.

    Error messages start with ``owner`` and call the vectors ``what``.
    """
    array = _as_array(given)
    if array.ndim != 2:
        raise LabelwoodError(f"{owner}: vectors must be two-dimensional (rows x columns); got {array.ndim}-d input")
    if array.shape[1] > MAX_COLUMNS:
        raise LabelwoodError(f"{owner}: at most {MAX_COLUMNS} columns are supported; got {array.shape[1]}")
    if array.dtype.name == _BRAIN:
        array = array.view(np.uint16)
    elif array.dtype.kind not in "biuf":
        try:
            array = np.asarray(array.tolist(), np.float32)
        except (TypeError, ValueError):
            raise LabelwoodError(f"{owner}: {what} must hold real numbers; got dtype {array.dtype}") from None
    elif array.dtype not in _KEPT:
        with np.errstate(over="ignore"):  # a number too large for float32 becomes infinity, which is refused
            array = array.astype(np.float32)
    check_vectors(array, owner, what)
    return np.ascontiguousarray(array)


def _as_array(given: Any) -> npt.NDArray[Any]:
    """An array; lists of fixed size of Arrow become its rows without a copy, where Arrow can."""
    kind = getattr(given, "type", None)
    size = getattr(kind, "list_size", None)
    if isinstance(size, int):
        if given.null_count:
            raise LabelwoodError("X: a list of numbers is missing (null)")
        whole = given.combine_chunks() if hasattr(given, "combine_chunks") else given
        flat: npt.NDArray[Any] = whole.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(-1, size)
    try:
        return np.asarray(given)
    except ValueError:
        raise LabelwoodError("X: all rows must have the same length") from None


def _refuse_complex(values: Any, owner: str) -> None:
    if values.dtype.kind == "c":
        raise LabelwoodError(f"{owner}: X must hold real numbers. Complex data not supported")
