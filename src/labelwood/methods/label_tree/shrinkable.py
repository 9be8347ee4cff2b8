"""Label trees that can be shrunk: ``prune`` drops small weights, ``quantize`` stores them in fewer bits."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.packed import compress
from labelwood.packed.label_tree import PackedTree
from labelwood.resources import memory
from labelwood.sparse import CSR

Dtype = Literal["float32", "float16", "int8"]
DTYPES: tuple[Dtype, ...] = ("float32", "float16", "int8")


class Shrunk(NamedTuple):
    """One point of a curve: a setting, the bytes of the model's arrays, and precision at each k."""

    setting: str
    model_bytes: int
    precision: dict[int, float]


class Shrinkable(TreeEstimator):
    """A method whose fitted state is a list of packed label trees, ``trees_``."""

    can_shrink: ClassVar[bool] = True

    trees_: list[PackedTree]

    def prune(self, *, threshold: float | None = None, target_size: str | int | None = None) -> Self:
        """Drop small weights of the fitted model, in place: those of at most ``threshold``, or as many as needed.

        ``target_size``, such as ``"10MB"``, is the most that the model's arrays may take. Returns the estimator. What
        quality it costs depends on the data: :meth:`shrink_curve` measures it.
        """
        self._check_fitted()
        owner = type(self).__name__
        if (threshold is None) == (target_size is None):
            raise LabelwoodError(f"{owner}: prune takes either threshold or target_size")
        if threshold is None:
            assert target_size is not None
            wanted = memory.parse_bytes(target_size, owner=owner, name="target_size")
            if self._model_bytes() <= wanted:
                return self
            threshold = compress.threshold_for(self.trees_, wanted - self._names_bytes())
        elif not 0 <= threshold < float("inf"):
            raise LabelwoodError(f"{owner}: threshold must be finite and at least 0; got {threshold!r}")
        self.trees_ = [compress.prune(packed, threshold) for packed in self.trees_]
        return self

    def quantize(self, dtype: Dtype) -> Self:
        """Store the weights of the fitted model as ``"float16"`` or ``"int8"``, in place; returns the estimator."""
        self._check_fitted()
        if dtype not in DTYPES:
            raise LabelwoodError(f"{type(self).__name__}: dtype must be one of {', '.join(DTYPES)}; got {dtype!r}")
        self.trees_ = [compress.quantize(packed, dtype) for packed in self.trees_]
        return self

    def shrink_curve(
        self,
        X: Any,
        Y: Any,
        *,
        thresholds: Sequence[float] = (0.05, 0.1, 0.2, 0.3, 0.5),
        dtypes: Sequence[Dtype] = ("float16", "int8"),
        ks: Sequence[int] = (1, 3, 5),
    ) -> list[Shrunk]:
        """Bytes and precision on held-out rows, as the model is and after each way of shrinking a copy of it.

        Thresholds are tried in the present number format, number formats at the present threshold.
        """
        rows, truth = self.encode(X), self.encode_labels(Y)
        points = [self.measured("as it is", rows, truth, ks)]
        for threshold in thresholds:
            pruned = copy.copy(self).prune(threshold=threshold)
            points.append(pruned.measured(f"threshold {threshold:g}", rows, truth, ks))
        points += [copy.copy(self).quantize(dtype).measured(dtype, rows, truth, ks) for dtype in dtypes]
        return points

    def measured(self, setting: str, rows: CSR, truth: CSR, ks: Sequence[int]) -> Shrunk:
        """The point of this model on a curve; ``truth`` has its label ids."""
        from labelwood.metrics import precision_at_k  # noqa: PLC0415 - fitting and serving do without the metrics

        top = self.topk_ids(rows, max(ks))
        return Shrunk(setting, self._model_bytes(), {k: float(precision_at_k(truth, top, k)) for k in ks})

    def _model_bytes(self) -> int:
        """Bytes of all arrays of a saved model."""
        return self._names_bytes() + sum(array.nbytes for array in self._state()[1].values())
