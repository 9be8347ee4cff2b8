"""PLT models of napkinXC: ``args.bin``, ``tree.bin`` and ``weights.bin``, as its C++ code writes them.

All numbers are little-endian, of the sizes of 64-bit Linux. A node has a classifier of its own, the root too, so our
root has the tool's root as its only child. Feature f of a row is column f + 2 of a weight vector, which has one column
more at its end; column 1 is the bias. Features that no training row has are not counted.
Scores are sigmoids, or ``exp(-max(0, 1 - margin)^2)``, multiplied along a path; the search is exact.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.importing.files import naming, read_bytes
from labelwood.importing.foreign_tree import ForeignTree, assemble
from labelwood.methods.label_tree.base import LinearModel
from labelwood.methods.label_tree.linear_tree import LinearTree
from labelwood.packed.label_tree import LOGISTIC
from labelwood.sparse import MAX_COLUMNS

_ARGS, _TREE, _WEIGHTS = "args.bin", "tree.bin", "weights.bin"
_PLT, _SQUARED_HINGE = 3, 1
_FIRST_FEATURE = 2
_CERTAIN = 10.0  # the score of a classifier that has seen one class only
_PAIR = np.dtype([("index", "<i4"), ("value", "<f4")])


class _Reader:
    """The bytes of one file, read from front to back."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def take(self, form: str) -> tuple[Any, ...]:
        """The next numbers, as ``struct`` describes them."""
        size = struct.calcsize("<" + form)
        return struct.unpack("<" + form, self.bytes(size))

    def array(self, dtype: npt.DTypeLike, size: int) -> npt.NDArray[Any]:
        """The next numbers of one type."""
        return np.frombuffer(self.bytes(size * np.dtype(dtype).itemsize), dtype)

    def bytes(self, size: int) -> bytes:
        """The next bytes."""
        if not 0 <= size <= len(self._content) - self._at:
            raise FormatError(f"the file ends at byte {len(self._content)}, within its data")
        self._at += size
        return self._content[self._at - size : self._at]

    def end(self) -> None:
        """Raise unless everything was read."""
        if self._at != len(self._content):
            raise FormatError(f"the file goes on behind its data, which ends at byte {self._at}")


class _Args(NamedTuple):
    version: str
    bias: float
    norm: bool


class _Classifiers(NamedTuple):
    node: npt.NDArray[Any]
    column: npt.NDArray[Any]
    value: npt.NDArray[Any]
    constant: npt.NDArray[Any]  # the score of a node without weights
    n_columns: int
    is_hinge: bool


def is_model(path: Path) -> bool:
    """True if the directory looks like a model of napkinXC."""
    return (path / _ARGS).is_file()


def read(path: Path) -> LinearModel:
    """The model in the output directory of a PLT."""
    with naming(path / _ARGS):
        args = _read_args(_Reader(read_bytes(path / _ARGS)))
    with naming(path / _TREE):
        parent, label = _read_tree(_Reader(read_bytes(path / _TREE)))
    with naming(path / _WEIGHTS):
        found = _read_classifiers(_Reader(read_bytes(path / _WEIGHTS)), len(parent) - 1)
    with naming(path):
        return _assembled(args, parent, label, found)


def _read_args(file: _Reader) -> _Args:
    (length,) = file.take("Q")
    version = file.bytes(length).decode("utf-8")
    bias, norm, hashed, threshold, kind, length = file.take("f?ifiQ")
    name = file.bytes(length).decode("utf-8")
    (n_members,) = file.take("i")
    file.end()
    if kind != _PLT:
        raise FormatError(f"only models of type plt can be imported; this is {name!r:.40}")
    if hashed:
        raise FormatError("a model of hashed features cannot be imported")
    if threshold > 0:
        raise FormatError("a model with a threshold for features cannot be imported")
    if n_members > 1:
        raise FormatError("an ensemble cannot be imported as one model; train a single PLT")
    return _Args(version, bias, norm)


