"""CraftForest: a random forest of projected k-means trees.

The method of "CRAFTML, an Efficient Clustering-based Random Forest for Extreme Multi-label Learning"
(Siblini, Kuntz and Meyer, 2018). Each tree sees the features and the labels through random projections of
its own. A node clusters its rows by their projected labels, and sends a row to the cluster whose mean of
projected features is closest (Algorithm 2); a leaf holds the mean label vector of its rows (Algorithm 1).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.estimator import NJobs, Normalize, RandomState, Verbose
from labelwood.methods.forest.base import ForestEstimator, Idf, LeafSize, MaxLeaf, NTrees, Rerank, RowShare, WeightDtype
from labelwood.packed.routed_forest import Routing
from labelwood.params import Needs, Param
from labelwood.sparse import CSR

_MOST_DENSE_ENTRIES = 2**31
_PROJECTED = Needs("a projection", lambda own: own["projection"] != "none")


class CraftForest(ForestEstimator):
    """A random forest of projected k-means trees (CRAFTML).

    Use it where rows have many labels, or where the label space is wide and noisy: it has no loss to tune,
    trains in seconds, and its scores are averaged label frequencies of similar rows. Rows without labels
    are not used.

    >>> import numpy as np
    >>> X = np.eye(6, dtype=np.float32)
    >>> Y = [["red"], ["red"], ["green"], ["green"], ["blue"], ["blue"]]
    >>> model = CraftForest(n_trees=10, max_leaf=2, n_jobs=1).fit(X, Y)
    >>> model.predict_topk(X[:1], k=1)[0].tolist()
    [['red']]
    """

    method_name: ClassVar[str] = "craft-forest"
    _kernel: ClassVar[str] = "grow_craft_forest"
    ADDED_LATER: ClassVar[dict[str, Any]] = {"row_share": 1.0, "cap_columns": False}
    _SHORT_CENTROID: ClassVar[int] = 100  # entries below which centroid_share cuts nothing

    def __init__(
        self,
        *,
        n_trees: NTrees = 50,
        arity: Annotated[int, Param("clusters, and thus children, of a node (k)", ge=2)] = 10,
        max_leaf: MaxLeaf = 10,
        sample: Annotated[int, Param("rows drawn to train a node (n_s)", ge=2)] = 20_000,
        kmeans_rounds: Annotated[int, Param("rounds of k-means (i)", ge=1)] = 2,
        projection: Annotated[
            Literal["hash", "gaussian", "none"], Param("random projection of features and labels")
        ] = "hash",
        feature_columns: Annotated[
            int, Param("columns of projected features (d'_x); more of them collide less", ge=1, needs=_PROJECTED)
        ] = 10_000,
        label_columns: Annotated[
            int, Param("columns of projected labels (d'_y); more of them collide less", ge=1, needs=_PROJECTED)
        ] = 10_000,
        cap_columns: Annotated[
            bool, Param("project to no more columns than the data have, as in the paper", needs=_PROJECTED)
        ] = False,
        diversity: Annotated[
            Literal["SxSy", "SxDy", "DxSy", "DxDy"],
            Param("nodes of a tree share (S) one projection of x and of y, or differ (D)", needs=_PROJECTED),
        ] = "SxSy",
        metric: Annotated[Literal["cosine", "euclidean"], Param("distance used to cluster and to route")] = "cosine",
        row_share: RowShare = 0.95,
        centroid_share: Annotated[
            float, Param("as row_share, for the entries of a centroid; at least 100 are kept", gt=0, le=1)
        ] = 0.95,
        centroid_size: Annotated[
            int | None, Param("entries kept of a centroid, see centroid_rows; None: all", ge=1)
        ] = 10,
        centroid_rows: Annotated[
            int,
            Param(
                "a centroid keeps centroid_size entries per this many rows of its node, at least once",
                ge=1,
                needs=Needs("a centroid_size", lambda own: own["centroid_size"] is not None),
            ),
        ] = 33,
        leaf_size: LeafSize = None,
        rerank: Rerank = False,
        idf: Idf = "auto",
        normalize: Normalize = True,
        weight_dtype: WeightDtype = "float16",
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.n_trees, self.arity, self.max_leaf, self.sample = n_trees, arity, max_leaf, sample
        self.kmeans_rounds, self.projection, self.feature_columns = kmeans_rounds, projection, feature_columns
        self.label_columns, self.diversity, self.metric = label_columns, diversity, metric
        self.cap_columns = cap_columns
        self.row_share, self.centroid_share, self.centroid_size = row_share, centroid_share, centroid_size
        self.centroid_rows, self.leaf_size, self.rerank, self.idf = centroid_rows, leaf_size, rerank, idf
        self.normalize, self.weight_dtype, self.n_jobs = normalize, weight_dtype, n_jobs
        self.random_state, self.verbose = random_state, verbose

    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {  # a leaf has fewer rows than n_leaf = 10
            "n_trees": 50, "arity": 10, "max_leaf": 9, "sample": 20_000, "kmeans_rounds": 2, "projection": "hash",
            "feature_columns": 10_000, "label_columns": 10_000, "cap_columns": True, "diversity": "SxSy",
            "metric": "cosine", "row_share": 1.0, "centroid_share": 1.0, "centroid_size": None, "idf": False,
        },
    }  # fmt: skip

    def _routing(self, X: CSR) -> Routing:
        projected = self.projection != "none"
        return Routing(
            normalize=self.normalize,
            row_share=self.row_share,
            projection=self.projection,
            n_columns=self._columns(self.feature_columns, X) if projected else 0,
            seed_per_node=projected and "Dx" in self.diversity,
        )

    def _options(self, X: CSR, Y: CSR) -> dict[str, Any]:
        x_columns, y_columns = self._columns(self.feature_columns, X), self._columns(self.label_columns, Y)
        if self.projection == "gaussian":
            self._check_dense(X, Y, x_columns, y_columns)
        return {
            "arity": self.arity,
            "max_leaf": self.max_leaf,
            "sample": self.sample,
            "rounds": self.kmeans_rounds,
            "projection": self.projection,
            "x_columns": x_columns,
            "y_columns": y_columns,
            "x_per_node": "Dx" in self.diversity,
            "y_per_node": "Dy" in self.diversity,
            "cosine": self.metric == "cosine",
            "centroid_share": self.centroid_share,
            "centroid_least": self._SHORT_CENTROID,
            "centroid_size": self.centroid_size or 0,
            "centroid_rows": self.centroid_rows,
            "leaf_size": self.leaf_size or 0,
        }

    def _columns(self, wanted: int, matrix: CSR) -> int:
        """Columns of a projection; a Gaussian one has no more than its matrix."""
        return min(wanted, matrix.n_cols) if self.cap_columns or self.projection == "gaussian" else wanted

    def _bytes_bound(self, X: CSR, Y: CSR) -> int:
        """An upper bound after Proposition 2 of the paper.

        A row ends in one leaf of a tree, and a leaf lists no more labels than its rows have. A tree has no more leaves
        than rows, so fewer than twice as many centroids. A centroid has at most as many entries as there are columns,
        or as a root's centroids may keep. An entry takes up to 8 bytes, a node with its pointers 40.
        """
        n_rows = int(np.count_nonzero(np.diff(Y.indptr)))
        columns = X.n_cols if self.projection == "none" else self.feature_columns
        most = self.centroid_size or columns
        centroid = min(columns, max(most, most * n_rows // self.centroid_rows))
        return self.n_trees * (8 * Y.nnz + 2 * n_rows * (8 * centroid + 40)) + 4 * X.n_cols

    @staticmethod
    def _check_dense(X: CSR, Y: CSR, x_columns: int, y_columns: int) -> None:
        """Refuse a Gaussian projection, which makes every row dense, if it would not fit in memory."""
        for matrix, columns, what in ((X, x_columns, "feature"), (Y, y_columns, "label")):
            if columns * max(matrix.n_rows, matrix.n_cols) > _MOST_DENSE_ENTRIES:
                raise LabelwoodError(
                    f"CraftForest: projection='gaussian' makes {matrix.n_rows} x {columns} dense {what} "
                    f"entries; lower {what}_columns or use projection='hash'"
                )
