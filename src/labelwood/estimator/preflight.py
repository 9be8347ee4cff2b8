"""What every estimator tells before training, and the refusal of a training that does not fit."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelwood.errors import LabelwoodError
from labelwood.label_names import LabelNames
from labelwood.resources import memory
from labelwood.resources.estimate import GRADES, Estimate, Grade, Growth, by_sampling
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, I64
from labelwood.validation.column_names import column_names

_ROOMY = 50  # times the bytes of the data: more than any method here needs


class Planned:
    """The part of an estimator that looks ahead; the rest of it is in ``estimator.py``."""

    method_name: ClassVar[str]
    n_features_in_: int
    label_counts_: I64
    _names: LabelNames
    # Bytes that training holds for each byte of the model: results in their widest types, twice while they are
    # put together.
    _held_in_training: ClassVar[float] = 5.0
    _growth: ClassVar[Growth] = Growth(0.3, 1.2)  # of a tree's bytes
    _shared_arrays: ClassVar[
        tuple[str, ...]
    ] = ()  # how names of arrays begin that a model has once for all trees

    def _read_training(
        self, X: Any, Y: Any, label_names: Sequence[Hashable] | None
    ) -> tuple[CSR, LabelNames, CSR, RunContext]:
        raise NotImplementedError

    def _untrained(self, names: LabelNames, n_features: int, columns: Sequence[str] | None) -> Self:
        raise NotImplementedError

    def _fit(self, X: CSR, Y: CSR, run: RunContext) -> None:
        raise NotImplementedError

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        raise NotImplementedError

    def estimate(
        self, X: Any, Y: Any, *, grade: Grade = "exact", label_names: Sequence[Hashable] | None = None
    ) -> Estimate:
        """What fit would need on these data: bytes of the model, peak memory, seconds, each with a band.

        ``grade`` "exact" grows the tree of a label-tree method and counts the features of its nodes; "quick"
        does without clustering, on a random tree of the same shape. Other methods are trained on a part of the
        rows with one tree, smaller for "quick". Nothing of the estimator changes.
        """
        if grade not in GRADES:
            raise LabelwoodError(
                f"{type(self).__name__}: grade must be one of {', '.join(GRADES)}; got {grade!r}"
            )
        features, names, targets, run = self._read_training(X, Y, label_names)
        fresh: Planned = self._untrained(names, features.n_cols, column_names(X))
        return fresh._estimate(features, targets, run, grade)

    def _names_bytes(self) -> int:
        """Bytes of the label names and counts in a saved model."""
        return 8 * len(self._names) + sum(array.nbytes for array in self._names.state()[1].values())

    def _estimate(self, X: CSR, Y: CSR, run: RunContext, grade: Grade) -> Estimate:
        """By training on parts of the rows, with one tree where there are several."""
        return by_sampling(
            self._try_rows,
            X,
            Y,
            method=self.method_name,
            grade=grade,
            n_trees=int(getattr(self, "n_trees", 1)),
            names_bytes=self._names_bytes(),
            held_in_training=self._held_in_training,
            growth=self._growth,
            bound=self._bytes_bound(X, Y),
            run=run,
        )

    def _bytes_bound(self, X: CSR, Y: CSR) -> int | None:
        """Bytes that the model's arrays cannot exceed, where the method's paper proves a bound."""
        return None

    def _try_rows(self, X: CSR, Y: CSR, run: RunContext) -> int:
        """Bytes of a model of these rows; of several trees one is trained, and all are taken to be like it."""
        fresh: Self = clone(self)
        if hasattr(fresh, "n_trees"):
            fresh.n_trees = 1
        fresh._names, fresh.n_features_in_ = self._names, self.n_features_in_
        fresh.label_counts_ = np.zeros(len(self._names), np.int64)
        fresh._fit(X, Y, run)
        trees, shared = 0, 0
        for name, array in fresh._state()[1].items():
            if name.startswith(self._shared_arrays):
                shared += array.nbytes
            else:
                trees += array.nbytes
        return int(getattr(self, "n_trees", 1)) * trees + shared

    def _check_limit(self, X: CSR, Y: CSR, run: RunContext, *, is_given: bool) -> None:
        """Refuse a training that would not fit into ``run.limit``.

        Without a limit of the user's, data that are small beside the free memory are let pass unlooked.
        """
        if run.limit is None:
            return
        roomy = memory.resident() + _ROOMY * (X.nbytes + Y.nbytes) < run.limit.bytes
        if is_given or not roomy:
            self._estimate(X, Y, run, "exact").check(run.limit, owner=type(self).__name__)
