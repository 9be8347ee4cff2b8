"""LinearTree: a label tree with a linear classifier on every edge, and OneVsRest, the same with depth 1.

The method of "Exploring Space Efficiency in a Tree-based Linear Model for Extreme Multi-label Classification" (Lin,
Liu and Lin, 2024), section 2.2: labels are represented by the sum of their rows (Eq. 2), clustered into a tree, and
every inner node learns one classifier per child from the rows that carry one of its labels. Features that do not occur
in those rows are never stored (the paper's inherent pruning).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from labelwood import _core
from labelwood.estimator import NJobs, Normalize, RandomState, Verbose
from labelwood.methods.label_tree.base import (
    Bias,
    Cost,
    Intercept,
    LinearModel,
    Loss,
    MaxPasses,
    Tolerance,
    VectorWeight,
    WeightDtype,
    WeightThreshold,
)
from labelwood.methods.label_tree.training_rows import TrainingRows
from labelwood.packed import tree_shape
from labelwood.packed.tree_shape import LabelTree
from labelwood.params import SEARCHES_BEAM, Needs, Param
from labelwood.resources.estimate import Banded
from labelwood.resources.label_tree import Plan
from labelwood.run_context import RunContext
from labelwood.sparse import CSR

# A quick tree for estimates: rows and features per label, and rounds. Bytes of the real tree over those of this one,
# and seconds, if the clustering takes a part of the features or all: each a value with a band.
_SKETCH_ROWS, _SKETCH_FEATURES, _SKETCH_ROUNDS = 8, 64, 2
_SKETCHED = (0.9, 0.75, 1.08)
_GROW_PART, _GROW_ALL = Banded(3.0, 1.5, 6.0), Banded(36.0, 5.0, 150.0)

_NO_HIERARCHY = Needs("no hierarchy", lambda own: own["hierarchy"] is None)


def _needs_tree(*kinds: str) -> Needs:
    words = f"tree={' or '.join(kinds)} and no hierarchy"
    return Needs(words, lambda own: own["tree"] in kinds and own["hierarchy"] is None)


_CLUSTERED = _needs_tree("balanced", "kmeans")


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
    ADDED_LATER: ClassVar[dict[str, Any]] = {"score_power": 2, "candidates": "best", "vector_weight": 1.0}

    def __init__(
        self,
        *,
        n_trees: Annotated[int, Param("trees, whose scores are averaged", ge=1)] = 1,
        tree: Annotated[
            Literal["balanced", "kmeans", "random", "huffman"],
            Param(
                "shape of the tree: balanced 2-means, k-means, random, or frequent labels near the root",
                needs=_NO_HIERARCHY,
            ),
        ] = "balanced",
        arity: Annotated[int, Param("children of an inner node above the last level", ge=2, needs=_NO_HIERARCHY)] = 32,
        max_leaf: Annotated[
            int,
            Param(
                "labels below an inner node of the last level (balanced, random)",
                ge=1,
                needs=_needs_tree("balanced", "random"),
            ),
        ] = 400,
        max_depth: Annotated[int, Param("depth of the deepest label (kmeans)", ge=1, needs=_needs_tree("kmeans"))] = 6,
        hierarchy: Annotated[
            str | list[Any] | dict[str, Any] | np.ndarray | None,
            Param("your own tree instead: nested JSON or its path, or an array of parents"),
        ] = None,
        cluster_rounds: Annotated[int, Param("maximum rounds of a clustering", ge=1, needs=_CLUSTERED)] = 20,
        cluster_features: Annotated[
            int | None,
            Param("entries of a label's vector used to cluster, the largest; None: all", ge=1, needs=_CLUSTERED),
        ] = 100,
        loss: Loss = "squared_hinge",
        C: Cost = 0.7,
        tolerance: Tolerance = 0.5,
        max_passes: MaxPasses = 20,
        intercept: Intercept = -1.0,
        bias: Bias = 0.3,
        normalize: Normalize = True,
        vector_weight: VectorWeight = 1.0,
        weight_threshold: WeightThreshold = 0.1,
        weight_dtype: WeightDtype = "float16",
        search: Annotated[
            Literal["beam", "exact"], Param("beam search, or exact uniform-cost search, which may visit many nodes")
        ] = "beam",
        beam_width: Annotated[int, Param("nodes kept per level of a beam search", ge=1, needs=SEARCHES_BEAM)] = 10,
        score_power: Annotated[
            int,
            Param(
                "score of a step is exp(-slack^score_power), slack = max(0, 1 - margin); not for logistic",
                ge=1,
                le=8,
                needs=Needs("loss=squared_hinge", lambda own: own["loss"] == "squared_hinge"),
            ),
        ] = 3,
        candidates: Annotated[
            Literal["best", "beam", "all"],
            Param(
                "labels that each of several trees proposes: the 4 k best, the beam_width best of each node of the "
                "beam, or all of them",
                needs=Needs("several trees, n_trees=2 or more", lambda own: own["n_trees"] > 1),
            ),
        ] = "best",
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.n_trees, self.tree, self.arity, self.max_leaf = n_trees, tree, arity, max_leaf
        self.max_depth, self.hierarchy, self.cluster_rounds = max_depth, hierarchy, cluster_rounds
        self.cluster_features, self.loss, self.C, self.tolerance = cluster_features, loss, C, tolerance
        self.max_passes, self.intercept, self.bias, self.normalize = max_passes, intercept, bias, normalize
        self.vector_weight = vector_weight
        self.weight_threshold, self.weight_dtype, self.search = weight_threshold, weight_dtype, search
        self.beam_width, self.score_power, self.candidates = beam_width, score_power, candidates
        self.n_jobs, self.random_state, self.verbose = n_jobs, random_state, verbose

    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {"tree": "kmeans", "arity": 100, "max_depth": 6, "C": 1.0, "tolerance": 0.1, "weight_threshold": None,
                  "score_power": 2, "cluster_rounds": 300, "cluster_features": None, "intercept": 0.0, "bias": 1.0},
        "parabel": {"tree": "balanced", "arity": 2, "max_leaf": 100, "n_trees": 3, "C": 1.0, "tolerance": 0.1,
                    "score_power": 2, "cluster_features": None, "intercept": 0.0, "bias": 1.0},
    }  # fmt: skip

    def _n_trees(self) -> int:
        return self.n_trees

    def _search(self) -> tuple[int, bool]:
        return self.beam_width, self.search == "exact"

    def _shapes(self, n_labels: int) -> dict[str, LabelTree]:
        names = self._names.array.tolist()
        if self.hierarchy is not None:
            return {"hierarchy": tree_shape.hierarchy_tree(self.hierarchy, names)}
        changes: list[dict[str, int]] = [{}, {"arity": 2 * self.arity}]
        if self.tree in ("balanced", "random"):
            changes.append({"max_leaf": max(1, self.max_leaf // 4)})
        shapes = {}
        for change in changes:
            arity, max_leaf = change.get("arity", self.arity), change.get("max_leaf", self.max_leaf)
            if self.tree == "kmeans":  # every node has all its children until at most `arity` labels are left
                max_leaf = n_labels
                while max_leaf > arity:
                    max_leaf = -(-max_leaf // arity)
            elif self.tree == "huffman":
                max_leaf = arity
            name = ", ".join(f"{key}={value}" for key, value in change.items()) or "present"
            shapes[name] = tree_shape.random_tree(n_labels, arity=arity, max_leaf=max_leaf, seed=0)
        return shapes

    def _sketch(self, rows: TrainingRows, Y: CSR, run: RunContext) -> tuple[Plan, Banded]:
        """Where labels are clustered: of a tree of few rounds, by a few rows and features of each label."""
        is_flat = self.tree == "balanced" and Y.n_cols <= max(self.max_leaf, 2)
        if self.hierarchy is not None or self.tree in ("random", "huffman") or is_flat:
            return super()._sketch(rows, Y, run)
        started, counts = time.process_time(), np.bincount(Y.indices, minlength=Y.n_cols)
        taken = np.random.default_rng(run.seed).random(Y.nnz) * counts[Y.indices] < _SKETCH_ROWS
        indptr = np.concatenate([[0], np.cumsum(taken)])[Y.indptr]
        quick: LinearTree = copy.copy(self)
        quick.cluster_rounds = min(self.cluster_rounds, _SKETCH_ROUNDS)
        quick.cluster_features = min(self.cluster_features or _SKETCH_FEATURES, _SKETCH_FEATURES)
        tree = quick._grower(rows, CSR(indptr, Y.indices[taken], Y.data[taken], Y.n_cols), run)(run.seed)
        seconds = time.process_time() - started
        plan = replace(rows.count(Y, tree, run), likeness=_SKETCHED)
        return plan, (_GROW_PART if self.cluster_features else _GROW_ALL).times(seconds)

    def _grower(self, rows: TrainingRows, Y: CSR, run: RunContext) -> Callable[[int], LabelTree]:
        if self.hierarchy is not None:
            brought = tree_shape.hierarchy_tree(self.hierarchy, self._names.array.tolist())
            return lambda seed: brought
        if self.tree == "random":
            return lambda seed: tree_shape.random_tree(Y.n_cols, arity=self.arity, max_leaf=self.max_leaf, seed=seed)
        if self.tree == "huffman":
            counts = np.bincount(Y.indices, minlength=Y.n_cols)
            return lambda seed: tree_shape.huffman_tree(counts, arity=self.arity)
        if self.tree == "balanced" and Y.n_cols <= max(self.max_leaf, 2):
            return lambda seed: tree_shape.flat_tree(Y.n_cols)  # clustering would give the same

        @cache
        def vectors() -> CSR:
            return rows.label_vectors(Y, self.cluster_features or 0, run)

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
            return tree_shape.freeze(*grown)

        return cluster


class OneVsRest(LinearModel):
    """One linear classifier per label against all others: LinearTree with depth 1.

    The most accurate linear model and the most expensive: time and memory grow with rows times labels. Use it for up to
    a few thousand labels, or to measure what a tree loses. Rows without labels are not used.

    >>> import numpy as np
    >>> X, Y = np.eye(3, dtype=np.float32), np.eye(3, dtype=np.int64)
    >>> OneVsRest(n_jobs=1).fit(X, Y).predict_topk(X, k=1)[0].ravel().tolist()
    [0, 1, 2]
    """

    method_name: ClassVar[str] = "one-vs-rest"
    ADDED_LATER: ClassVar[dict[str, Any]] = {"vector_weight": 1.0}

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
        vector_weight: VectorWeight = 1.0,
        weight_threshold: WeightThreshold = 0.1,
        weight_dtype: WeightDtype = "float16",
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.loss, self.C, self.tolerance, self.max_passes = loss, C, tolerance, max_passes
        self.intercept, self.bias, self.normalize = intercept, bias, normalize
        self.vector_weight, self.weight_threshold = vector_weight, weight_threshold
        self.weight_dtype, self.n_jobs = weight_dtype, n_jobs
        self.random_state, self.verbose = random_state, verbose

    def _grower(self, rows: TrainingRows, Y: CSR, run: RunContext) -> Callable[[int], LabelTree]:
        return lambda seed: tree_shape.flat_tree(Y.n_cols)

    def _shapes(self, n_labels: int) -> dict[str, LabelTree]:
        return {"present": tree_shape.flat_tree(n_labels)}

    def _search(self) -> tuple[int, bool]:
        return 1, False
