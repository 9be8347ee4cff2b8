"""FastXmlForest: trees whose nodes rank the labels of two sides and separate the sides by a sparse hyperplane.

FastXML: "FastXML: a fast, accurate and stable tree-classifier for extreme multi-label learning" (Prabhu and Varma, KDD
2014). PfastreXML: "Extreme multi-label loss functions for recommendation, tagging, ranking and other missing label
applications" (Jain, Prabhu and Varma, KDD 2016).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from labelwood.estimator import NJobs, Normalize, RandomState, Verbose
from labelwood.methods.forest.base import ForestEstimator, Idf, LeafSize, MaxLeaf, NTrees, Rerank, WeightDtype
from labelwood.metrics.propensity import inverse_propensities
from labelwood.packed.routed_forest import Routing
from labelwood.params import Needs, Param
from labelwood.sparse import CSR, F32

_WEIGHS = Needs("propensity", lambda own: bool(own["propensity"]))
_RERANKS = Needs("rerank", lambda own: bool(own["rerank"]))


class FastXmlForest(ForestEstimator):
    """A forest whose splits maximise the ranking quality (nDCG) of the labels on both sides.

    Use it to compare with FastXML, or with ``FastXmlForest.preset("pfastrexml")`` where rare labels matter most: labels
    then weigh by their inverse propensity, in the splits and in the leaves, and the candidates are re-ranked. Rows
    without labels are not used. With ``propensity``, scores are relative to the largest weight of a label: they rank,
    but they are no probabilities.

    >>> import numpy as np
    >>> X = np.eye(6, dtype=np.float32).repeat(4, axis=0)
    >>> Y = [[name] for name in ("red", "red", "green", "green", "blue", "blue") for _ in range(4)]
    >>> model = FastXmlForest(n_trees=5, C=10, n_jobs=1).fit(X, Y)
    >>> model.predict_topk(X[:1], k=1)[0].tolist()
    [['red']]
    """

    method_name: ClassVar[str] = "fastxml-forest"
    _kernel: ClassVar[str] = "grow_fastxml_forest"

    def __init__(
        self,
        *,
        n_trees: NTrees = 50,
        max_leaf: MaxLeaf = 10,
        C: Annotated[
            float, Param("cost of a row on the wrong side of the separator, against its L1 penalty", gt=0)
        ] = 2.0,
        rounds: Annotated[int, Param("separators trained per node; the sides change between two of them", ge=1)] = 1,
        bias: Annotated[float, Param("value of the bias feature of a separator; 0: no bias", ge=0)] = 1.0,
        tolerance: Annotated[
            float, Param("stop a separator when its violation of optimality falls to this share", gt=0, le=1)
        ] = 0.01,
        propensity: Annotated[
            bool, Param("weigh labels by their inverse propensity in splits and leaves, for rare labels (PfastreXML)")
        ] = False,
        propensity_A: Annotated[
            float, Param("A of the propensities: 0.5 for Wikipedia, 0.6 for Amazon", gt=0, needs=_WEIGHS)
        ] = 0.55,
        propensity_B: Annotated[
            float, Param("B of the propensities: 0.4 for Wikipedia, 2.6 for Amazon", gt=0, needs=_WEIGHS)
        ] = 1.5,
        leaf_size: LeafSize = 100,
        rerank: Rerank = False,
        tree_share: Annotated[
            float, Param("weight of the trees against the mean rows in re-ranking", ge=0, le=1, needs=_RERANKS)
        ] = 0.8,
        tail_means: Annotated[
            Literal["unit", "plain"],
            Param("mean rows of re-ranking: scaled to unit length, or plain as in the paper", needs=_RERANKS),
        ] = "unit",
        idf: Idf = "auto",
        normalize: Normalize = True,
        weight_dtype: WeightDtype = "float16",
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.n_trees, self.max_leaf, self.C, self.rounds, self.bias = n_trees, max_leaf, C, rounds, bias
        self.tolerance, self.propensity, self.propensity_A = tolerance, propensity, propensity_A
        self.propensity_B, self.leaf_size, self.rerank, self.idf = propensity_B, leaf_size, rerank, idf
        self.tree_share, self.tail_means, self.normalize = tree_share, tail_means, normalize
        self.weight_dtype, self.n_jobs = weight_dtype, n_jobs
        self.random_state, self.verbose = random_state, verbose

    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "fastxml": {
            "n_trees": 50, "max_leaf": 10, "C": 1.0, "rounds": 1, "bias": 1.0, "leaf_size": 100, "idf": False,
            "normalize": False, "propensity": False, "rerank": False,
        },
        "pfastrexml": {
            "n_trees": 50, "max_leaf": 10, "C": 1.0, "rounds": 1, "bias": 1.0, "leaf_size": 100, "idf": False,
            "normalize": False, "propensity": True, "propensity_A": 0.55, "propensity_B": 1.5, "rerank": True,
            "tree_share": 0.8, "tail_means": "plain",
        },
    }  # fmt: skip

    @property
    def _unit_means(self) -> bool:
        return self.tail_means == "unit"

    def _routing(self, X: CSR) -> Routing:
        return Routing(normalize=self.normalize)

    def _options(self, X: CSR, Y: CSR) -> dict[str, Any]:
        return {
            "max_leaf": self.max_leaf,
            "leaf_size": self.leaf_size or 0,
            "C": self.C,
            "rounds": self.rounds,
            "bias": self.bias,
            "tolerance": self.tolerance,
            "label_weights": self._label_weights(Y),
        }

    def _label_weights(self, Y: CSR) -> F32:
        """Inverse propensities, or nothing if all labels weigh the same."""
        if not self.propensity:
            return np.empty(0, np.float32)
        counts = np.bincount(Y.indices, minlength=Y.n_cols)
        return inverse_propensities(counts, Y.n_rows, A=self.propensity_A, B=self.propensity_B).astype(np.float32)
