"""LdSM: streaming decision trees whose every split is balanced and pure by one objective."""

from __future__ import annotations

import os
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.estimator import NJobs, Normalize, RandomState, Verbose
from labelwood.methods.forest.base import ForestEstimator, Idf, LeafSize, NTrees, Rerank, RowShare, WeightDtype
from labelwood.methods.forest.split_plots import plot_by_level
from labelwood.packed.routed_forest import RoutedForest, Routing
from labelwood.params import Param
from labelwood.sparse import CSR, F32

SENT_ABOVE = 0.5  # Algorithm 4: a row goes to every child whose margin exceeds this
SPLIT_COLUMNS = ("objective", "balancedness", "purity", "running_objective")


class LdsmForest(ForestEstimator):
    """Shallow decision trees, trained node by node in passes over the data.

    A node sends a row to every child whose linear regressor asks for it. Training chooses the regressors' targets row
    by row, so that children get equally many rows, rows of one label stay together, and few rows go more than one
    way. Use it for up to some ten thousand labels when fast prediction matters and rows have many labels.

    Fitted attributes besides those of every forest: ``splits_``, one row per inner node (in the order of ids) with its
    objective J, balancedness and purity (0 is perfect for both), and J as training saw it.

    >>> import numpy as np
    >>> X = np.eye(4, dtype=np.float32).repeat(5, axis=0)
    >>> forest = LdsmForest(n_trees=5, n_jobs=1).fit(X, X > 0)
    >>> forest.predict_topk(X[::5], k=1)[0].ravel().tolist()
    [0, 1, 2, 3]

    Majzoubi and Choromanska, LdSM: Logarithm-depth Streaming Multi-label Decision Trees, AISTATS 2020.
    """

    method_name: ClassVar[str] = "ldsm-forest"
    _kernel: ClassVar[str] = "grow_ldsm_forest"
    ADDED_LATER: ClassVar[dict[str, Any]] = {
        "start_weights": 0.0, "ties": "random", "partial_splits": False, "leaf_votes": False, "row_share": 1.0,
    }  # fmt: skip
    splits_: F32

    def __init__(
        self,
        *,
        n_trees: NTrees = 50,
        arity: Annotated[int, Param("children of an inner node", ge=2, le=8)] = 2,
        max_nodes: Annotated[int, Param("maximum nodes of a tree, leaves included", ge=1, le=2**30)] = 8000,
        epochs: Annotated[int, Param("passes over a node's rows", ge=1)] = 10,
        lambda_integrity: Annotated[float, Param("weight of keeping a label's rows together", ge=0)] = 2.0,
        lambda_multiway: Annotated[float, Param("weight against sending rows several ways", ge=0)] = 1.0,
        loss: Annotated[
            Literal["logistic", "squared", "clamped"],
            Param("loss of a regressor on its margin; clamped: squared, on the margin cut to 0 to 1"),
        ] = "logistic",
        optimizer: Annotated[
            Literal["nag", "adagrad", "sgd"],
            Param("normalised adaptive gradient (any scale of features), adaptive, or plain gradient steps"),
        ] = "nag",
        learning_rate: Annotated[float, Param("step size", gt=0)] = 0.1,
        weight_threshold: Annotated[
            float, Param("drop weights that can move a margin by less than this; 0 keeps all", ge=0)
        ] = 0.03,
        shuffle: Annotated[
            Literal["epoch", "tree"], Param("shuffle the rows for every pass, or once per tree")
        ] = "epoch",
        start_weights: Annotated[
            float, Param("first weights are drawn between minus this and this; 0: they are zero", ge=0)
        ] = 0.0,
        ties: Annotated[
            Literal["random", "first"],
            Param("of ways to send a row that are equally good, take one at random or the first"),
        ] = "random",
        partial_splits: Annotated[
            bool, Param("keep splits of which some children get no row or every row, as in the paper")
        ] = False,
        leaf_counts: Annotated[
            Literal["rows", "labels"],
            Param("divide a leaf's label counts by its rows, or by their sum as in the paper"),
        ] = "rows",
        leaf_votes: Annotated[
            bool, Param("every leaf that a row reaches has one vote, as in the paper; else every tree has one")
        ] = False,
        idf: Idf = False,
        normalize: Normalize = False,
        row_share: RowShare = 1.0,
        leaf_size: LeafSize = None,
        rerank: Rerank = False,
        weight_dtype: WeightDtype = "float16",
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.n_trees, self.arity, self.max_nodes, self.epochs = n_trees, arity, max_nodes, epochs
        self.lambda_integrity, self.lambda_multiway, self.loss = lambda_integrity, lambda_multiway, loss
        self.optimizer, self.learning_rate, self.weight_threshold = optimizer, learning_rate, weight_threshold
        self.start_weights, self.ties, self.partial_splits = start_weights, ties, partial_splits
        self.leaf_votes, self.row_share = leaf_votes, row_share
        self.shuffle, self.leaf_counts, self.idf, self.normalize = shuffle, leaf_counts, idf, normalize
        self.leaf_size, self.rerank, self.weight_dtype, self.n_jobs = leaf_size, rerank, weight_dtype, n_jobs
        self.random_state, self.verbose = random_state, verbose

    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "n_trees": 50, "arity": 4, "loss": "clamped", "start_weights": 0.1, "ties": "first", "shuffle": "tree",
            "partial_splits": True, "leaf_counts": "labels", "leaf_votes": True, "weight_threshold": 0.0,
        },
    }  # fmt: skip

    def _used_rows(self, X: CSR, Y: CSR) -> tuple[CSR, CSR]:
        """All rows, without explicit zeros, which have no scale for the normalised steps to divide by."""
        if X.data.all():
            return X, Y
        kept = X.data != 0
        indptr = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])[X.indptr]
        return CSR(indptr, X.indices[kept], X.data[kept], X.n_cols), Y

    def _routing(self, X: CSR) -> Routing:
        return Routing(
            threshold=SENT_ABOVE, normalize=self.normalize, row_share=self.row_share, leaf_votes=self.leaf_votes
        )

    def _options(self, X: CSR, Y: CSR) -> dict[str, Any]:
        return {
            "arity": self.arity,
            "max_nodes": self.max_nodes,
            "epochs": self.epochs,
            "lambda_integrity": self.lambda_integrity,
            "lambda_multiway": self.lambda_multiway,
            "optimizer": self.optimizer,
            "learning_rate": self.learning_rate,
            "weight_threshold": self.weight_threshold,
            "loss": self.loss,
            "start_weights": self.start_weights,
            "first_of_ties": self.ties == "first",
            "partial_splits": self.partial_splits,
            "shuffle_epoch": self.shuffle == "epoch",
            "divide_by_rows": self.leaf_counts == "rows",
            "leaf_size": self.leaf_size or 0,
        }

    def _packed(self, grown: dict[str, npt.NDArray[Any]], feature_weights: F32, X: CSR, Y: CSR) -> RoutedForest:
        self.splits_ = grown.pop("splits")
        return super()._packed(grown, feature_weights, X, Y)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        facts, arrays = super()._state()
        return facts, {**arrays, "splits": self.splits_}

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        own = dict(arrays)
        self.splits_ = own.pop("splits")
        super()._restore(facts, own)
        n_inner = self.forest_.n_nodes - len(self.forest_.leaves)
        if self.splits_.shape != (n_inner, len(SPLIT_COLUMNS)) or self.splits_.dtype != np.float32:
            raise FormatError(f"splits must be float32, {n_inner} x {len(SPLIT_COLUMNS)}")

    def describe(self) -> dict[str, Any]:
        """Size of the forest, and the mean objective, balancedness and purity of its splits."""
        found = super().describe()
        means = self.splits_.mean(axis=0, dtype=np.float64) if len(self.splits_) else np.zeros(4)
        return {**found, **{f"mean_{name}": round(float(v), 4) for name, v in zip(SPLIT_COLUMNS, means, strict=True)}}

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw objective, balancedness and purity of the splits by level, and write the picture to ``path``."""
        self._check_fitted()
        plot_by_level(self.forest_, dict(zip(SPLIT_COLUMNS, self.splits_.T, strict=True)), path)
