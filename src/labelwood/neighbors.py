"""The nearest neighbours of rows by the labels they carry: the graph that GraphForest cuts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelwood import _core, labels
from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR, F32, I32, I64

GRAPHS = ("tail", "idf")


class Neighbors(NamedTuple):
    """``rows`` i32 and ``similarity`` f32, both [rows, k], most alike first; short rows end in -1 and 0."""

    rows: I32
    similarity: F32


def label_neighbors(Y: Any, k: int = 10, *, label_threshold: int = 50, graph: str = "tail") -> Neighbors:
    """The k rows whose labels are most like those of each row, found through an inverted index.

    Y is a 0/1 matrix or lists of label names. ``graph`` "tail" compares rows by shared labels over the
    product of their numbers of labels and counts only labels of fewer than ``label_threshold`` rows; where
    nobody has a neighbour, the threshold doubles until someone has. "idf" compares by cosine with labels
    weighted ``log(n / n_l)``, and follows a label of ``label_threshold`` rows or more only to the next
    ``label_threshold - 1`` of them. A row is never its own neighbour; rows that share nothing are none.

    >>> label_neighbors([["sea", "ship"], ["sea", "ship"], ["sea", "fish"], ["tree"]], k=2).rows.tolist()
    [[1, 2], [0, 2], [0, 1], [-1, -1]]
    """
    _check("k", k, 1)
    _check("label_threshold", label_threshold, 2)
    if graph not in GRAPHS:
        raise LabelwoodError(
            f"label_neighbors: graph must be one of {', '.join(map(repr, GRAPHS))}; got {graph!r}"
        )
    matrix = _read(Y)
    ptr, neighbors, similarity = label_graph(matrix, k, label_threshold=label_threshold, graph=graph)
    rows = np.full((matrix.n_rows, k), -1, np.int32)
    alike = np.zeros((matrix.n_rows, k), np.float32)
    filled = np.arange(k) < np.diff(ptr)[:, None]
    rows[filled], alike[filled] = neighbors, similarity
    return Neighbors(rows, alike)


def label_graph(Y: CSR, k: int, *, label_threshold: int, graph: str) -> tuple[I64, I32, F32]:
    """The same graph as (ptr, neighbors, similarity): those of row i are ``ptr[i]:ptr[i + 1]``."""
    options = {"graph": graph, "n_neighbors": min(k, max(Y.n_rows, 1)), "threshold": label_threshold}
    ptr, neighbors, similarity = _core.label_graph(Y, options)
    return ptr, neighbors, similarity


def _check(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value < 2**31:
        raise LabelwoodError(f"label_neighbors: {name} must be an integer, at least {least}; got {value!r}")


def _read(Y: Any) -> CSR:
    owner = "label_neighbors"
    if isinstance(Y, CSR):
        return Y.check()
    if labels.is_matrix(Y):
        return labels.read_matrix(Y, owner=owner)
    rows = labels.read_rows(Y, owner=owner)
    names = labels.LabelNames.of(labels.distinct_names(rows, owner=owner))
    return labels.to_csr(rows, names.index, len(names), owner=owner)
