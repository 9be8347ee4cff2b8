"""Training rows as the kernels of label trees take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from labelwood import _core
from labelwood.sparse import CSR, F32, I32, I64


@dataclass(frozen=True)
class TrainingRows:
    """Rows and the factor that each is multiplied by as it is read; None: they are taken as they are.

    ``most_entries`` is for rows in a file: a node of more entries is not held in memory as a whole, 0 if all are.
    """

    X: CSR
    scale: F32 | None = None
    most_entries: int = 0

    @classmethod
    def of(cls, X: CSR, *, normalize: bool, most_entries: int = 0) -> TrainingRows:
        """The rows as they are, or of unit length."""
        if not normalize:
            return cls(X, None, most_entries)
        return cls(X, _core.unit_factors(X.indptr, X.indices, X.data, X.resident), most_entries)

    @property
    def arguments(self) -> tuple[I64, I32, F32, int]:
        """The first arguments of a kernel."""
        return self.X.indptr, self.X.indices, self.X.data, self.X.n_cols

    @property
    def options(self) -> dict[str, Any]:
        """The keywords of a kernel."""
        return {"scale": self.scale, "resident": self.X.resident}

    def shared(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that all units of a training share."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "x_indptr": self.X.indptr, "x_indices": self.X.indices, "x_data": self.X.data,
        }  # fmt: skip
        return arrays if self.scale is None else {**arrays, "x_scale": self.scale}
