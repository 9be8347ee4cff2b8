"""What LinearTree and OneVsRest share: label trees with a linear classifier on every edge, trained and searched."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from labelwood import executors, shrink
from labelwood.errors import FormatError
from labelwood.estimate import Estimate, Grade
from labelwood.explain import Asked, Explanation, Place
from labelwood.explain.label_tree import RowInTree, explain_row, members_of
from labelwood.methods import tree_estimate, tree_parts
from labelwood.methods.linear_estimate import Planner, Setting
from labelwood.methods.shrinkable import Shrinkable
from labelwood.methods.training_rows import TrainingRows
from labelwood.params import Param
from labelwood.progress import Run, logger
from labelwood.search import LOGISTIC, PackedTree, average, narrow
from labelwood.sparse import CSR, I32, TopK
from labelwood.trees import LabelTree

Loss = Annotated[
    Literal["squared_hinge", "logistic"],
    Param("loss of a node's classifiers; logistic scores are probabilities"),
]
Cost = Annotated[float, Param("C: weight of the loss against the L2 penalty", gt=0)]
Tolerance = Annotated[
    float, Param("a classifier stops when its projected gradients spread less than this", gt=0)
]
MaxPasses = Annotated[int, Param("passes over a node's rows at most", ge=1)]
Intercept = Annotated[
    float, Param("value that a classifier's intercept is pulled towards: most labels are rare")
]
Bias = Annotated[
    float,
    Param("value of the constant feature by which intercepts are learned; 0: all stay as they start", ge=0),
]
Normalize = Annotated[bool, Param("scale every row to unit length, in training and in prediction")]
WeightThreshold = Annotated[
    float | None, Param("weights of at most this size are not stored; None: every weight is, exactly", ge=0)
]
WeightDtype = Annotated[
    Literal["int8", "float16", "float32"],
    Param("number format of stored weights when weight_threshold is set"),
]

# Coordinates whose projected gradient is below this share of the tolerance are left alone: a tenth costs no accuracy
# and lets a whole row be skipped once its lanes have settled.
_SKIP = 0.1
_ENSEMBLE_CANDIDATES = 4  # times k: how many labels each tree contributes to an average


class LinearModel(Shrinkable):
    """What LinearTree and OneVsRest share: training, search and saving of packed trees."""

    loss: str
    C: float
    tolerance: float
    max_passes: int
    intercept: float
    bias: float
    normalize: bool
    weight_threshold: float | None
    weight_dtype: str
    score_power: int = 2

    def _link(self) -> int:
        return LOGISTIC if self.loss == "logistic" else self.score_power

    def _grower(self, rows: TrainingRows, Y: CSR, run: Run) -> Callable[[int], LabelTree]:
        """From a seed to a tree; what trees have in common is made once."""
        raise NotImplementedError

    def _search(self) -> tuple[int, bool]:
        """Beam width, and whether to search exactly instead."""
        raise NotImplementedError

    def _n_trees(self) -> int:
        return 1

    def _shapes(self, n_labels: int) -> dict[str, LabelTree]:
        """Random trees by the setting they stand for: first the present one, then others that may be smaller."""
        raise NotImplementedError

    def _estimate(self, X: CSR, Y: CSR, run: Run, grade: Grade) -> Estimate:
        started = time.perf_counter()
        rows = TrainingRows.of(X, run, normalize=self.normalize)
        if grade == "quick":
            tree = next(iter(self._shapes(Y.n_cols).values()))
            plan = tree_estimate.as_if_clustered(tree_estimate.count(rows, Y, tree, run))
            return self._planner(rows, Y, plan, run).estimate(
                self.method_name, grade, started=started, grow_seconds=None
            )
        tree = self._grower(rows, Y, run)(run.seed)
        grow_seconds = time.perf_counter() - started
        plan = tree_estimate.count(rows, Y, tree, run)
        return self._planner(rows, Y, plan, run).estimate(
            self.method_name, grade, started=started, grow_seconds=grow_seconds
        )

    def _planner(self, rows: TrainingRows, Y: CSR, plan: tree_estimate.Plan, run: Run) -> Planner:
        setting = Setting(self._n_trees(), self.weight_threshold, self.weight_dtype)
        return Planner(rows, Y, plan, self._solver(), setting, self._names_bytes(), run)

    def _check_limit(self, X: CSR, Y: CSR, run: Run, *, is_given: bool) -> None:
        """Nothing yet: the first tree is planned once it has grown."""

    def _check_memory(self, rows: TrainingRows, Y: CSR, tree: LabelTree, run: Run) -> None:
        """Refuse a training that would not fit: by what cannot be exceeded, and if that is too much, by a sample."""
        if run.limit is None:
            return
        started = time.perf_counter()
        planner = self._planner(rows, Y, tree_estimate.count(rows, Y, tree, run), run)
        if planner.bound() <= run.limit.bytes:
            return
        found = planner.estimate(self.method_name, "exact", started=started, grow_seconds=0.0)
        if found.peak_bytes.high > run.limit.bytes:
            _, *others = (shapes := self._shapes(Y.n_cols)).items()
            found = planner.with_trees(found, dict(others), next(iter(shapes.values())))
        found.check(run.limit, owner=type(self).__name__)

    def _fit(self, X: CSR, Y: CSR, run: Run) -> None:
        rows = TrainingRows.of(X, run, normalize=self.normalize)
        self.trees_ = self._train(rows, Y, self._grown(rows, Y, run), run)

    def _grown(self, rows: TrainingRows, Y: CSR, run: Run) -> list[LabelTree]:
        """All trees, without weights; refused after the first if they would not fit."""
        grow, grown = self._grower(rows, Y, run), []
        for number in range(self._n_trees()):
            grown.append(self._shape(number, grow, run))
            if number == 0:
                self._check_memory(rows, Y, grown[0], run)
        return grown

    def _shape(self, number: int, grow: Callable[[int], LabelTree], run: Run) -> LabelTree:
        """The tree of this number, grown or from the checkpoint."""
        name = f"tree{number}.shape"
        found = {} if run.checkpoint is None else run.checkpoint.read([name])
        if name in found:
            return LabelTree(**found[name])
        tree = grow(_seed_of(number, run))
        if run.checkpoint is not None:
            run.checkpoint.write(name, {"child_ptr": tree.child_ptr, "label": tree.label})
        return tree

    def _train(self, rows: TrainingRows, Y: CSR, grown: Sequence[LabelTree], run: Run) -> list[PackedTree]:
        """Trees with weights: each a unit of its own, or in parts."""
        divided = executors.is_divided(run)
        counts = np.bincount(Y.indices, minlength=Y.n_cols)
        divisions, units = [], []
        for number, tree in enumerate(grown):
            name, setting = f"tree{number}", self._setting(rows, tree, _seed_of(number, run), run)
            if divided:
                divisions.append(tree_parts.divide(tree, counts))
                units.append(tree_parts.units(divisions[-1], Y, name, setting))
            else:
                units.append([tree_parts.whole(tree, Y, name, setting)])
        every = [unit for of_tree in units for unit in of_tree]
        results = executors.complete("train", every, rows.shared(), run)
        moved = sum(int(result.pop("weight_bytes")) for result in results)
        logger.debug("train: %.2f GB of weights moved", moved / 1e9)
        trained = []
        for number, tree in enumerate(grown):
            own, results = results[: len(units[number])], results[len(units[number]) :]
            arrays = tree_parts.join(tree, divisions[number], own) if divided else own[0]
            trained.append(self._packed(tree, arrays, rows.X.n_cols))
        return trained

    def _setting(self, rows: TrainingRows, tree: LabelTree, seed: int, run: Run) -> dict[str, Any]:
        return {
            "n_features": rows.X.n_cols,
            "solver": vars(self._solver()),
            "threshold": -1.0 if self.weight_threshold is None else self.weight_threshold,
            "seed": seed,
            "widest": int(np.diff(tree.child_ptr).max()),
            "weight_dtype": "float32" if self.weight_dtype == "int8" else self.weight_dtype,
            # Only here are the arrays the mapped file itself; what arrives elsewhere is a copy in memory.
            "resident": rows.X.resident if executors.is_local(run) else 0,
            "most_entries": rows.most_entries,
        }

    def _packed(self, tree: LabelTree, arrays: dict[str, npt.NDArray[Any]], n_features: int) -> PackedTree:
        if self.weight_dtype != "int8" or self.weight_threshold is None:
            return PackedTree(tree, narrow(arrays, tree, self.weight_dtype), self._link(), n_features)
        exact = PackedTree(tree, narrow(arrays, tree, "float32"), self._link(), n_features)
        return shrink.quantize(exact, self.weight_dtype)

    def _solver(self) -> tree_estimate.Solver:
        return tree_estimate.Solver(
            logistic=self.loss == "logistic",
            cost=self.C,
            tolerance=self.tolerance,
            skip=_SKIP,
            max_passes=self.max_passes,
            bias=self.bias,
            offset=self.intercept,
        )

    def _topk(self, X: CSR, k: int, run: Run) -> TopK:
        return average(self._members(self._prepare(X), k, run), k)

    def _members(self, rows: CSR, k: int, run: Run) -> list[TopK]:
        """What each tree proposes for prepared rows."""
        beam_width, exact = self._search()
        wide = k if len(self.trees_) == 1 else min(_ENSEMBLE_CANDIDATES * k, self.n_labels_)
        return [tree.topk(rows, wide, beam_width=beam_width, exact=exact, run=run) for tree in self.trees_]

    def _explain(self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: Run) -> Explanation:
        prepared = self._prepare(row)
        beam_width, exact = self._search()
        members = self._members(prepared, k, run)
        views = [RowInTree(tree, prepared, asked, number=number) for number, tree in enumerate(self.trees_)]
        return explain_row(
            views,
            [members_of(member) for member in members],
            average(members, k),
            asked,
            beam_width=None if exact else beam_width,
            missed=missed,
        )

    def _label_depths(self) -> I32 | None:
        """Of several trees the mean depth, rounded."""
        total = np.zeros(self.n_labels_)
        for packed in self.trees_:
            tree = packed.tree
            leaves = np.flatnonzero(tree.label >= 0)
            total[tree.label[leaves]] += np.searchsorted(tree.level_ptr, leaves, side="right") - 1
        return np.round(total / len(self.trees_)).astype(np.int32)

    def _prepare(self, X: CSR) -> CSR:
        return X.unit_rows() if self.normalize else X

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, tree in enumerate(self.trees_):
            arrays |= tree.arrays(f"tree{number}.")
        return {"n_trees": len(self.trees_), **self.describe()}, arrays

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        n_trees = facts["n_trees"]
        if type(n_trees) is not int or not 1 <= n_trees <= len(arrays):
            raise FormatError(f"n_trees must be a positive integer; got {n_trees!r}")
        self.trees_ = [
            PackedTree.restore(arrays, f"tree{number}.", self._link(), self.n_labels_, self.n_features_in_)
            for number in range(n_trees)
        ]

    def describe(self) -> dict[str, Any]:
        """Depth, nodes and weights of the fitted trees."""
        return {
            "depth": max(packed.tree.depth for packed in self.trees_),
            "nodes": sum(packed.tree.n_nodes for packed in self.trees_),
            "inner_nodes": sum(len(packed.tree.inner) for packed in self.trees_),
            "nonzero_weights": sum(packed.chunks.n_weights for packed in self.trees_),
            "stored_as": str(self.trees_[0].chunks.weights.dtype),
        }


def _seed_of(number: int, run: Run) -> int:
    return run.seed + number * 2**32  # seeds are below 2^32: no two trees of any two seeds share one
