"""The value that loading returns and saving takes."""

from __future__ import annotations

from dataclasses import dataclass

from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR


@dataclass(frozen=True)
class Dataset:
    """Features ``X`` and labels ``Y`` of the same rows, and the names of the labels where known.

    Invariants: X and Y have the same number of rows and are valid CSR; Y's data are ones; there are as many
    names as labels.
    """

    X: CSR
    Y: CSR
    label_names: tuple[str, ...] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.X.n_rows

    def check(self) -> Dataset:
        """Assert every invariant; return self."""
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
        return self
