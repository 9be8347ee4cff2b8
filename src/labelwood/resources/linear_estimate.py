"""Estimates of LinearTree and OneVsRest: one tree is planned, the others are taken to be like it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from labelwood.packed.tree_shape import LabelTree
from labelwood.resources import label_tree, label_tree_sample, memory, theory
from labelwood.resources.estimate import Choice, Estimate, Figure, Grade, fewer_trees, safe
from labelwood.resources.label_tree import Kept, Plan, Solver
from labelwood.resources.label_tree_sample import Sample
from labelwood.run_context import RunContext
from labelwood.sparse import CSR

if TYPE_CHECKING:
    from labelwood.methods.label_tree.training_rows import TrainingRows

WEIGHT_BYTES = {"float32": 4, "float16": 2, "int8": 1}
_THRESHOLDS = (0.0, 0.1, 0.3)
_ARRAYS, _HEADER, _MANIFEST = (
    10,
    400,
    3000,
)  # of a tree; bytes of each on disk besides its data; of the manifest
_STORE_SECONDS = (
    4e-9  # per byte of a weight that is kept whatever its size: fresh memory, written with a stride
)
_GROW_SHARE = 0.15  # of the training time goes into clustering, where it was not measured


class Setting(NamedTuple):
    """What of a model's parameters decides its bytes."""

    n_trees: int
    threshold: float | None
    dtype: str


class Planner:
    """The estimate of one model on one data set; ``names_bytes`` are those of its label names."""

    def __init__(
        self,
        rows: TrainingRows,
        Y: CSR,
        plan: Plan,
        solver: Solver,
        setting: Setting,
        names_bytes: int,
        run: RunContext,
    ) -> None:
        self._rows, self._Y, self._plan, self._solver = rows, Y, plan, solver
        self._setting, self._names_bytes, self._run = setting, names_bytes, run
        self._sample: Sample | None = None
        self._resident = memory.resident()

    def bound(self) -> float:
        """Bytes that the process cannot come to hold more than, known from the counts alone."""
        plan, setting = self._plan, self._setting
        everything = Kept(Figure(*[float(plan.weights)] * 3), Figure(*[float(plan.used.sum())] * 3))
        kept = None if setting.threshold is None else everything
        return self._totals(setting, kept)[1].high

    def estimate(self, method: str, grade: Grade, *, started: float, grow_seconds: float | None) -> Estimate:
        """Everything; ``grow_seconds`` is what growing a tree took, None if none was grown."""
        plan, setting, run = self._plan, self._setting, self._run
        own = _THRESHOLDS[1] if setting.threshold is None else setting.threshold
        thresholds = tuple(sorted({*_THRESHOLDS, own}))
        share = label_tree_sample.SAMPLED_SHARE[grade]
        self._sample = label_tree_sample.sample(
            self._rows, self._Y, plan, self._solver, thresholds, own, share, run
        )
        memory.give_back()
        # A training that follows starts with what the sample leaves behind.
        self._resident = max(self._resident, memory.resident())
        model, peak = self._totals(setting, self._kept(setting.threshold))
        if grade == "quick":
            model = Figure(model.value, model.low / 1.4, model.high * 1.4)
            extra = peak.plus(-float(self._resident))
            peak = Figure(extra.value, extra.low / 1.4, extra.high * 1.4).plus(float(self._resident))
        seconds = self._sample.seconds(run.n_threads)
        if setting.threshold is None:
            seconds = seconds.plus(_STORE_SECONDS * 4.0 * plan.weights)
        seconds = seconds.times(1 + _GROW_SHARE) if grow_seconds is None else seconds.plus(grow_seconds)
        n_features, n_labels, weights = round(float(plan.used[0])), self._Y.n_cols, plan.weights
        flat = label_tree.dense_bytes(n_labels + 1, 1, n_labels * n_features, n_features)
        whole = label_tree.layout(plan, None, 4).stored.value
        return Estimate(
            method=method,
            grade=grade,
            n_trees=setting.n_trees,
            model_bytes=model,
            peak_bytes=peak,
            seconds=seconds.times(setting.n_trees),
            estimate_seconds=time.perf_counter() - started,
            weights=weights,
            one_vs_rest_bytes=round(flat),
            ratio=whole / flat,
            paper_tree_bytes=theory.paper_tree_bytes(weights),
            paper_one_vs_rest_bytes=theory.paper_one_vs_rest_bytes(n_labels, n_features),
            paper_ratio=theory.paper_ratio(weights, n_labels, n_features),
            levels=theory.levels(plan.tree, np.rint(plan.used).astype(np.int64)),
            choices=self._choices(),
        )

    def with_trees(self, estimate: Estimate, trees: Mapping[str, LabelTree], present: LabelTree) -> Estimate:
        """The estimate with choices of other trees added, by how much smaller random trees of their shape are."""
        counts = {
            name: label_tree.count(self._rows, self._Y, tree, self._run).weights
            for name, tree in trees.items()
        }
        here = label_tree.count(self._rows, self._Y, present, self._run).weights
        extra = estimate.peak_bytes.high - self._resident
        others = [
            Choice(name, estimate.model_bytes.value * found / here, self._resident + extra * found / here)
            for name, found in counts.items()
            if found < here
        ]
        return replace(estimate, choices=(*estimate.choices, *others))

    def _kept(self, threshold: float | None) -> Kept | None:
        assert self._sample is not None
        return None if threshold is None else self._sample.kept(threshold)

    def _totals(self, setting: Setting, kept: Kept | None) -> tuple[Figure, Figure]:
        """Bytes of the saved model and of the process at its peak."""
        layout = label_tree.layout(self._plan, kept, WEIGHT_BYTES[setting.dtype])
        files = _MANIFEST + setting.n_trees * _ARRAYS * _HEADER
        model = layout.stored.times(setting.n_trees).plus(float(self._names_bytes))
        model = model.plus(Figure(files, files / 2, files))
        space = label_tree.workspace(self._plan, self._rows, self._run.n_threads, keeps_all=kept is None)
        training = layout.in_training.plus(layout.stored.times(setting.n_trees - 1)).plus(space)
        return model, safe(training).plus(self._resident)

    def _choices(self) -> list[Choice]:
        """Settings that need less, with what the sample tells about them."""
        setting = self._setting
        now = -1.0 if setting.threshold is None else setting.threshold
        settings = {f"n_trees={n}": setting._replace(n_trees=n) for n in fewer_trees(setting.n_trees)}
        for threshold in _THRESHOLDS[1:]:
            if threshold > now:
                settings[f"weight_threshold={threshold:g}"] = setting._replace(threshold=threshold)
        for dtype, size_of in WEIGHT_BYTES.items():
            if size_of < WEIGHT_BYTES[setting.dtype] and setting.threshold is not None:
                settings[f"weight_dtype={dtype}"] = setting._replace(dtype=dtype)
        found = []
        for name, other in settings.items():
            model, peak = self._totals(other, self._kept(other.threshold))
            found.append(Choice(name, model.value, peak.high))
        return found