def _read_tree(file: _Reader) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Parents and labels, with a root of our own as node 0 and the tool's node u as node u + 1."""
    _, n_nodes = file.take("ii")
    if n_nodes < 1:
        raise FormatError(f"the number of nodes must be at least 1; got {n_nodes}")
    index, label = file.array("<i4", 2 * n_nodes).reshape(-1, 2).T
    (root,) = file.take("i")
    parent = file.array("<i4", n_nodes)
    file.end()
    if not np.array_equal(index, np.arange(n_nodes)):
        raise FormatError("the nodes must be in the order of their numbers")
    if not 0 <= root < n_nodes or parent[root] != -1 or np.count_nonzero(parent < 0) != 1:
        raise FormatError("the tree must have one root")
    if parent.min() < -1 or parent.max() >= n_nodes:
        raise FormatError("every node must have a parent")
    return np.concatenate([[-1], parent.astype(np.int64) + 1]), np.concatenate([[-1], label])


def _read_classifiers(file: _Reader, n_nodes: int) -> _Classifiers:
    (size,) = file.take("i")
    if size != n_nodes:
        raise FormatError(f"there must be a classifier for each of the {n_nodes} nodes; there are {size}")
    constant = np.zeros(n_nodes + 1)
    parts: list[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]] = []
    losses, n_columns = set(), 0
    for node in range(1, n_nodes + 1):
        classes, first, loss = file.take("iii")
        losses.add(loss)
        if classes > 1:
            column, value, size = _read_vector(file)
            n_columns = max(n_columns, size)
            parts.append((node, column, value if first != 0 else -value))
        else:
            constant[node] = _CERTAIN if first == 1 else -_CERTAIN
    file.end()
    if len(losses - {_SQUARED_HINGE}) > 0 and _SQUARED_HINGE in losses:
        raise FormatError("all classifiers must have the same loss")
    empty = np.empty(0, np.int64)
    return _Classifiers(
        np.concatenate([empty, *(np.full(len(column), node) for node, column, _ in parts)]),
        np.concatenate([empty, *(column for _, column, _ in parts)]),
        np.concatenate([np.empty(0), *(value for *_, value in parts)]),
        constant,
        n_columns,
        _SQUARED_HINGE in losses,
    )


def _read_vector(file: _Reader) -> tuple[npt.NDArray[Any], npt.NDArray[Any], int]:
    """Columns and weights that are not zero, and the number of columns."""
    _, _, size, n_stored, is_sparse = file.take("QQQQ?")
    if is_sparse:
        pairs = file.array(_PAIR, n_stored)
        column, value = pairs["index"].astype(np.int64), pairs["value"]
    else:
        whole = file.array("<f4", size)
        column = np.flatnonzero(whole)
        value = whole[column]
    (has_gradients,) = file.take("?")
    if has_gradients:
        n_columns, n_stored, is_sparse = file.take("QQ?")
        file.bytes(n_stored * _PAIR.itemsize if is_sparse else 4 * n_columns)
    if len(column) and column.min() < 1:
        raise FormatError("a weight belongs to column 0, which no row has")
    if size > MAX_COLUMNS:
        raise FormatError(f"a classifier must have at most {MAX_COLUMNS} columns; got {size}")
    return column, value, max(size - 1, int(column.max(initial=0)) + 1)


def _assembled(args: _Args, parent: npt.NDArray[Any], label: npt.NDArray[Any], found: _Classifiers) -> LinearModel:
    is_bias = found.column == 1
    if np.any(np.bincount(found.node[is_bias], minlength=1) > 1):
        raise FormatError("a classifier has two biases")
    bias = found.constant.copy()
    bias[found.node[is_bias]] = found.value[is_bias] * args.bias
    rest = ~is_bias
    feature = found.column[rest] - _FIRST_FEATURE
    tree = ForeignTree(parent, label, found.node[rest], feature, found.value[rest], bias)
    link = 2 if found.is_hinge else LOGISTIC
    estimator = LinearTree(
        arity=2, max_leaf=100, loss="squared_hinge" if found.is_hinge else "logistic", C=10.0, tolerance=0.1,
        max_passes=100, intercept=0.0, bias=1.0, normalize=args.norm, score_power=2, weight_dtype="float32",
        search="exact",
    )  # fmt: skip
    return assemble(estimator, [tree], found.n_columns - _FIRST_FEATURE, link, source=f"napkinXC {args.version}")
