"""LinearTree: a label tree with a linear classifier on every edge, and OneVsRest, the same with depth 1.

The method of "Exploring Space Efficiency in a Tree-based Linear Model for Extreme Multi-label Classification" (Lin,
Liu and Lin, 2024), section 2.2: labels are represented by the sum of their rows (Eq. 2), clustered into a tree, and
every inner node learns one classifier per child from the rows that carry one of its labels. Features that do not occur
in those rows are never stored (the paper's inherent pruning).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np

from labelwood import _core, trees
from labelwood.errors import LabelwoodError
from labelwood.estimator import NJobs, RandomState, Verbose
from labelwood.methods.linear_model import (
    Bias,
    Cost,
    Intercept,
    LinearModel,
    Loss,
    MaxPasses,
    Normalize,
    Tolerance,
    WeightDtype,
    WeightThreshold,
)
from labelwood.methods.training_rows import TrainingRows
from labelwood.params import Param
from labelwood.progress import Run
from labelwood.sparse import CSR, F32, I32, I64
from labelwood.trees import LabelTree


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

    def _grower(self, rows: TrainingRows, Y: CSR, run: Run) -> Callable[[int], LabelTree]:
        if self.hierarchy is not None:
            brought = trees.hierarchy_tree(self.hierarchy, self._names.array.tolist())
            return lambda seed: brought
        if self.tree == "random":
            return lambda seed: trees.random_tree(
                Y.n_cols, arity=self.arity, max_leaf=self.max_leaf, seed=seed
            )
        if self.tree == "huffman":
            counts = np.bincount(Y.indices, minlength=Y.n_cols)
            return lambda seed: trees.huffman_tree(counts, arity=self.arity)
        if self.tree == "balanced" and Y.n_cols <= max(self.max_leaf, 2):
            return lambda seed: trees.flat_tree(Y.n_cols)  # what clustering would give

        @cache
        def vectors() -> CSR:
            with run.phase("label vectors") as progress:
                found: tuple[I64, I32, F32] = _core.label_vectors(
                    rows.X, Y, self.cluster_features or 0, run.n_threads, progress, scale=rows.scale
                )
            return CSR(*found, rows.X.n_cols)

        def cluster(seed: int) -> LabelTree:
            options = {
                "balanced": self.tree == "balanced",
                "arity": self.arity,
                "max_leaf": self.max_leaf,
                "max_depth": self.max_depth,
                "max_rounds": self.cluster_rounds,
                "seed": seed,
            }
            with run.phase("cluster") as progress:
                grown = _core.grow_tree(vectors(), options, run.n_threads, progress)
            return trees.freeze(*grown)

        return cluster


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

    def _grower(self, rows: TrainingRows, Y: CSR, run: Run) -> Callable[[int], LabelTree]:
        return lambda seed: trees.flat_tree(Y.n_cols)

    def _shapes(self, n_labels: int) -> dict[str, LabelTree]:
        return {"present": trees.flat_tree(n_labels)}

    def _search(self) -> tuple[int, bool]:
        return 1, False
