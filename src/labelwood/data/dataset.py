"""The data set that :func:`~labelwood.data.load` returns and :func:`~labelwood.data.save` takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.label_names import name_problem
from labelwood.sparse import CSR


@dataclass(frozen=True)
class Dataset:
    """Features ``X`` and labels ``Y`` of the same rows, and the names of the labels if they have any.

    Invariants: X and Y are valid CSR matrices with the same number of rows; the data of Y are ones; there is one name
    per label.
    """

    X: CSR
    Y: CSR
    label_names: tuple[str, ...] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.X.n_rows

    def check(self) -> Dataset:
        """Check every invariant and return self."""
        if self.X.n_rows != self.Y.n_rows:
            raise LabelwoodError(
                f"Dataset: X and Y must have the same number of rows; got {self.X.n_rows} and {self.Y.n_rows}"
            )
        self.X.check()
        self.Y.check()
        if (self.Y.data != 1).any():
            raise LabelwoodError("Dataset: the values of Y must be ones")
        if self.label_names is not None and len(self.label_names) != self.Y.n_cols:
            raise LabelwoodError(
                f"Dataset: label_names must have one name for each of the {self.Y.n_cols} labels; "
                f"got {len(self.label_names)}"
            )
        for name in self.label_names or ():
            problem = name_problem(name)
            if problem is not None:
                raise LabelwoodError(f"Dataset: {problem}")
        return self

    @classmethod
    def joined(cls, parts: Sequence[Dataset]) -> Dataset:
        """The rows of several data sets, one after the other; all have the same label names, or none."""
        names = {part.label_names for part in parts}
        if len(names) > 1:
            raise LabelwoodError("Dataset: data sets that are joined must have the same label names, or all have none")
        X, Y = ([part.X for part in parts], [part.Y for part in parts])
        return cls(_stacked(X), _stacked(Y), next(iter(names)))


def _stacked(parts: Sequence[CSR]) -> CSR:
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(part.nnz for part in parts)])
    pointers = [part.indptr[1:] + start for part, start in zip(parts, starts.tolist(), strict=False)]
    return CSR(
        np.concatenate([np.zeros(1, np.int64), *pointers]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.data for part in parts]),
        max(part.n_cols for part in parts),
    )
