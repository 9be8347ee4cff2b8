"""GraphForest: trees whose hyperplanes cut the neighbour graph of the labels.

The method of "Learning Extreme Multi-label Tree-classifier via Nearest Neighbor Graph Partitioning" (Tagami, WWW
2017), GPT in its tables: at each node the rows are joined to their nearest neighbours by labels, and a sparse
hyperplane on the features is learned that keeps neighbours on one side and random rows on the other.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from labelwood.estimator import NJobs, Normalize, RandomState, Verbose
from labelwood.methods.forest.base import ForestEstimator, Idf, LeafSize, MaxLeaf, NTrees, Rerank, RowShare, WeightDtype
from labelwood.packed.routed_forest import Routing
from labelwood.params import Needs, Param
from labelwood.sparse import CSR

_TAIL = Needs("graph=tail", lambda own: own["graph"] == "tail")
BETA = 1.0  # in the AdaGrad rates, learning_rate / (BETA + root of the sum of squared gradients)


class GraphForest(ForestEstimator):
    """A forest of hyperplanes that keep rows of like labels together.

    Use it where labels are many and rows carry several: it needs no label tree, its leaves are label distributions,
    and its scores are probabilities. Rows without labels are not used. ``GraphForest.preset("paper")`` gives the
    settings of the paper.

    >>> import numpy as np
    >>> X = np.eye(6, dtype=np.float32)
    >>> Y = [["red"], ["red"], ["green"], ["green"], ["blue"], ["blue"]]
    >>> model = GraphForest(n_trees=5, max_leaf=2, n_jobs=1).fit(X, Y)
    >>> model.predict_topk(X[:1], k=1)[0].shape
    (1, 1)
    """

    method_name: ClassVar[str] = "graph-forest"
    _kernel: ClassVar[str] = "grow_graph_forest"
    ADDED_LATER: ClassVar[dict[str, Any]] = {"match_negatives": False, "fill_neighbors": False, "row_share": 1.0}

    def __init__(
        self,
        *,
        n_trees: NTrees = 50,
        n_neighbors: Annotated[int, Param("nearest rows by labels that a row should stay with", ge=1)] = 10,
        n_negatives: Annotated[int, Param("random rows that each row should be separated from", ge=0)] = 10,
        match_negatives: Annotated[
            bool, Param("draw as many negatives as a row has neighbours, at most n_negatives")
        ] = False,
        fill_neighbors: Annotated[
            bool, Param("fill up the neighbours of a row by its frequent labels", needs=_TAIL)
        ] = False,
        label_threshold: Annotated[int, Param("only labels of fewer rows of a node count for its graph", ge=2)] = 50,
        graph: Annotated[
            Literal["tail", "idf"],
            Param("compare rows by the number of rare labels they share, or by all labels weighted by idf"),
        ] = "idf",
        epochs: Annotated[int, Param("maximum passes over a node's rows", ge=0)] = 3,
        l1: Annotated[float, Param("L1 penalty of a hyperplane, once per node", ge=0)] = 1.0,
        learning_rate: Annotated[float, Param("first step of the AdaGrad rates", gt=0)] = 0.1,
        start: Annotated[
            Literal["rows", "zero", "gaussian"],
            Param("start of a hyperplane: the difference of two random rows, zero, or random"),
        ] = "zero",
        tolerance: Annotated[float, Param("stop when at most this share of a node's rows changes sides", ge=0)] = 0.0,
        feature_rows: Annotated[
            int, Param("a hyperplane uses only features that occur in at least this many rows of its node", ge=1)
        ] = 1,
        max_leaf: MaxLeaf = 10,
        leaf_size: LeafSize = None,
        rerank: Rerank = False,
        idf: Idf = True,
        normalize: Normalize = True,
        row_share: RowShare = 1.0,
        weight_dtype: WeightDtype = "float16",
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.n_trees, self.n_neighbors, self.n_negatives = n_trees, n_neighbors, n_negatives
        self.match_negatives, self.fill_neighbors = match_negatives, fill_neighbors
        self.label_threshold, self.graph, self.epochs, self.l1 = label_threshold, graph, epochs, l1
        self.learning_rate, self.start, self.tolerance = learning_rate, start, tolerance
        self.feature_rows, self.max_leaf, self.leaf_size = feature_rows, max_leaf, leaf_size
        self.rerank, self.idf, self.normalize, self.weight_dtype = rerank, idf, normalize, weight_dtype
        self.row_share, self.n_jobs, self.random_state, self.verbose = row_share, n_jobs, random_state, verbose

    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "n_trees": 50, "n_neighbors": 10, "n_negatives": 10, "label_threshold": 50, "graph": "tail",
            "start": "rows", "epochs": 10, "l1": 4.0, "learning_rate": 0.1, "tolerance": 0.0,
            "feature_rows": 1, "max_leaf": 10, "idf": False,
        },
    }  # fmt: skip

    def _routing(self, X: CSR) -> Routing:
        return Routing(normalize=self.normalize, row_share=self.row_share)

    def _options(self, X: CSR, Y: CSR) -> dict[str, Any]:
        return {
            "graph": self.graph,
            "n_neighbors": min(self.n_neighbors, X.n_rows),
            "threshold": self.label_threshold,
            "fill": self.fill_neighbors,
            "n_negatives": self.n_negatives,
            "match_negatives": self.match_negatives,
            "epochs": self.epochs,
            "l1": self.l1,
            "learning_rate": self.learning_rate,
            "beta": BETA,
            "tolerance": self.tolerance,
            "start": self.start,
            "feature_rows": self.feature_rows,
            "max_leaf": self.max_leaf,
            "leaf_size": self.leaf_size or 0,
        }
