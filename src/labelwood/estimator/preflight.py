"""What every estimator tells before training, and the refusal of a training that does not fit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from labelwood.label_names import LabelNames
from labelwood.resources import memory
from labelwood.resources.estimate import Banded, Estimate, Growth, extrapolate, fewer_trees, peak_of
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, I64
from labelwood.validation.column_names import column_names

_ROOMY = 50  # times the bytes of the data: more than any method needs
_SAMPLE_ROWS = 1000  # at least
_SECONDS = Growth(0.85, 1.1)
_SAMPLE_SHARE = 0.045  # of the training work; half of it goes into a sample of half as many rows besides


class Planned:
    """The part of an estimator that looks ahead; the rest of it is in ``base.py``."""

    method_name: ClassVar[str]
    n_features_in_: int
    label_counts_: I64
    _names: LabelNames
    # Bytes that training holds for each byte of the model: widest types, twice while they are put together.
    _held_in_training: ClassVar[float] = 5.0
    _growth: ClassVar[Growth] = Growth(0.3, 1.2)  # of a tree's bytes
    _shared_arrays: ClassVar[tuple[str, ...]] = ()  # prefixes of arrays that a model has once for all trees

    _read_training: Callable[[Any, Any, Sequence[Hashable] | None], tuple[CSR, LabelNames, CSR, RunContext]]
    _untrained: Callable[[LabelNames, int, Sequence[str] | None], Self]
    _names_bytes: Callable[[], int]
    _fit: Callable[[CSR, CSR, RunContext], None]
    _state: Callable[[], tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]]

    def estimate(self, X: Any, Y: Any, *, label_names: Sequence[Hashable] | None = None) -> Estimate:
        """What fit would need on these data: bytes of the model, peak memory, seconds, each with a band.

        It takes about a tenth of the training's time or less. Label trees count the features that the nodes of a
        quickly clustered tree use, and train a sample of its classifiers. Other methods train one tree on a part of
        the rows. Nothing of the estimator changes.
        """
        started = time.perf_counter()
        features, names, targets, run = self._read_training(X, Y, label_names)
        fresh: Planned = self._untrained(names, features.n_cols, column_names(X))
        found = fresh._estimate(features, targets, run)
        return replace(found, estimate_seconds=time.perf_counter() - started)

    def _estimate(self, X: CSR, Y: CSR, run: RunContext) -> Estimate:
        """By training one tree on a part of the rows and on half of it; on all rows, if one tree is cheap."""
        n_trees = int(getattr(self, "n_trees", 1))
        order = np.random.default_rng(run.seed).permutation(X.n_rows)
        most = min(X.n_rows, max(_SAMPLE_ROWS, round(_SAMPLE_SHARE * n_trees * X.n_rows)))
        sizes, seconds = [], []
        for count in (most,) if most == X.n_rows else (most // 2, most):
            rows, clock = order[:count], time.process_time()
            sizes.append(self._try_rows(X.take(rows), Y.take(rows), RunContext(seed=run.seed), n_trees))
            seconds.append((time.process_time() - clock) / run.n_threads)
        memory.give_back()
        bound = self._bytes_bound(X, Y)
        stored = extrapolate(sizes, X.n_rows / most, self._growth)
        stored = Banded(*(min(part, math.inf if bound is None else bound) for part in stored))
        held = stored.times(self._held_in_training).plus(1.5 * X.nbytes + Y.nbytes)
        found = Estimate(
            method=self.method_name,
            n_trees=n_trees,
            model_bytes=stored.plus(self._names_bytes()),
            peak_bytes=peak_of(held, memory.resident()),
            seconds=extrapolate(seconds, X.n_rows / most, _SECONDS).times(n_trees).spread(0.7, 1.4),
            bound_bytes=bound,
        )
        return replace(found, choices=[found.scaled(f"n_trees={n}", n / n_trees) for n in fewer_trees(n_trees)])

    def _bytes_bound(self, X: CSR, Y: CSR) -> int | None:
        """Bytes that the model's arrays cannot exceed, where the method's paper proves a bound."""
        return None

    def _try_rows(self, X: CSR, Y: CSR, run: RunContext, n_trees: int) -> float:
        """Bytes of a model of ``n_trees`` trees like the one that is trained on these rows."""
        fresh: Self = self._untrained(self._names, self.n_features_in_, None)
        if hasattr(fresh, "n_trees"):
            fresh.n_trees = 1
        fresh.label_counts_ = np.zeros(len(self._names), np.int64)
        fresh._fit(X, Y, run)
        sizes = {name: array.nbytes for name, array in fresh._state()[1].items()}
        shared = sum(size for name, size in sizes.items() if name.startswith(self._shared_arrays))
        return float(n_trees * (sum(sizes.values()) - shared) + shared)

    def _check_limit(self, X: CSR, Y: CSR, run: RunContext, *, is_given: bool) -> None:
        """Refuse a training that would not fit into ``run.limit``; without ``max_memory``, small data skip this."""
        ample = memory.resident() + _ROOMY * (X.nbytes + Y.nbytes)
        if run.limit is not None and (is_given or ample >= run.limit.bytes):
            self._estimate(X, Y, run).check(run.limit, owner=type(self).__name__)
