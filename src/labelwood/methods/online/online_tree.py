"""OnlineTree: a label tree that learns from a stream; labels and features may appear at any time.

The method of "Online probabilistic label trees" (Jasinska-Kobus, Wydmuch, Thiruvenkatachari and Dembczyński, 2021).
``docs/methods/online_tree.md`` maps its algorithms to our functions.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelwood import _core
from labelwood.errors import LabelwoodError
from labelwood.estimator import FittedModel, NJobs, Normalize, RandomState, Verbose
from labelwood.label_names import LabelNames
from labelwood.methods.online.growing import GrowingEstimator
from labelwood.methods.online.model_lock import reads
from labelwood.methods.online.stream_inputs import GrowingNames, check_name
from labelwood.packed.tree_shape import LabelTree, freeze
from labelwood.params import SEARCHES_BEAM, Needs, Param, check_parameters
from labelwood.run_context import RunContext
from labelwood.sparse import CSR

_WARM_ROUNDS = 20


def _needs_policy(*policies: str) -> Needs:
    words = f"policy={' or '.join(policies)}, or a warm_share"
    return Needs(words, lambda own: own["policy"] in policies or own["warm_share"] > 0)


class OnlineTree(GrowingEstimator):
    """A label tree that grows as it learns.

    Use it when labels or features appear over time, when the data do not fit in memory, or when a model must learn an
    example at once. ``partial_fit`` learns any number of rows; ``fit`` starts afresh and makes ``epochs`` passes over
    shuffled rows. Whatever the order, every classifier equals the one that training on the final tree from the start
    would give. Parameters are read when learning starts; later changes have no effect until the next ``fit``.

    >>> model = OnlineTree(n_jobs=1)
    >>> _ = model.partial_fit([{0: 1.0, 7: 0.5}], [["red"]]).partial_fit([{3: 1.0}], [["blue", "sky"]])
    >>> model.predict_topk([{0: 1.0}], k=1)[0].tolist()
    [['red']]
    >>> model.classes_.tolist()
    ['red', 'blue', 'sky']
    """

    method_name: ClassVar[str] = "online-tree"
    ADDED_LATER: ClassVar[dict[str, Any]] = {"balance": "even", "epsilon_place": "inside"}

    def __init__(
        self,
        *,
        policy: Annotated[
            Literal["best-greedy", "random", "complete", "flat"],
            Param("place of a new label: by fit and balance, at random, level by level, or below the root"),
        ] = "best-greedy",
        arity: Annotated[
            int, Param("children of an inner node", ge=2, needs=_needs_policy("best-greedy", "random", "complete"))
        ] = 2,
        max_leaf: Annotated[
            int,
            Param(
                "labels below an inner node of the last level (best-greedy, random)",
                ge=2,
                needs=_needs_policy("best-greedy", "random"),
            ),
        ] = 100,
        alpha: Annotated[
            float,
            Param(
                "weight of balance against fit (best-greedy); below 0.25 the tree grows deep",
                ge=0,
                le=1,
                needs=Needs("policy=best-greedy", lambda own: own["policy"] == "best-greedy"),
            ),
        ] = 0.75,
        balance: Annotated[
            Literal["even", "printed"],
            Param("balance term of best-greedy: against an even share, or as the paper prints it, for comparison"),
        ] = "even",
        learning_rate: Annotated[float, Param("AdaGrad's step size", gt=0)] = 1.0,
        epsilon: Annotated[float, Param("added to AdaGrad's sums of squared gradients, or to their root", gt=0)] = 0.01,
        epsilon_place: Annotated[
            Literal["inside", "outside"], Param("epsilon is added inside the root of AdaGrad, or outside")
        ] = "inside",
        epochs: Annotated[int, Param("passes of fit over the rows, shuffled each time", ge=1)] = 1,
        warm_share: Annotated[
            float, Param("share of the rows from which fit builds the first tree (OPLT-W); 0: none", ge=0, le=1)
        ] = 0.0,
        bias: Annotated[float, Param("value of the bias feature added to every row; 0: none", ge=0)] = 1.0,
        normalize: Normalize = True,
        search: Annotated[
            Literal["exact", "beam"],
            Param("search of a frozen model: exact, or a faster beam; a live model searches exactly"),
        ] = "exact",
        beam_width: Annotated[int, Param("nodes kept per level of a beam search", ge=1, needs=SEARCHES_BEAM)] = 20,
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.policy, self.arity, self.max_leaf, self.alpha = policy, arity, max_leaf, alpha
        self.balance, self.learning_rate, self.epsilon = balance, learning_rate, epsilon
        self.epsilon_place, self.epochs = epsilon_place, epochs
        self.warm_share, self.bias, self.normalize, self.search = warm_share, bias, normalize, search
        self.beam_width, self.n_jobs, self.random_state = beam_width, n_jobs, random_state
        self.verbose = verbose

    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "policy": "best-greedy", "arity": 2, "max_leaf": 100, "alpha": 0.75, "balance": "printed",
            "learning_rate": 1.0, "epsilon": 0.01, "epochs": 1,
        },
    }  # fmt: skip

    def warm_start_from(
        self, tree: FittedModel | LabelTree, X: Any, Y: Any, *, label_names: Sequence[Hashable] | None = None
    ) -> Self:
        """Start from a given tree, train it on X and Y, and keep it open to new labels: the paper's OPLT-W.

        ``tree`` is a fitted LinearTree, whose first tree and label names are used, or a LabelTree over the columns of
        Y. Labels of Y that the tree lacks are added when they appear.
        """
        return self._learn_planted(tree, X, Y, label_names, growing=True)

    def learn_tree(
        self, tree: FittedModel | LabelTree, X: Any, Y: Any, *, label_names: Sequence[Hashable] | None = None
    ) -> Self:
        """Train the classifiers of a given tree, whose shape is fixed: the paper's IPLT.

        As ``warm_start_from``, but without auxiliary classifiers: labels that the tree lacks are refused, also later.
        Makes ``epochs`` passes over shuffled rows.
        """
        return self._learn_planted(tree, X, Y, label_names, growing=False)

    @reads
    def freeze(self, *, weight_threshold: float | None = None) -> Self:
        """A copy for prediction only, packed like a LinearTree: it predicts faster and cannot learn.

        Without a threshold every weight is kept and the answers are those of this model, up to rounding. With a
        threshold, smaller weights are dropped and the others kept in half precision. Retired labels are left out; if no
        label is left, the copy suggests nothing.
        """
        tree, records = self._packable_tree(), self.label_records()
        frozen: Self = clone(self)
        arrays = tree.pack(-1.0 if weight_threshold is None else float(weight_threshold))
        frozen._packed, frozen._leaf_labels = self._packed_from(arrays)
        frozen._tree, frozen._seed, frozen._kept_records = None, self._seed, records
        frozen._names = GrowingNames(self._names)
        frozen.n_features_in_, frozen.rows_learned_ = self.n_features_in_, self.rows_learned_
        frozen.label_counts_, frozen.fit_seconds_ = self.label_counts_.copy(), dict(self.fit_seconds_)
        frozen.trained_ = {**self.trained_, "seen": self.n_seen_}
        frozen._note_fitted()
        return frozen

    def fit_rows(self, X: CSR, Y: CSR, names: LabelNames, n_threads: int) -> Self:
        """Learn checked rows from nothing, as ``fit`` does."""
        self._names, self.n_features_in_, self.fit_seconds_ = GrowingNames(names), X.n_cols, {}
        self.label_counts_ = np.bincount(Y.indices, minlength=Y.n_cols)
        self._fit(X, Y, RunContext(n_threads=n_threads, seed=int(self.random_state or 0)))
        counts = {"rows": X.n_rows, "feature_entries": X.nnz, "label_entries": Y.nnz}
        self.trained_ = {**counts, "seed": self._seed}
        self._note_fitted()
        return self

    def _fit(self, X: CSR, Y: CSR, run: RunContext) -> None:
        for name in self._names.array.tolist():
            check_name(name, type(self).__name__)
        self._check_arity()
        self._start(GrowingNames(self._names), run.seed)
        random = np.random.default_rng(run.seed)
        order = random.permutation(X.n_rows)
        if self.warm_share > 0:
            with run.phase("cluster"):
                self._plant(
                    *self._clustered(X, Y, order[: max(1, round(self.warm_share * X.n_rows))], run), growing=True
                )
        self._epochs(X, Y, order, random, run)

    def begun(self, names: LabelNames) -> Self:
        """A copy of the parameters that has seen nothing."""
        self._check_arity()
        fresh: Self = clone(self)
        seed = secrets.randbits(32) if self.random_state is None else int(self.random_state)
        fresh._start(GrowingNames(names), seed)
        fresh.n_features_in_, fresh.fit_seconds_, fresh.label_counts_ = 1, {}, np.zeros(len(names), np.int64)
        fresh.trained_ = {"rows": 0, "feature_entries": 0, "label_entries": 0, "seed": seed}
        fresh._note_fitted()
        return fresh

    def _check_arity(self) -> None:
        """The paper's b_max >= b: with smaller leaves a tree grows by a level for every few labels."""
        if self.policy in ("best-greedy", "random") and self.max_leaf < self.arity:
            raise LabelwoodError(
                f"OnlineTree: max_leaf must be at least arity, {self.arity}; got {self.max_leaf}. Raise max_leaf."
            )

    def _learn_planted(
        self, tree: FittedModel | LabelTree, X: Any, Y: Any, label_names: Sequence[Hashable] | None, *, growing: bool
    ) -> Self:
        check_parameters(self)
        trees = tree.trees() if isinstance(tree, FittedModel) else ()
        if isinstance(tree, FittedModel) and isinstance(trees, list) and trees[0].leaf_labels is None:
            shape, names = trees[0].packed.tree, tree.label_names
        elif isinstance(tree, LabelTree):
            shape = tree
            for name in label_names or ():
                check_name(name, type(self).__name__)
            names = LabelNames.columns(tree.n_labels) if label_names is None else LabelNames.of(label_names)
        else:
            raise LabelwoodError(
                f"OnlineTree: tree must be a fitted LinearTree or a LabelTree; got {type(tree).__name__}"
            )
        fresh: Self = self.begun(names)
        fresh._plant(shape, np.arange(len(names)), growing=growing)
        features, targets = fresh._read_batch(X, Y, label_names)
        random = np.random.default_rng(fresh._seed)
        run = RunContext(n_threads=self.n_threads, seed=fresh._seed, verbose=bool(self.verbose))
        fresh._epochs(features, targets, random.permutation(features.n_rows), random, run)
        fresh._count(features, targets, features.n_rows)
        fresh.fit_seconds_ = dict(run.seconds)
        return self._adopt(fresh)

    def _clustered(self, X: CSR, Y: CSR, rows: npt.NDArray[Any], run: RunContext) -> tuple[LabelTree, npt.NDArray[Any]]:
        """Balanced 2-means over the labels of sampled rows: the tree, and the label of each leaf."""
        features, targets = X.take(rows), Y.take(rows)
        labels, local = np.unique(targets.indices, return_inverse=True)
        if len(labels) == 0:
            raise LabelwoodError("OnlineTree: warm_share must cover at least one row with a label")
        marks = CSR(targets.indptr, local.astype(np.int32), targets.data, len(labels))
        indptr, indices, data, _ = _core.label_vectors(features.unit_rows(), marks, 0, run.n_threads, None)
        options = {
            "balanced": True,
            "arity": self.arity,
            "max_leaf": self.max_leaf,
            "max_depth": 0,
            "max_rounds": _WARM_ROUNDS,
            "seed": run.seed,
        }
        grown = _core.grow_tree(CSR(indptr, indices, data, X.n_cols), options, run.n_threads, None)
        return freeze(*grown), labels
