"""What LinearTree and OneVsRest share: label trees with a linear classifier on every edge.

``_fit`` grows the trees, checks that training fits in memory, trains the classifiers and packs them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelwood.errors import FormatError
from labelwood.explain import Asked, Explanation, Place
from labelwood.explain.label_tree import RowInTree, explain_row, members_of
from labelwood.explain.tree_weights import PackedTreeWeights
from labelwood.hybrid import Hybrid, as_layout
from labelwood.label_names import LabelNames
from labelwood.methods.label_tree import tree_units
from labelwood.methods.label_tree.block_weight import AUTO, chosen_weight
from labelwood.methods.label_tree.shrinkable import DTYPES, Shrinkable
from labelwood.methods.label_tree.training_rows import TrainingRows, factors, grown, seed_of, train_part, train_whole
from labelwood.packed import compress, tree_shape
from labelwood.packed.label_tree import LOGISTIC, LabelledTree, PackedTree, average, narrow
from labelwood.packed.tree_shape import LabelTree
from labelwood.params import Needs, Param, check_parameters
from labelwood.resources import label_tree
from labelwood.resources.estimate import Banded, Estimate, fewer_trees
from labelwood.run_context import RunContext, logger
from labelwood.sparse import CSR, I32, I64, TopK

Loss = Annotated[
    Literal["squared_hinge", "logistic"], Param("loss of a node's classifiers; logistic scores are probabilities")
]
Cost = Annotated[float, Param("weight of the loss against the L2 penalty", gt=0)]
Tolerance = Annotated[float, Param("a classifier stops when its projected gradients spread less than this", gt=0)]
MaxPasses = Annotated[int, Param("maximum passes over a node's rows", ge=1)]
Intercept = Annotated[float, Param("start of the intercepts; negative, because most labels are rare")]
Bias = Annotated[float, Param("value of the bias feature; 0 keeps intercepts at their start", ge=0)]
VectorWeight = Annotated[
    float | Literal["auto"],
    Param(
        "length of a row's vector beside its sparse part, for rows that have both; auto chooses it on held-out rows",
        gt=0,
    ),
]
WeightThreshold = Annotated[
    float | None, Param("drop weights of sparse columns of at most this size; None keeps all exactly", ge=0)
]
WeightDtype = Annotated[
    Literal["int8", "float16", "float32"],
    Param(
        "number format of stored weights when weight_threshold is set",
        needs=Needs("a weight_threshold", lambda own: own["weight_threshold"] is not None),
    ),
]

# The solver skips coordinates whose projected gradient is below this share of the tolerance: a tenth costs no
# accuracy and lets it skip a whole row once its lanes have settled.
_SKIP = 0.1
_THRESHOLDS = (0.1, 0.3)  # to propose where a model does not fit
_ENSEMBLE_CANDIDATES = 4  # times k: labels that each tree contributes to an average


class LinearModel(Shrinkable):
    """A label tree, or several, whose nodes are linear classifiers."""

    has_label_weights: ClassVar[bool] = True
    takes_vectors: ClassVar[bool] = True
    divides_work: ClassVar[bool] = True

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
    vector_weight: float | str = 1.0
    _chosen_weight: float = 1.0  # if vector_weight is auto
    candidates: str = "best"

    def _grower(self, rows: TrainingRows, Y: CSR, run: RunContext) -> Callable[[int], LabelTree]:
        """A function from a seed to a tree; what the trees have in common is made once."""
        raise NotImplementedError

    def _shapes(self, n_labels: int) -> dict[str, LabelTree]:
        """Random trees by the setting they stand for: first the present setting, then smaller ones."""
        raise NotImplementedError

    def _search(self) -> tuple[int, bool]:
        """Beam width, and True to search exactly instead."""
        raise NotImplementedError

    def _n_trees(self) -> int:
        return 1

    def _fit(self, X: CSR, Y: CSR, run: RunContext) -> None:
        if self.vector_weight == AUTO:
            with run.phase("vector weight"):
                self._chosen_weight = chosen_weight(X, Y, self._answers_with, run.seed)
        rows = self._training_rows(X, run)
        grow = self._grower(rows, Y, run)
        trees = [grown(grow, 0, run)]
        if self._n_trees() == 1:
            del grow  # it holds the label vectors
        self._check_memory(rows, Y, trees[0], run)
        if self._n_trees() > 1:
            trees += [grown(grow, number, run) for number in range(1, self._n_trees())]
            del grow
        self.trees_ = self._train(rows, Y, trees, run)

    @property
    def vector_weight_(self) -> float:
        """The weight of vectors beside sparse columns: the parameter, or what was chosen on held-out rows."""
        return self._chosen_weight if isinstance(self.vector_weight, str) else self.vector_weight

    def _training_rows(self, X: CSR, run: RunContext) -> TrainingRows:
        return TrainingRows.of(X, run, normalize=self.normalize, vector_weight=self.vector_weight_)

    def _answers_with(self, weight: float, X: CSR, Y: CSR, rows: CSR) -> TopK:
        """The answers of one tree that learned with a weight of the vectors."""
        changes = {"vector_weight": weight, "verbose": False, **({"n_trees": 1} if self._n_trees() > 1 else {})}
        model: Self = clone(self).set_params(**changes).fit(X, Y.to_scipy())
        return model.topk_ids(rows, min(5, Y.n_cols))

    def _check_limit(self, X: CSR, Y: CSR, run: RunContext, *, is_given: bool) -> None:
        """Nothing here: memory is checked once the first tree has grown."""

    def _check_memory(self, rows: TrainingRows, Y: CSR, tree: LabelTree, run: RunContext) -> None:
        """Refuse a training that would not fit: first by an upper bound, then by an estimate from a sample."""
        if run.limit is None:
            return
        plan = rows.count(Y, tree, run)
        if self._size_setting(run).bound(plan) <= run.limit.bytes:
            return
        found = self._sampled(rows, Y, plan, Banded(0.0, 0.0, 0.0), run)
        if found.peak_bytes.high > run.limit.bytes:
            found = self._with_shapes(rows, Y, found, run)
        found.check(run.limit, owner=type(self).__name__)

    def _with_shapes(self, rows: TrainingRows, Y: CSR, found: Estimate, run: RunContext) -> Estimate:
        """The estimate with other trees to propose, by how much smaller random trees of their shape are."""
        weights = {name: rows.count(Y, tree, run).weights for name, tree in self._shapes(Y.n_cols).items()}
        present = next(iter(weights.values()))
        others = [found.scaled(name, count / present) for name, count in weights.items() if count < present]
        return replace(found, choices=(*found.choices, *others))

    def _sketch(self, rows: TrainingRows, Y: CSR, run: RunContext) -> tuple[label_tree.Plan, Banded]:
        """The plan of a tree like the one that fit grows, and the seconds that growing takes."""
        started = time.process_time()
        tree = self._grower(rows, Y, run)(run.seed)
        seconds = time.process_time() - started
        return rows.count(Y, tree, run), Banded(seconds, 0.5 * seconds, 2.0 * seconds)

    def _estimate(self, X: CSR, Y: CSR, run: RunContext) -> Estimate:
        rows = self._training_rows(X, run)
        return self._sampled(rows, Y, *self._sketch(rows, Y, run), run)

    def _sampled(
        self, rows: TrainingRows, Y: CSR, plan: label_tree.Plan, grow_seconds: Banded, run: RunContext
    ) -> Estimate:
        """The estimate of a plan; some of its classifiers are trained for it."""

        def train(members: I32, indptr: I64, labels: I32, n_labels: int) -> npt.NDArray[np.float32]:
            tree = tree_shape.flat_tree(n_labels)
            setting = {**self._setting(rows, tree, run.seed, run), "threshold": -1.0, "n_labels": n_labels}
            own = {"child_ptr": tree.child_ptr, "label": tree.label, "rows": members}
            arrays = {**rows.shared(), **own, "y_indptr": indptr, "y_indices": labels}
            weights: npt.NDArray[np.float32] = train_part(arrays, setting, 1, None)["weights"].reshape(-1, n_labels)
            return weights

        setting = self._size_setting(run)
        smaller = self._smaller(setting)
        thresholds = {each.threshold for each in (setting, *smaller.values()) if each.threshold is not None}
        with run.phase("sample"):
            found = label_tree.Sampler(plan, Y, train, sorted(thresholds), run.seed)
        return found.estimate(self.method_name, setting, smaller, grow_seconds)

    def _size_setting(self, run: RunContext) -> label_tree.Setting:
        return label_tree.Setting(
            self._n_trees(), self.weight_threshold, self.weight_dtype, self._names_bytes(), run.n_threads
        )

    def _smaller(self, setting: label_tree.Setting) -> dict[str, label_tree.Setting]:
        """Settings to propose where this one does not fit."""
        smaller = {f"n_trees={n}": setting._replace(n_trees=n) for n in fewer_trees(setting.n_trees)}
        for threshold in _THRESHOLDS:
            if setting.threshold is None or threshold > setting.threshold:
                smaller[f"weight_threshold={threshold:g}"] = setting._replace(threshold=threshold)
        if setting.threshold is not None:
            for dtype in DTYPES[DTYPES.index(setting.dtype) + 1 :]:
                smaller[f"weight_dtype={dtype}"] = setting._replace(dtype=dtype)
        return smaller

    def _train(self, rows: TrainingRows, Y: CSR, trees: Sequence[LabelTree], run: RunContext) -> list[PackedTree]:
        """The trees with their weights, packed."""
        settings = [self._setting(rows, tree, seed_of(number, run), run) for number, tree in enumerate(trees)]
        train = tree_units.train_divided if run.is_divided else train_whole
        trained = train(trees, settings, rows.shared(), Y, run)
        moved = sum(int(arrays.pop("weight_bytes")) for arrays in trained)
        logger.debug("train: %.2f GB of weights moved", moved / 1e9)
        return [self._packed(tree, own, rows.X.n_cols) for tree, own in zip(trees, trained, strict=True)]

    def _setting(self, rows: TrainingRows, tree: LabelTree, seed: int, run: RunContext) -> dict[str, Any]:
        return {
            "n_features": rows.X.n_cols,
            "solver": self._solver(),
            "threshold": -1.0 if self.weight_threshold is None else self.weight_threshold,
            "seed": seed,
            "widest": int(np.diff(tree.child_ptr).max()),
            "weight_dtype": self.weight_dtype,
            # Only here are the arrays the mapped file itself; other processes get a copy in memory.
            "resident": rows.X.resident if run.is_local else 0,
            "most_entries": rows.most_entries,
            "labels": "",
            "piece": 0,
            "n_pieces": 1,
        }

    def _solver(self) -> dict[str, Any]:
        """The settings of a node's classifiers, under the names that the kernels give them."""
        return {
            "logistic": self.loss == "logistic",
            "cost": self.C,
            "tolerance": self.tolerance,
            "skip": _SKIP,
            "max_passes": self.max_passes,
            "bias": self.bias,
            "offset": self.intercept,
        }

    def _packed(self, tree: LabelTree, arrays: dict[str, npt.NDArray[Any]], n_features: int) -> PackedTree:
        packed = PackedTree(tree, narrow(arrays, tree, self.weight_dtype), self._link(), n_features)
        is_int8 = self.weight_dtype == "int8" and self.weight_threshold is not None
        return compress.vectors_to_int8(packed) if is_int8 else packed

    def _link(self) -> int:
        return LOGISTIC if self.loss == "logistic" else self.score_power

    def trees(self) -> list[LabelledTree]:
        """The packed trees."""
        return [LabelledTree(packed) for packed in self.trees_]

    def topk_rows(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k labels of highest averaged score."""
        return average(self.topk_by_tree(X, k, run), k)

    def topk_by_tree(self, X: CSR, k: int, run: RunContext) -> list[TopK]:
        """The labels that each tree proposes for rows."""
        return self._members(self._prepare(X), k, run)

    def _members(self, rows: CSR, k: int, run: RunContext) -> list[TopK]:
        beam_width, exact = self._search()
        wide = k if len(self.trees_) == 1 else run.width(min(self._proposed(k), self.n_labels_))
        per_node = beam_width if self.candidates == "beam" else 0
        return [
            tree.topk(rows, wide, beam_width=beam_width, exact=exact, run=run, allowed=run.allowed, per_node=per_node)
            for tree in self.trees_
        ]

    def _proposed(self, k: int) -> int:
        """Labels that each of several trees contributes to an average of k."""
        beam_width, exact = self._search()
        if self.candidates == "best":
            return _ENSEMBLE_CANDIDATES * k
        if exact:
            return self.n_labels_
        widest = max(int(np.diff(packed.tree.child_ptr).max()) for packed in self.trees_)
        return max(k, beam_width * (min(beam_width, widest) if self.candidates == "beam" else widest))

    def explain_one(self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: RunContext) -> Explanation:
        """The paths to the labels in every tree."""
        prepared = self._prepare(row)
        beam_width, exact = self._search()
        members = self._members(prepared, k, run)
        views = [
            RowInTree(PackedTreeWeights(tree, tree.tree.label), prepared, asked, number=number)
            for number, tree in enumerate(self.trees_)
        ]
        return explain_row(
            views,
            [members_of(member) for member in members],
            average(members, k),
            asked,
            beam_width=None if exact else beam_width,
            missed=missed,
        )

    def _prepare(self, X: CSR) -> CSR:
        """Rows as the trees see them: their columns, and their length."""
        width = self.trees_[0].n_columns
        rows = as_layout(X, self.n_features_in_ - width, width)
        if isinstance(rows, Hybrid):
            scales = factors(rows, normalize=self.normalize, vector_weight=self.vector_weight_)
            return rows.scaled(*scales)
        return rows.unit_rows() if self.normalize else rows

    def _label_depths(self) -> I32 | None:
        """The depth of each label; of several trees the mean, rounded."""
        total = np.zeros(self.n_labels_)
        for packed in self.trees_:
            tree = packed.tree
            leaves = np.flatnonzero(tree.label >= 0)
            total[tree.label[leaves]] += np.searchsorted(tree.level_ptr, leaves, side="right") - 1
        return np.round(total / len(self.trees_)).astype(np.int32)

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
        if self.vector_weight == AUTO:
            weight = facts["vector_weight"]
            if type(weight) is not float or not 0 < weight < float("inf"):
                raise FormatError(f"vector_weight must be a positive number; got {weight!r}")
            self._chosen_weight = weight
        if len({packed.n_columns for packed in self.trees_}) > 1:
            raise FormatError("the trees must have weights for the same dense columns")

    def from_trees(self, trees: Sequence[PackedTree], names: LabelNames, trained: dict[str, Any]) -> Self:
        """A fitted copy of this estimator made of trees that were trained elsewhere; checks every invariant."""
        check_parameters(self)
        model: Self = self._untrained(names, trees[0].n_features, None)
        for packed in trees:
            packed.node_weights.check(packed.tree.check(len(names)), packed.n_features)
        model.trees_, model.trained_, model.fit_seconds_ = list(trees), trained, {}
        model.label_counts_ = np.zeros(len(names), np.int64)
        model._note_fitted()
        return model

    def describe(self) -> dict[str, Any]:
        """Depth, nodes and weights of the fitted trees."""
        return {
            "depth": max(packed.tree.depth for packed in self.trees_),
            "nodes": sum(packed.tree.n_nodes for packed in self.trees_),
            "inner_nodes": sum(len(packed.tree.inner) for packed in self.trees_),
            "nonzero_weights": sum(packed.node_weights.n_weights for packed in self.trees_),
            "stored_as": str(self.trees_[0].node_weights.stored_as),
            **({"vector_weight": self.vector_weight_} if self.vector_weight == AUTO else {}),
        }
