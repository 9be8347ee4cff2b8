"""Training rows as the kernels of label trees take them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.packed.tree_shape import LabelTree
from labelwood.resources.label_tree import Plan
from labelwood.resources.memory import resident
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, F32, I32, I64, MappedCSR

_LEAST_SPACE = 2**24  # bytes; with less, training would only read
_LEAST_PAGES = 2**23  # bytes; a page of a file may bring 2 MB of neighbours with it, of indices and of data
_HELD_BYTES = 16  # a non-zero of a node takes 8, and as much again where the next rows are gathered


@dataclass(frozen=True)
class TrainingRows:
    """Rows and the factor that each is multiplied by as it is read; None: they are taken as they are.

    ``most_entries`` is for rows in a file: a node of more entries is not held in memory as a whole, 0 if all are.
    """

    X: CSR
    scale: F32 | None = None
    most_entries: int = 0

    @classmethod
    def of(cls, X: CSR, run: RunContext, *, normalize: bool) -> TrainingRows:
        """The rows as they are, or of unit length.

        Of rows in a file, a part of the memory that the run's limit leaves goes to their pages, and a part to the rows
        of the nodes in training.
        """
        most_entries = 0
        if isinstance(X, MappedCSR) and run.limit is not None:
            space = max(_LEAST_SPACE, run.limit.bytes - resident())
            X = replace(X, limit=min(X.limit, max(_LEAST_PAGES, space // 8)))
            most_entries = max(1, space // 4 // (_HELD_BYTES * run.n_threads))
        scale = _core.unit_factors(X.indptr, X.indices, X.data, X.resident) if normalize else None
        return cls(X, scale, most_entries)

    @property
    def held_bytes(self) -> float:
        """The most that the entries of a node in training take, with those of the window that is read from."""
        return float(_HELD_BYTES * self.most_entries) if self.most_entries else np.inf

    @property
    def arguments(self) -> tuple[I64, I32, F32, int]:
        """The first arguments of a kernel."""
        return self.X.indptr, self.X.indices, self.X.data, self.X.n_cols

    def count(self, Y: CSR, tree: LabelTree, run: RunContext) -> Plan:
        """The features that every inner node of an untrained tree uses, and its rows."""
        with run.phase("count") as progress:
            used, entries, members = _core.count_tree(
                *self.arguments, Y.indptr, Y.indices, Y.n_cols, tree.child_ptr, tree.label, run.n_threads, progress,
                resident=self.X.resident,
            )  # fmt: skip
        return Plan(tree, used, entries, members, self.X.n_cols, self.X.resident, self.held_bytes)

    def shared(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that all units of a training share."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "x_indptr": self.X.indptr, "x_indices": self.X.indices, "x_data": self.X.data,
        }  # fmt: skip
        return arrays if self.scale is None else {**arrays, "x_scale": self.scale}
