"""LinearTree: a label tree with a linear classifier on every edge, and OneVsRest, the same with depth 1.

The method of "Exploring Space Efficiency in a Tree-based Linear Model for Extreme Multi-label Classification" (Lin,
Liu and Lin, 2024), section 2.2: labels are represented by the sum of their rows (Eq. 2), clustered into a tree, and
every inner node learns one classifier per child from the rows that carry one of its labels. Features that do not occur
in those rows are never stored (the paper's inherent pruning).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from labelwood import _core, shrink, trees
from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimate import Estimate, Grade
from labelwood.estimator import NJobs, RandomState, Verbose
from labelwood.explain import Asked, Explanation, Place
from labelwood.explain.label_tree import RowInTree, explain_row, members_of
from labelwood.methods import tree_estimate
from labelwood.methods.linear_estimate import Planner, Setting
from labelwood.methods.shrinkable import Shrinkable
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
_MILLION = 1_000_000  # kernels report progress in millionths
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

    def _grow(self, X: CSR, Y: CSR, run: Run, seed: int) -> LabelTree:
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
        rows = self._prepare(X)
        if grade == "quick":
            tree = next(iter(self._shapes(Y.n_cols).values()))
            plan = tree_estimate.as_if_clustered(tree_estimate.count(rows, Y, tree, run))
            return self._planner(rows, Y, plan, run).estimate(
                self.method_name, grade, started=started, grow_seconds=None
            )
        tree = self._grow(rows, Y, run, run.seed)
        grow_seconds = time.perf_counter() - started
        plan = tree_estimate.count(rows, Y, tree, run)
        return self._planner(rows, Y, plan, run).estimate(
            self.method_name, grade, started=started, grow_seconds=grow_seconds
        )

    def _planner(self, rows: CSR, Y: CSR, plan: tree_estimate.Plan, run: Run) -> Planner:
        setting = Setting(self._n_trees(), self.weight_threshold, self.weight_dtype)
        return Planner(rows, Y, plan, self._solver(), setting, self._names_bytes(), run)

    def _check_limit(self, X: CSR, Y: CSR, run: Run, *, is_given: bool) -> None:
        """Nothing yet: the first tree is planned once it has grown."""

    def _check_memory(self, rows: CSR, Y: CSR, tree: LabelTree, run: Run) -> None:
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
        rows = self._prepare(X)
        self.trees_ = []
        for number in range(self._n_trees()):
            seed = run.seed + number * 2**32  # seeds are below 2^32: no two trees of any two seeds share one
            tree = self._grow(rows, Y, run, seed)
            if number == 0:
                self._check_memory(rows, Y, tree, run)
            self.trees_.append(self._train(rows, Y, tree, run, seed))

    def _train(self, X: CSR, Y: CSR, tree: LabelTree, run: Run, seed: int) -> PackedTree:
        with run.phase("train", _MILLION) as progress:
            arrays = _core.train_tree(
                X.indptr, X.indices, X.data, X.n_cols, Y.indptr, Y.indices, Y.n_cols, tree.child_ptr, tree.label,
                *self._solver().arguments, -1.0 if self.weight_threshold is None else self.weight_threshold, seed,
                run.n_threads, progress,
            )  # fmt: skip
            logger.debug("train: %.2f GB of weights moved", arrays.pop("weight_bytes") / 1e9)
            if self.weight_dtype != "int8" or self.weight_threshold is None:
                return PackedTree(tree, narrow(arrays, tree, self.weight_dtype), self._link(), X.n_cols)
            return shrink.quantize(
                PackedTree(tree, narrow(arrays, tree, "float32"), self._link(), X.n_cols), self.weight_dtype
            )

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
        if not self.normalize:
            return X
        return CSR(X.indptr, X.indices, _core.unit_rows(X.indptr, X.indices, X.data), X.n_cols)

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


class LinearTree(LinearModel):
    """A label tree with linear classifiers: the default method.

    Use it first, above all on text: it trains in seconds, predicts in fractions of a millisecond, and its size is known
    before training. ``LinearTree.preset("paper")`` gives the paper's settings (k-means with 100 children, depth at most
    6, every weight kept), ``preset("parabel")`` balanced 2-means trees of 100 labels a leaf, three of them.

    >>> import numpy as np
    >>> X = np.eye(6, dtype=np.float32)
    >>> Y = [["red"], ["red"], ["green"], ["green"], ["blue"], ["blue"]]
    >>> model = LinearTree(n_jobs=1).fit(X, Y)
    >>> model.predict_topk(X[:1], k=1)[0].tolist()
    [['red']]
    """

    method_name: ClassVar[str] = "linear-tree"
    ADDED_LATER: ClassVar[dict[str, Any]] = {"score_power": 2}

    def __init__(
        self,
        *,
        n_trees: Annotated[int, Param("trees, whose scores are averaged", ge=1)] = 1,
        tree: Annotated[
            Literal["balanced", "kmeans", "random", "huffman"],
            Param(
                "how labels are arranged: balanced 2-means, k-means, at random, or frequent labels near the root"
            ),
        ] = "balanced",
        arity: Annotated[int, Param("children of an inner node above the last level", ge=2)] = 32,
        max_leaf: Annotated[int, Param("labels below a last inner node (balanced, random)", ge=1)] = 400,
        max_depth: Annotated[int, Param("depth of the deepest label (kmeans)", ge=1)] = 6,
        hierarchy: Annotated[
            str | list[Any] | dict[str, Any] | np.ndarray | None,
            Param("a tree of your own instead: nested JSON or its path, or an array of parents"),
        ] = None,
        cluster_rounds: Annotated[int, Param("rounds of a clustering at most", ge=1)] = 20,
        cluster_features: Annotated[
            int | None,
            Param("largest entries of a label's representation used for clustering; None: all", ge=1),
        ] = 100,
        loss: Loss = "squared_hinge",
        C: Cost = 0.7,
        tolerance: Tolerance = 0.5,
        max_passes: MaxPasses = 20,
        intercept: Intercept = -1.0,
        bias: Bias = 0.3,
        normalize: Normalize = True,
        weight_threshold: WeightThreshold = 0.1,
        weight_dtype: WeightDtype = "float16",
        search: Annotated[
            Literal["beam", "exact"],
            Param("beam search, or exact uniform-cost search, which may open many nodes"),
        ] = "beam",
        beam_width: Annotated[int, Param("nodes kept per level of a beam search", ge=1)] = 10,
        score_power: Annotated[
            int,
            Param(
                "a step's score is exp(-slack^score_power), slack = max(0, 1 - margin), unless logistic",
                ge=1,
                le=8,
            ),
        ] = 3,
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.n_trees = n_trees
        self.tree = tree
        self.arity = arity
        self.max_leaf = max_leaf
        self.max_depth = max_depth
        self.hierarchy = hierarchy
        self.cluster_rounds = cluster_rounds
        self.cluster_features = cluster_features
        self.loss = loss
        self.C = C
        self.tolerance = tolerance
        self.max_passes = max_passes
        self.intercept = intercept
        self.bias = bias
        self.normalize = normalize
        self.weight_threshold = weight_threshold
        self.weight_dtype = weight_dtype
        self.search = search
        self.beam_width = beam_width
        self.score_power = score_power
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {"tree": "kmeans", "arity": 100, "max_depth": 6, "C": 1.0, "tolerance": 0.1, "weight_threshold": None,
                  "score_power": 2, "cluster_rounds": 300, "cluster_features": None, "intercept": 0.0, "bias": 1.0},
        "parabel": {"tree": "balanced", "arity": 2, "max_leaf": 100, "n_trees": 3, "C": 1.0, "tolerance": 0.1,
                    "score_power": 2, "cluster_features": None, "intercept": 0.0, "bias": 1.0},
    }  # fmt: skip

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """An estimator with a published setting, ``"paper"`` or ``"parabel"``, and any changes to it."""
        if name not in cls.PRESETS:
            raise LabelwoodError(f"LinearTree: preset must be one of {', '.join(cls.PRESETS)}; got {name!r}")
        return cls(**{**cls.PRESETS[name], **changes})

    def _n_trees(self) -> int:
        return self.n_trees

    def _search(self) -> tuple[int, bool]:
        return self.beam_width, self.search == "exact"

    def _shapes(self, n_labels: int) -> dict[str, LabelTree]:
        names = self._names.array.tolist()
        if self.hierarchy is not None:
            return {"hierarchy": trees.hierarchy_tree(self.hierarchy, names)}
        changes: list[dict[str, int]] = [{}, {"arity": 2 * self.arity}]
        if self.tree in ("balanced", "random"):
            changes.append({"max_leaf": max(1, self.max_leaf // 4)})
        shapes = {}
        for change in changes:
            arity, max_leaf = change.get("arity", self.arity), change.get("max_leaf", self.max_leaf)
            if self.tree == "kmeans":  # nodes have all their children until at most that many labels are left
                max_leaf = n_labels
                while max_leaf > arity:
                    max_leaf = -(-max_leaf // arity)
            elif self.tree == "huffman":
                max_leaf = arity
            name = ", ".join(f"{key}={value}" for key, value in change.items()) or "present"
            shapes[name] = trees.random_tree(n_labels, arity=arity, max_leaf=max_leaf, seed=0)
        return shapes

    def _grow(self, X: CSR, Y: CSR, run: Run, seed: int) -> LabelTree:
        if self.hierarchy is not None:
            return trees.hierarchy_tree(self.hierarchy, self._names.array.tolist())
        if self.tree == "random":
            return trees.random_tree(Y.n_cols, arity=self.arity, max_leaf=self.max_leaf, seed=seed)
        if self.tree == "huffman":
            return trees.huffman_tree(np.bincount(Y.indices, minlength=Y.n_cols), arity=self.arity)
        if self.tree == "balanced" and Y.n_cols <= max(self.max_leaf, 2):
            return trees.flat_tree(Y.n_cols)  # what clustering would give
        with run.phase("label vectors") as progress:
            indptr, indices, data = _core.label_vectors(
                X.indptr, X.indices, X.data, X.n_cols, Y.indptr, Y.indices, Y.n_cols,
                self.cluster_features or 0, run.n_threads, progress,
            )  # fmt: skip
        with run.phase("cluster") as progress:
            grown = _core.grow_tree(
                indptr, indices, data, X.n_cols, self.tree == "balanced", self.arity, self.max_leaf, self.max_depth,
                self.cluster_rounds, seed, run.n_threads, progress,
            )  # fmt: skip
        return trees.freeze(*grown)


class OneVsRest(LinearModel):
    """One linear classifier per label against all the others: LinearTree with depth 1.

    The most accurate linear model and the most expensive one: time and memory grow with rows times labels. Use it up to
    a few thousand labels, or to see what a tree gives away. Rows without labels are not used, as in the trees.

    >>> import numpy as np
    >>> X, Y = np.eye(3, dtype=np.float32), np.eye(3, dtype=np.int64)
    >>> OneVsRest(n_jobs=1).fit(X, Y).predict_topk(X, k=1)[0].ravel().tolist()
    [0, 1, 2]
    """

    method_name: ClassVar[str] = "one-vs-rest"

    def __init__(
        self,
        *,
        loss: Loss = "squared_hinge",
        C: Cost = 1.0,
        tolerance: Tolerance = 0.5,
        max_passes: MaxPasses = 20,
        intercept: Intercept = -1.0,
        bias: Bias = 0.3,
        normalize: Normalize = True,
        weight_threshold: WeightThreshold = 0.1,
        weight_dtype: WeightDtype = "float16",
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.loss = loss
        self.C = C
        self.tolerance = tolerance
        self.max_passes = max_passes
        self.intercept = intercept
        self.bias = bias
        self.normalize = normalize
        self.weight_threshold = weight_threshold
        self.weight_dtype = weight_dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _grow(self, X: CSR, Y: CSR, run: Run, seed: int) -> LabelTree:
        return trees.flat_tree(Y.n_cols)

    def _shapes(self, n_labels: int) -> dict[str, LabelTree]:
        return {"present": trees.flat_tree(n_labels)}

    def _search(self) -> tuple[int, bool]:
        return 1, False
