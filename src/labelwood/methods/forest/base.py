"""What the instance forests share: a packed forest that routes, averages, shrinks and is saved.

``_fit`` prepares the rows, grows the trees and packs them. A subclass names its kernel and its options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from labelwood import _core, executors
from labelwood.errors import FormatError
from labelwood.estimator import TreeEstimator
from labelwood.executors.work_unit import MILLION
from labelwood.explain import Asked, Explanation, Missed, Place, Reranked, Suggestion
from labelwood.explain.forest import RowInForest
from labelwood.hybrid import as_sparse, topk_in_blocks
from labelwood.methods.forest import sharding
from labelwood.packed.routed_forest import Paths, RoutedForest, Routing, narrow, prepare
from labelwood.params import Param
from labelwood.resources.estimate import Growth
from labelwood.run_context import RunContext
from labelwood.scoring.rerank import CANDIDATES, MEANS, SHARE, TailReranker
from labelwood.sparse import CSR, F32, TopK

NTrees = Annotated[int, Param("trees, whose leaf distributions are averaged", ge=1)]
Idf = Annotated[
    bool | Literal["auto"],
    Param("weight features by inverse document frequency; auto: only if all values are whole numbers"),
]
RowShare = Annotated[
    float, Param("keep a row's largest entries up to this share of its squared length, at least 100", gt=0, le=1)
]
MaxLeaf = Annotated[int, Param("a node of at most this many rows becomes a leaf", ge=1)]
LeafSize = Annotated[int | None, Param("labels kept in a leaf, the most probable; None: all", ge=1)]
WeightDtype = Annotated[Literal["float16", "float32"], Param("number format of stored weights and probabilities")]
Rerank = Annotated[
    bool, Param("rank the trees' candidates also by nearness to the labels' mean rows, which helps rare labels")
]


class ForestEstimator(TreeEstimator):
    """An instance forest.

    A subclass declares the parameters ``n_trees``, ``idf``, ``normalize``, ``rerank``, ``weight_dtype``, and
    ``row_share`` if it cuts rows. It names its ``_kernel`` and implements ``_options`` and ``_routing``. Fitted
    attributes: ``forest_``, a :class:`~labelwood.packed.routed_forest.RoutedForest`, and with ``rerank`` ``tail_``, a
    :class:`~labelwood.scoring.rerank.TailReranker`.
    """

    divides_work: ClassVar[bool] = True
    _kernel: ClassVar[str]  # the function of the core that grows the trees
    # Measured over doublings from 700 to 170,000 rows: 0.92 to 1.
    _growth: ClassVar[Growth] = Growth(0.85, 1.0)
    _shared_arrays: ClassVar[tuple[str, ...]] = ("feature_weights", MEANS)

    n_trees: int
    idf: bool | str
    normalize: bool
    row_share: float = 1.0
    rerank: bool
    tree_share: float = SHARE  # weight of the trees in re-ranking
    weight_dtype: str
    forest_: RoutedForest
    tail_: TailReranker

    def _options(self, X: CSR, Y: CSR) -> dict[str, Any]:
        """The kernel's own options for these rows."""
        raise NotImplementedError

    def _routing(self, X: CSR) -> Routing:
        """How the grown forest prepares and routes rows."""
        raise NotImplementedError

    @property
    def _unit_means(self) -> bool:
        """Whether re-ranking scales the labels' means to unit length."""
        return True

    def _used_rows(self, X: CSR, Y: CSR) -> tuple[CSR, CSR]:
        """The rows to grow the trees from: those that have labels."""
        labelled = np.flatnonzero(np.diff(Y.indptr))
        return (X, Y) if len(labelled) == Y.n_rows else (X.take(labelled), Y.take(labelled))

    def _fit(self, X: CSR, Y: CSR, run: RunContext) -> None:
        weighted = is_counts(X) if self.idf == "auto" else self.idf
        feature_weights = idf(X) if weighted else np.empty(0, np.float32)
        rows = prepare(X, feature_weights, normalize=self.normalize, row_share=self.row_share)
        run.executor = run.executor or executors.joblib_executor()
        used, targets = self._used_rows(rows, Y)
        grown = self._grown(used, targets, self._options(used, targets), run)
        self.forest_ = self._packed(grown, feature_weights, used, targets)
        if self.rerank:
            self.tail_ = TailReranker.learn(rows, Y, run, unit=self._unit_means, share=self.tree_share)

    def _grown(self, X: CSR, Y: CSR, options: dict[str, Any], run: RunContext) -> dict[str, npt.NDArray[Any]]:
        """The arrays of the trees, grown by this process or as work units."""
        options = {**options, "seed": run.seed}
        if run.is_divided:
            seed_per_node = self._routing(X).seed_per_node
            return sharding.grow(self._kernel, self.n_trees, X, Y, options, run, node_seeds=seed_per_node)
        with run.phase("grow", MILLION) as progress:
            whole = {**options, "first_tree": 0, "n_trees": self.n_trees}
            grown: dict[str, npt.NDArray[Any]] = getattr(_core, self._kernel)(X, Y, whole, run.n_threads, progress)
        return grown

    def _packed(self, grown: dict[str, npt.NDArray[Any]], feature_weights: F32, X: CSR, Y: CSR) -> RoutedForest:
        return narrow(
            {**grown, "feature_weights": feature_weights},
            routing=self._routing(X),
            n_features=X.n_cols,
            n_labels=Y.n_cols,
            weight_dtype=self.weight_dtype,
            leaf_dtype=self.weight_dtype,
        )

    def trees(self) -> RoutedForest:
        """The packed forest."""
        return self.forest_

    def topk_rows(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k labels of highest averaged leaf probability, reranked if asked for."""
        return topk_in_blocks(X, lambda rows: self._topk_sparse(rows, k, run))

    def _topk_sparse(self, X: CSR, k: int, run: RunContext) -> TopK:
        if not self.rerank:
            return self.forest_.topk(X, k, run)
        top = self.forest_.topk(X, run.width(min(CANDIDATES, self.n_labels_)), run)
        return self.tail_.order(self.forest_.prepare(X), top, k, run)

    def explain_one(self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: RunContext) -> Explanation:
        """The routes of the row, and the share of each label in the leaves reached."""
        row = as_sparse(row)
        top = self.topk_rows(row, k, run)
        prepared = self.forest_.prepare(row)
        view = RowInForest(self.forest_, prepared, self.forest_.paths(row, run), asked)
        suggestions = []
        for label, score in zip(top.labels[0].tolist(), top.scores[0].tolist(), strict=True):
            if label < 0:
                continue
            shares = view.shares(label)
            reranked = None
            if self.rerank:
                nearness = self.tail_.nearness(prepared, np.array([0]), np.array([label]))
                reranked = Reranked(sum(share.amount for share in shares), float(np.exp(nearness[0])))
            suggestions.append(Suggestion(asked.label_name(label), score, shares=shares, reranked=reranked))
        lost = tuple(
            Missed(asked.label_name(place.label), place.score, place.place, view.lost(place.label)) for place in missed
        )
        return Explanation(tuple(suggestions), routes=view.routes, missed=lost)

    def paths(self, X: Any) -> Paths:
        """The leaves each row reaches in each tree; ``forest_.path_to(leaf)`` gives the nodes on the way."""
        rows = as_sparse(self.encode(X))
        return self.forest_.paths(rows, self._own_run())

    def shrink(
        self,
        *,
        vector_size: int | None = None,
        leaf_size: int | None = None,
        dtype: Literal["float16", "float32"] | None = None,
    ) -> Self:
        """Shrink the fitted model in place: entries kept of a routing vector and of a leaf, number format.

        Returns the estimator. What quality it costs depends on the data: measure before shipping.
        """
        self._check_fitted()
        self.forest_ = self.forest_.shrink(vector_size=vector_size, leaf_size=leaf_size, dtype=dtype)
        return self

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        tail = self.tail_.arrays() if self.rerank else {}
        return {"routing": self.forest_.routing.facts(), **self.describe()}, {**self.forest_.arrays(), **tail}

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        if not isinstance(facts, dict):
            raise FormatError("facts must be an object")
        routing = Routing.restore(facts["routing"])
        if self.rerank:
            self.tail_ = TailReranker.restore(arrays, self.n_labels_, self.n_features_in_, share=self.tree_share)
        self.forest_ = RoutedForest.restore(arrays, routing, self.n_features_in_, self.n_labels_)

    def describe(self) -> dict[str, Any]:
        """Trees, depth, nodes, weights and leaf entries of the fitted forest."""
        forest = self.forest_
        return {
            "n_trees": forest.n_trees,
            "depth": forest.depth,
            "nodes": forest.n_nodes,
            "leaves": len(forest.leaves),
            "nonzero_weights": len(forest.weights),
            "leaf_entries": len(forest.leaf_values),
            **({"mean_entries": self.tail_.means.nnz} if self.rerank else {}),
        }


def idf(X: CSR) -> F32:
    """Smoothed inverse document frequencies, ``1 + log((1 + n) / (1 + n_j))``."""
    counts = np.bincount(X.indices, minlength=X.n_cols)
    return (1 + np.log((1 + X.n_rows) / (1 + counts))).astype(np.float32)


def is_counts(X: CSR) -> bool:
    """True if every value is a whole number: presence or counts, not yet weighted."""
    return bool((X.data == np.rint(X.data)).all())
