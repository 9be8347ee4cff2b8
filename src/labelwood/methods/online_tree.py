"""OnlineTree: a label tree that learns from a stream; labels and features may appear at any time.

The method of "Online probabilistic label trees" (Jasinska-Kobus, Wydmuch, Thiruvenkatachari and Dembczyński, 2021).
``docs/methods/online_tree.md`` sets its algorithms beside our functions.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Hashable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelwood import _core
from labelwood.errors import LabelwoodError
from labelwood.estimator import NJobs, RandomState, Verbose
from labelwood.labels import LabelNames
from labelwood.methods.linear_tree import LinearTree
from labelwood.methods.online_base import GrowingEstimator
from labelwood.methods.online_labels import Labels
from labelwood.methods.online_names import GrowingNames, check_name
from labelwood.methods.online_progressive import Progressive, judge
from labelwood.params import Param, check_parameters
from labelwood.progress import Run
from labelwood.search import LOGISTIC, PackedTree, narrow
from labelwood.sparse import CSR, F32, I32, I64, MAX_COLUMNS
from labelwood.trees import LabelTree, freeze

_PROGRESSIVE_ROWS = 256
_WARM_ROUNDS = 20


class OnlineTree(GrowingEstimator):
    """A label tree that grows as it learns.

    Use it when labels or features appear over time, when the data do not fit in memory, or when a model must take
    in an example at once: ``partial_fit`` learns any number of rows, ``fit`` forgets what was and makes ``epochs``
    passes over shuffled rows. Whatever the order, every classifier is the one that training on the final tree from
    the start would have given. Parameters are read when learning starts; changing them later has no effect until
    the next ``fit``.

    >>> model = OnlineTree(n_jobs=1)
    >>> _ = model.partial_fit([{0: 1.0, 7: 0.5}], [["red"]]).partial_fit([{3: 1.0}], [["blue", "sky"]])
    >>> model.predict_topk([{0: 1.0}], k=1)[0].tolist()
    [['red']]
    >>> model.classes_.tolist()
    ['red', 'blue', 'sky']
    """

    method_name: ClassVar[str] = "online-tree"

    def __init__(
        self,
        *,
        policy: Annotated[
            Literal["best-greedy", "random", "complete", "flat"],
            Param(
                "where a new label goes: where it fits and balances, anywhere, level by level, or below the root"
            ),
        ] = "best-greedy",
        arity: Annotated[int, Param("children of an inner node", ge=2)] = 2,
        max_leaf: Annotated[int, Param("labels below a last inner node (best-greedy, random)", ge=2)] = 100,
        alpha: Annotated[
            float,
            Param("balance of the tree against fit (best-greedy); below 0.25 it grows deep", ge=0, le=1),
        ] = 0.75,
        learning_rate: Annotated[float, Param("AdaGrad's step size", gt=0)] = 1.0,
        epsilon: Annotated[float, Param("AdaGrad's addition to the sums of squared gradients", gt=0)] = 0.01,
        epochs: Annotated[int, Param("passes of fit over the rows, shuffled each time", ge=1)] = 1,
        warm_share: Annotated[
            float,
            Param(
                "share of the rows whose labels fit clusters into the first tree (OPLT-W); 0: none",
                ge=0,
                le=1,
            ),
        ] = 0.0,
        bias: Annotated[
            float, Param("value of the constant feature added to every row; 0: none", ge=0)
        ] = 1.0,
        normalize: Annotated[
            bool, Param("scale every row to unit length, in training and in prediction")
        ] = True,
        search: Annotated[
            Literal["exact", "beam"],
            Param("search of a frozen model: exact, or a faster beam; a live one is exact"),
        ] = "exact",
        beam_width: Annotated[int, Param("nodes kept per level of a beam search", ge=1)] = 20,
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.policy = policy
        self.arity = arity
        self.max_leaf = max_leaf
        self.alpha = alpha
        self.learning_rate = learning_rate
        self.epsilon = epsilon
        self.epochs = epochs
        self.warm_share = warm_share
        self.bias = bias
        self.normalize = normalize
        self.search = search
        self.beam_width = beam_width
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def partial_fit(self, X: Any, Y: Any, *, label_names: Sequence[Hashable] | None = None) -> Self:
        """Learn some rows, in their order, on top of what is known.

        ``X`` as in ``fit``, or a list of dicts from feature id to value; a matrix may have more columns than earlier
        ones. ``Y`` as in ``fit``; labels may be new. If the input is refused, nothing is learned. If learning is
        interrupted, the rows before ``rows_learned_`` are in the model and those from it on are not; the exception
        says so as well.
        """
        owner = type(self).__name__
        if not self.__sklearn_is_fitted__():
            check_parameters(self)
            return self._adopt(self._begin(LabelNames.columns(0)).partial_fit(X, Y, label_names=label_names))
        self._growing_tree()
        features, targets = self._read_batch(X, Y, label_names, owner)
        self._learn(features, targets, np.arange(features.n_rows, dtype=np.int64), None)
        return self

    def warm_start_from(
        self, tree: LinearTree | LabelTree, X: Any, Y: Any, *, label_names: Sequence[Hashable] | None = None
    ) -> Self:
        """Begin with a tree that exists, trained on X and Y, and open to new labels: the paper's OPLT-W.

        ``tree`` is a fitted LinearTree, of which the first tree and the label names are taken, or a LabelTree over the
        columns of Y. Labels of Y that it lacks are added where they appear.
        """
        return self._learn_planted(tree, X, Y, label_names, growing=True)

    def learn_tree(
        self, tree: LinearTree | LabelTree, X: Any, Y: Any, *, label_names: Sequence[Hashable] | None = None
    ) -> Self:
        """Train the classifiers of a given tree, which stays as it is: the paper's IPLT.

        As ``warm_start_from``, but without auxiliary classifiers: labels that the tree lacks are refused, then and
        later. Makes ``epochs`` passes over shuffled rows.
        """
        return self._learn_planted(tree, X, Y, label_names, growing=False)

    def progressive(
        self, X: Any, Y: Any, *, k: int = 5, label_names: Sequence[Hashable] | None = None
    ) -> Progressive:
        """Learn rows in their order, predicting the k best labels of each before it is learned."""
        if not self.__sklearn_is_fitted__():
            check_parameters(self)
            self._adopt(self._begin(LabelNames.columns(0)))
        before = self._records()["support"]
        predicted, targets = self.test_then_learn(X, Y, k=k, label_names=label_names)
        return judge(predicted, targets, before)

    def test_then_learn(
        self,
        X: Any,
        Y: Any,
        *,
        k: int = 1,
        label_names: Sequence[Hashable] | None = None,
        at_once: bool = False,
    ) -> tuple[I32, CSR]:
        """Learn rows as ``partial_fit``; the ids of the k best labels of each beforehand, and of its true ones.

        Beforehand is before the row itself is learned, or, ``at_once``, before any of them is, which takes less time.
        """
        tree = self._growing_tree()
        features, targets = self._read_batch(X, Y, label_names, type(self).__name__)
        if at_once:
            predicted, _ = tree.search(features, k, self._n_threads(), None)
            self._learn(features, targets, np.arange(features.n_rows, dtype=np.int64), None)
            return predicted, targets
        found = [np.empty((0, k), np.int32)]
        for start in range(0, features.n_rows, _PROGRESSIVE_ROWS):
            stop = min(features.n_rows, start + _PROGRESSIVE_ROWS)
            rows, marks = features.rows(start, stop), targets.rows(start, stop)
            found.append(tree.progressive(rows, marks, k)[0])
            self._count(rows, marks, rows.n_rows)
        return np.concatenate(found), targets

    def freeze(self, *, weight_threshold: float | None = None) -> Self:
        """A copy for prediction only, packed as LinearTree packs: it predicts faster and learns no more.

        Without a threshold every weight is kept and the answers are those of this model, up to the rounding of scores.
        With one, smaller weights are dropped and the others kept in half precision. Retired labels are left out.
        """
        tree, frozen = self._growing_tree(), clone(self)
        if self.n_features_in_ > MAX_COLUMNS:
            raise LabelwoodError(
                f"OnlineTree: freeze takes feature ids up to {MAX_COLUMNS}; got {self.n_features_in_ - 1}"
            )
        if not (self._records()["support"] > 0).any():
            raise LabelwoodError("OnlineTree: freeze needs at least one label; the model has seen none")
        arrays = tree.pack(-1.0 if weight_threshold is None else weight_threshold)
        shape = LabelTree(arrays.pop("child_ptr"), arrays.pop("label"))
        frozen._leaf_labels = arrays.pop("leaf_labels")
        frozen._packed = PackedTree(shape, narrow(arrays, shape, "float16"), LOGISTIC, self.n_features_in_)
        frozen._tree, frozen._seed, frozen._kept_records = None, self._seed, self._records()
        frozen._names = GrowingNames(self._names)
        frozen.n_features_in_, frozen.rows_learned_ = self.n_features_in_, self.rows_learned_
        frozen.label_counts_ = self.label_counts_.copy()
        frozen.trained_, frozen.fit_seconds_ = (
            {**self.trained_, "seen": self.n_seen_},
            dict(self.fit_seconds_),
        )
        frozen._note_fitted()
        return frozen  # type: ignore[no-any-return]  # scikit-learn's clone has no types

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        inference_only: bool = False,
        weight_threshold: float | None = 0.1,
    ) -> None:
        """Write the model to a directory, with all that learning on needs.

        With ``inference_only`` the optimiser's state is dropped and weights of at most ``weight_threshold`` too: a
        fraction of the size, for a model that only predicts.
        """
        if inference_only and self._live() is not None:
            self.freeze(weight_threshold=weight_threshold).save(path)
        else:
            super().save(path)

    @property
    def labels(self) -> Labels:
        """The labels one by one: list, rename, retire, merge, restore."""
        self._check_fitted()
        return Labels(self)

    @property
    def can_learn(self) -> bool:
        """Whether the model is fitted and neither frozen nor saved with ``inference_only``."""
        return self.__sklearn_is_fitted__() and self._tree is not None

    @property
    def n_seen_(self) -> int:
        """Number of examples learned, every pass counted."""
        tree = self._live()
        return int(self.trained_.get("seen", 0)) if tree is None else tree.seen

    def _fit(self, X: CSR, Y: CSR, run: Run) -> None:
        for name in self._names.array.tolist():
            check_name(name, type(self).__name__)
        self._start(GrowingNames(self._names), run.seed)
        random = np.random.default_rng(run.seed)
        order = random.permutation(X.n_rows)
        if self.warm_share > 0:
            with run.phase("cluster"):
                self._plant(
                    *self._clustered(X, Y, order[: max(1, round(self.warm_share * X.n_rows))], run),
                    growing=True,
                )
        self._epochs(X, Y, order, random, run)

    def _begin(self, names: LabelNames) -> Self:
        """A copy of the parameters that has seen nothing."""
        fresh: Self = clone(self)
        seed = secrets.randbits(32) if self.random_state is None else int(self.random_state)
        fresh._start(GrowingNames(names), seed)
        fresh.n_features_in_, fresh.fit_seconds_, fresh.label_counts_ = 1, {}, np.zeros(len(names), np.int64)
        fresh.trained_ = {"rows": 0, "feature_entries": 0, "label_entries": 0, "seed": seed}
        fresh._note_fitted()
        return fresh

    def _learn_planted(
        self,
        tree: LinearTree | LabelTree,
        X: Any,
        Y: Any,
        label_names: Sequence[Hashable] | None,
        *,
        growing: bool,
    ) -> Self:
        check_parameters(self)
        if isinstance(tree, LinearTree):
            shape, names = tree.trees_[0].tree, tree._names
        elif isinstance(tree, LabelTree):
            shape = tree
            names = LabelNames.columns(tree.n_labels) if label_names is None else LabelNames.of(label_names)
        else:
            raise LabelwoodError(
                f"OnlineTree: tree must be a fitted LinearTree or a LabelTree; got {type(tree).__name__}"
            )
        fresh = self._begin(names)
        fresh._plant(shape, np.arange(len(names)), growing=growing)
        features, targets = fresh._read_batch(X, Y, label_names, type(self).__name__)
        random = np.random.default_rng(fresh._seed)
        run = Run(n_threads=self._n_threads(), seed=fresh._seed, verbose=bool(self.verbose))
        fresh._epochs(features, targets, random.permutation(features.n_rows), random, run)
        fresh._count(features, targets, features.n_rows)
        fresh.fit_seconds_ = dict(run.seconds)
        return self._adopt(fresh)

    def _clustered(
        self, X: CSR, Y: CSR, rows: npt.NDArray[Any], run: Run
    ) -> tuple[LabelTree, npt.NDArray[Any]]:
        """Balanced 2-means over the labels of a sample: the tree, and the label of each of its leaves."""
        features, targets = X.take(rows), Y.take(rows)
        labels, local = np.unique(targets.indices, return_inverse=True)
        if len(labels) == 0:
            raise LabelwoodError("OnlineTree: warm_share must cover at least one row with a label")
        marks = CSR(targets.indptr, local.astype(np.int32), targets.data, len(labels))
        found: tuple[I64, I32, F32] = _core.label_vectors(features.unit_rows(), marks, 0, run.n_threads, None)
        options = {
            "balanced": True,
            "arity": self.arity,
            "max_leaf": self.max_leaf,
            "max_depth": 0,
            "max_rounds": _WARM_ROUNDS,
            "seed": run.seed,
        }
        grown = _core.grow_tree(CSR(*found, X.n_cols), options, run.n_threads, None)
        return freeze(*grown), labels
