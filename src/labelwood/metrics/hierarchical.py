"""Metrics that know the hierarchy of the labels: a wrong label near a right one is better than one far away.

Hierarchical precision, recall and F1 (Kiritchenko et al., 2005) compare sets with all ancestors added, summed over all
rows: hP is the share of the predicted concepts, ancestors included, that are true concepts or ancestors of them. A
*near miss* is a wrong label that is a parent or a child of a right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelwood.sparse import CSR, I64, TopK

if TYPE_CHECKING:
    import scipy.sparse as sp


def hierarchical_scores(Y: CSR, top: TopK, above: CSR, k: int) -> dict[str, float]:
    """``hP@k``, ``hR@k`` and ``hF1@k`` of the first k labels of each row.

    ``above`` has a row for each label: the label's own node and those of all its ancestors.
    """
    predicted = _with_ancestors(_first(top, k, Y.n_cols), above)
    true = _with_ancestors(_matrix(Y), above)
    common = predicted.multiply(true).nnz
    precision, recall = common / max(predicted.nnz, 1), common / max(true.nnz, 1)
    f1 = 2 * common / max(predicted.nnz + true.nnz, 1)
    return {f"hP@{k}": precision, f"hR@{k}": recall, f"hF1@{k}": f1}


def near_miss_share(Y: CSR, top: TopK, near: CSR, k: int) -> float:
    """The share of the first k places of all rows that are near misses; ``near`` joins neighbours."""
    return float(_near(Y, top, near, k).nnz / max(Y.n_rows * k, 1))


def near_misses(Y: CSR, top: TopK, near: CSR, k: int) -> I64:
    """The number of near misses of each label among the first k labels of all rows."""
    found = np.bincount(_near(Y, top, near, k).tocsr().indices, minlength=Y.n_cols)
    return found.astype(np.int64)


def _near(Y: CSR, top: TopK, near: CSR, k: int) -> sp.csr_array[Any]:
    true = _matrix(Y)
    wrong = _first(top, k, Y.n_cols)
    wrong = wrong - wrong.multiply(true)
    wrong.eliminate_zeros()
    found: sp.csr_array[Any] = wrong.multiply((true @ _matrix(near)).tocsr() > 0)
    return found


def _with_ancestors(rows: sp.csr_array[Any], above: CSR) -> sp.csr_array[Any]:
    found: sp.csr_array[Any] = (rows @ _matrix(above)).tocsr() > 0
    return found


def _first(top: TopK, k: int, n_labels: int) -> sp.csr_array[Any]:
    """The first k labels of each row as a 0/1 matrix."""
    labels = top.labels[:, :k]
    rows, places = np.nonzero(labels >= 0)
    return _ones(rows, labels[rows, places], (len(labels), n_labels))


def _matrix(csr: CSR) -> sp.csr_array[Any]:
    rows = np.repeat(np.arange(csr.n_rows), np.diff(csr.indptr))
    return _ones(rows, csr.indices, (csr.n_rows, csr.n_cols))


def _ones(rows: npt.NDArray[Any], columns: npt.NDArray[Any], shape: tuple[int, int]) -> sp.csr_array[Any]:
    import scipy.sparse as sp  # noqa: PLC0415 - other metrics do without it

    return sp.coo_array((np.ones(len(rows), np.int32), (rows, columns)), shape=shape).tocsr()
