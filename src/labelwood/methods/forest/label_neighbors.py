"""The nearest neighbours of rows by the labels they carry: the graph that GraphForest cuts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelwood import _core
from labelwood.errors import LabelwoodError
from labelwood.label_names import LabelNames
from labelwood.sparse import CSR, F32, I32, I64
from labelwood.validation.targets import distinct_names, is_matrix, read_matrix, read_rows, to_csr

GRAPHS = ("tail", "idf")


class Neighbors(NamedTuple):
    """``rows`` i32 and ``similarity`` f32, both [rows, k], most similar first; short rows end in -1 and 0."""

    rows: I32
    similarity: F32


def label_neighbors(Y: Any, k: int = 10, *, label_threshold: int = 50, graph: str = "tail") -> Neighbors:
    """The k rows with the most similar labels for each row, found through an inverted index.

    Y is a 0/1 matrix or lists of label names. ``graph`` "tail" divides the number of shared labels by the product of
    the rows' numbers of labels, and counts only labels of fewer than ``label_threshold`` rows; if no row has a
    neighbour, the threshold doubles until one has. "idf" takes the cosine of labels weighted by ``log(n / n_l)``; of a
    label of ``label_threshold`` rows or more it compares a row only with the next ``label_threshold - 1``. A row is
    never its own neighbour, and rows that share no label are not neighbours.

    >>> label_neighbors([["sea", "ship"], ["sea", "ship"], ["sea", "fish"], ["tree"]], k=2).rows.tolist()
    [[1, 2], [0, 2], [0, 1], [-1, -1]]
    """
    _check("k", k, 1)
    _check("label_threshold", label_threshold, 2)
    if graph not in GRAPHS:
        raise LabelwoodError(f"label_neighbors: graph must be one of {', '.join(map(repr, GRAPHS))}; got {graph!r}")
    matrix = _read(Y)
    ptr, neighbors, similarity = label_graph(matrix, k, label_threshold=label_threshold, graph=graph)
    rows = np.full((matrix.n_rows, k), -1, np.int32)
    alike = np.zeros((matrix.n_rows, k), np.float32)
    filled = np.arange(k) < np.diff(ptr)[:, None]
    rows[filled], alike[filled] = neighbors, similarity
    return Neighbors(rows, alike)


def label_graph(Y: CSR, k: int, *, label_threshold: int, graph: str, fill: bool = False) -> tuple[I64, I32, F32]:
    """The same graph as (ptr, neighbors, similarity): those of row i are ``ptr[i]:ptr[i + 1]``."""
    options = {"graph": graph, "n_neighbors": min(k, max(Y.n_rows, 1)), "threshold": label_threshold, "fill": fill}
    ptr, neighbors, similarity = _core.label_graph(Y, options)
    return ptr, neighbors, similarity


def _check(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < 2**31:
        raise LabelwoodError(f"label_neighbors: {name} must be an integer, at least {least}; got {value!r}")


def _read(Y: Any) -> CSR:
    owner = "label_neighbors"
    if isinstance(Y, CSR):
        return Y.check()
    if is_matrix(Y):
        return read_matrix(Y, owner=owner)
    rows = read_rows(Y, owner=owner)
    names = LabelNames.of(distinct_names(rows, owner=owner))
    return to_csr(rows, names.index, len(names), owner=owner)
