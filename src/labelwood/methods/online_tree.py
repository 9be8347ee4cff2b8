"""OnlineTree: a label tree that learns from a stream; labels and features may appear at any time.

The method of "Online probabilistic label trees" (Jasinska-Kobus, Wydmuch, Thiruvenkatachari and Dembczyński, 2021).
``docs/methods/online_tree.md`` sets its algorithms beside our functions.
"""

from __future__ import annotations

import datetime
import os
import secrets
from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelwood import _core
from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator import NJobs, RandomState, TreeEstimator, Verbose
from labelwood.labels import LabelNames
from labelwood.methods.linear_tree import LinearTree
from labelwood.methods.online_labels import Labels
from labelwood.methods.online_names import GrowingNames, check_name, read_targets
from labelwood.methods.online_progressive import Progressive, judge
from labelwood.methods.online_rows import as_i32, read_features
from labelwood.methods.online_state import RECORDS, check_growing, check_records
from labelwood.params import Param, check_parameters
from labelwood.progress import Run
from labelwood.search import PackedTree, narrow
from labelwood.sparse import CSR, I32, MAX_COLUMNS, TopK
from labelwood.trees import LabelTree, freeze

_POLICIES = ("best-greedy", "random", "complete", "flat")
# Work between two looks at the world outside, in features times labels: a few tenths of a second.
_CHUNK = 1_000_000
_PROGRESSIVE_ROWS = 256
_RECORD = "record."
_PACKED = "packed."
_WARM_ROUNDS = 20


class OnlineTree(TreeEstimator):
    """A label tree that grows as it learns.

    Use it when labels or features appear over time, when the data do not fit in memory, or when a model must take in an
    example at once: ``partial_fit`` learns any number of rows, ``fit`` forgets what was and makes ``epochs`` passes over
    shuffled rows. Whatever the order, every classifier is the one that training on the final tree from the start would have
    given. Parameters are read when learning starts; changing them later has no effect until the next ``fit``.

    >>> model = OnlineTree(n_jobs=1)
    >>> _ = model.partial_fit([{0: 1.0, 7: 0.5}], [["red"]]).partial_fit([{3: 1.0}], [["blue", "sky"]])
    >>> model.predict_topk([{0: 1.0}], k=1)[0].tolist()
    [['red']]
    >>> model.classes_.tolist()
    ['red', 'blue', 'sky']
    """

    method_name: ClassVar[str] = "online-tree"

    _names: GrowingNames
    _tree: _core.OnlineTree | None
    _packed: PackedTree | None
    _leaf_labels: I32
    _seed: int
    _kept_records: dict[str, npt.NDArray[Any]]
    rows_learned_: int

    def __init__(
        self,
        *,
        policy: Annotated[
            Literal["best-greedy", "random", "complete", "flat"],
            Param("where a new label goes: where it fits and balances, anywhere, level by level, or below the root"),
        ] = "best-greedy",
        arity: Annotated[int, Param("children of an inner node", ge=2)] = 2,
        max_leaf: Annotated[int, Param("labels below a last inner node (best-greedy, random)", ge=2)] = 100,
        alpha: Annotated[float, Param("balance of the tree against fit (best-greedy)", ge=0, le=1)] = 0.75,
        learning_rate: Annotated[float, Param("AdaGrad's step size", gt=0)] = 1.0,
        epsilon: Annotated[float, Param("AdaGrad's addition to the sums of squared gradients", gt=0)] = 0.01,
        epochs: Annotated[int, Param("passes of fit over the rows, shuffled each time", ge=1)] = 1,
        warm_start: Annotated[
            float, Param("share of the rows whose labels fit clusters into the first tree (OPLT-W); 0: none", ge=0, le=1)
        ] = 0.0,
        bias: Annotated[float, Param("value of the constant feature added to every row; 0: none", ge=0)] = 1.0,
        normalize: Annotated[bool, Param("scale every row to unit length, in training and in prediction")] = True,
        search: Annotated[
            Literal["exact", "beam"], Param("search of a frozen model: exact, or a faster beam; a live one is exact")
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
        self.warm_start = warm_start
        self.bias = bias
        self.normalize = normalize
        self.search = search
        self.beam_width = beam_width
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def partial_fit(self, X: Any, Y: Any, *, label_names: Sequence[Hashable] | None = None) -> Self:
        """Learn some rows, in their order, on top of what is known.

        ``X`` as in ``fit``, or a list of dicts from feature id to value; a matrix may have more columns than earlier ones.
        ``Y`` as in ``fit``; labels may be new. If the input is refused, nothing is learned. If learning is interrupted, the
        rows before ``rows_learned_`` are in the model and those from it on are not; the exception says so as well.
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

        As ``warm_start_from``, but without auxiliary classifiers: labels that the tree lacks are refused, then and later.
        Makes ``epochs`` passes over shuffled rows.
        """
        return self._learn_planted(tree, X, Y, label_names, growing=False)

    def progressive(
        self, X: Any, Y: Any, *, k: int = 5, label_names: Sequence[Hashable] | None = None
    ) -> Progressive:
        """Learn rows in their order, predicting the k best labels of each before it is learned."""
        owner = type(self).__name__
        if not self.__sklearn_is_fitted__():
            check_parameters(self)
            self._adopt(self._begin(LabelNames.columns(0)))
        before = self._records()["support"]
        tree = self._growing_tree()
        features, targets = self._read_batch(X, Y, label_names, owner)
        found = []
        for start in range(0, features.n_rows, _PROGRESSIVE_ROWS):
            stop = min(features.n_rows, start + _PROGRESSIVE_ROWS)
            rows, marks = features.rows(start, stop), targets.rows(start, stop)
            found.append(
                tree.progressive(rows.indptr, rows.indices, rows.data, marks.indptr, marks.indices, targets.n_cols, k)[0]
            )
            self._count(rows, marks)
        predicted = np.concatenate(found) if found else np.empty((0, k), np.int32)
        return judge(predicted, targets, before)

    def freeze(self, *, weight_threshold: float | None = None) -> Self:
        """A copy for prediction only, packed as LinearTree packs: it predicts faster and learns no more.

        Without a threshold every weight is kept and the answers are those of this model, up to the rounding of scores.
        With one, smaller weights are dropped and the others kept in half precision. Retired labels are left out.
        """
        tree, frozen = self._growing_tree(), clone(self)
        if self.n_features_in_ > MAX_COLUMNS:
            raise LabelwoodError(f"OnlineTree: freeze takes feature ids up to {MAX_COLUMNS}; got {self.n_features_in_ - 1}")
        if not (self._records()["support"] > 0).any():
            raise LabelwoodError("OnlineTree: freeze needs at least one label; the model has seen none")
        arrays = tree.pack(-1.0 if weight_threshold is None else weight_threshold)
        shape = LabelTree(arrays.pop("child_ptr"), arrays.pop("label"))
        frozen._leaf_labels = arrays.pop("leaf_labels")
        frozen._packed = PackedTree(shape, narrow(arrays, shape, "float16"), "logistic", self.n_features_in_)
        frozen._tree, frozen._seed, frozen._kept_records = None, self._seed, self._records()
        frozen._names = GrowingNames(self._names)
        frozen.n_features_in_, frozen.rows_learned_ = self.n_features_in_, self.rows_learned_
        frozen.label_counts_ = self.label_counts_.copy()
        frozen.trained_, frozen.fit_seconds_ = dict(self.trained_), dict(self.fit_seconds_)
        frozen._note_fitted()
        return frozen  # type: ignore[no-any-return]  # scikit-learn's clone has no types

    def save(
        self, path: str | os.PathLike[str], *, inference_only: bool = False, weight_threshold: float | None = 0.1
    ) -> None:
        """Write the model to a directory, with all that learning on needs.

        With ``inference_only`` the optimiser's state is dropped and weights of at most ``weight_threshold`` too: a fraction
        of the size, for a model that only predicts.
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
    def n_seen_(self) -> int:
        """Number of examples learned, every pass counted."""
        tree = self._live()
        return int(self.trained_.get("seen", 0)) if tree is None else tree.seen

    def describe(self) -> dict[str, Any]:
        """Depth, nodes and size of the fitted tree."""
        if self._packed is not None:
            tree = self._packed.tree
            return {"depth": tree.depth, "nodes": tree.n_nodes, "nonzero_weights": self._packed.chunks.n_weights}
        facts = self._growing_tree().facts()
        kept = ("depth", "nodes", "auxiliary_classifiers", "seen", "updates", "features", "bytes")
        return {name: facts[name] for name in kept}

    def _fit(self, X: CSR, Y: CSR, run: Run) -> None:
        for name in self._names.array.tolist():
            check_name(name, type(self).__name__)
        self._start(GrowingNames(self._names), run.seed)
        random = np.random.default_rng(run.seed)
        order = random.permutation(X.n_rows)
        if self.warm_start > 0:
            with run.phase("cluster"):
                self._plant(*self._clustered(X, Y, order[: max(1, round(self.warm_start * X.n_rows))], run), growing=True)
        self._epochs(X, Y, order, random, run)

    def _epochs(self, X: CSR, Y: CSR, order: npt.NDArray[Any], random: np.random.Generator, run: Run) -> None:
        for epoch in range(self.epochs):
            with run.phase("learn", int(_work(X, Y, order)[-1])) as progress:
                self._learn(X, Y, order if epoch == 0 else random.permutation(X.n_rows), progress, count=False)

    def _learn(
        self, X: CSR, Y: CSR, order: npt.NDArray[Any], progress: Callable[[int], None] | None, *, count: bool = True
    ) -> None:
        """Learn the rows ``order``; between chunks Python sees signals, and other threads may predict."""
        assert self._tree is not None
        order = np.ascontiguousarray(order, np.int64)
        work = _work(X, Y, order)
        total = int(work[-1]) if len(work) else 0
        cuts = np.searchsorted(work, np.arange(_CHUNK, total, _CHUNK), side="right").tolist()
        bounds = [0, *(cut for cut in dict.fromkeys(cuts) if 0 < cut < len(order)), len(order)]
        self.rows_learned_ = 0
        try:
            for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
                self._tree.learn(
                    X.indptr, X.indices, X.data, Y.indptr, Y.indices, Y.n_cols, order[start:stop], self._n_threads()
                )
                self.rows_learned_ = stop
                if progress is not None:
                    progress(int(work[stop - 1]))
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(f"OnlineTree: the first {self.rows_learned_} of {len(order)} rows are learned")
            raise
        finally:
            if count:
                self._count(X.rows(0, self.rows_learned_), Y.rows(0, self.rows_learned_))

    def _topk(self, X: CSR, k: int, run: Run) -> TopK:
        if self._packed is not None:
            return self._topk_packed(X, k, run)
        with run.phase("search", X.nnz) as progress:
            tree = self._growing_tree()
            return TopK(*tree.search(X.indptr, X.indices, X.data, k, run.n_threads, progress))

    def _topk_packed(self, X: CSR, k: int, run: Run) -> TopK:
        assert self._packed is not None
        values = _core.unit_rows(X.indptr, as_i32(X, MAX_COLUMNS).indices, X.data) if self.normalize else X.data
        rows = as_i32(CSR(X.indptr, X.indices, values, X.n_cols), self._packed.n_features)
        # Leaves of merged labels suggest the same label: ask for as many more as there are doubles.
        doubles = len(self._leaf_labels) - len(np.unique(self._leaf_labels))
        wide = min(k + doubles, len(self._leaf_labels))
        top = self._packed.topk(rows, wide, beam_width=self.beam_width, exact=self.search == "exact", run=run)
        found = np.where(top.labels >= 0, self._leaf_labels[top.labels], -1).astype(np.int32)
        return TopK(found, top.scores) if doubles == 0 else _first_of_each(TopK(found, top.scores), k)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        self._fit_counts()
        if self._packed is not None:
            records = {_RECORD + name: array for name, array in self._kept_records.items()}
            facts = {"inference_only": True, "seed": self._seed, "rows_learned": self.rows_learned_, **self.describe()}
            return facts, {**self._packed.arrays(_PACKED), **records, "leaf_labels": self._leaf_labels}
        tree = self._growing_tree()
        facts = {**tree.facts(), "inference_only": False, "seed": self._seed, "rows_learned": self.rows_learned_}
        return facts, tree.state()

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        self._names, self._packed, self._tree = GrowingNames(self._names), None, None
        self.label_counts_ = np.array(self.label_counts_)  # the file's are read-only
        for name in ("seed", "rows_learned"):
            if type(facts[name]) is not int or facts[name] < 0:
                raise FormatError(f"{name} must be an integer, at least 0; got {facts[name]!r}")
        self._seed, self.rows_learned_ = facts["seed"], facts["rows_learned"]
        if facts["inference_only"]:
            self._restore_packed(arrays)
            return
        checked = check_growing(arrays, self.n_labels_)
        counters = [facts[name] for name in ("seen", "updates", "decisions", "cursor")]
        if any(type(value) is not int or value < 0 for value in counters) or counters[-1] >= len(checked["parent"]):
            raise FormatError(f"the counters of the growing tree are damaged: {counters}")
        self._tree = self._new_tree()
        self._tree.restore(checked, bool(facts["growing"]), *counters)

    def _restore_packed(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self._leaf_labels = leaf_labels = arrays["leaf_labels"]
        if leaf_labels.dtype != np.int32 or not ((leaf_labels >= 0) & (leaf_labels < self.n_labels_)).all():
            raise FormatError("leaf_labels must be labels")
        self._packed = PackedTree.restore(arrays, _PACKED, "logistic", len(leaf_labels), self.n_features_in_)
        records = {name: arrays[_RECORD + name] for name in RECORDS}
        self._kept_records = check_records(records, self.n_labels_)

    def _read_features(self, X: Any) -> CSR:
        self._check_fitted()
        return read_features(X, self.n_features_in_, owner=type(self).__name__)

    def _encode_labels(self, Y: Any) -> CSR:
        self._names.index  # noqa: B018 - labels that are columns are looked up by number
        return super()._encode_labels(Y)

    def _read_batch(self, X: Any, Y: Any, label_names: Sequence[Hashable] | None, owner: str) -> tuple[CSR, CSR]:
        """X and Y of a stream, checked against each other before anything of them is kept."""
        features = read_features(X, self.n_features_in_, owner=owner)
        n_rows = Y.shape[0] if hasattr(Y, "shape") else len(Y) if hasattr(Y, "__len__") else features.n_rows
        if n_rows != features.n_rows:
            raise LabelwoodError(
                f"{owner}: X and Y must have the same number of rows; got {features.n_rows} and {n_rows}"
            )
        if not self._growing_tree().growing:
            self._refuse_new_labels(Y, label_names, owner)
        targets = read_targets(Y, label_names, self._names, owner=owner)
        self.n_features_in_ = max(self.n_features_in_, features.n_cols)
        return features, targets

    def _refuse_new_labels(self, Y: Any, label_names: Sequence[Hashable] | None, owner: str) -> None:
        trial = GrowingNames(self._names)
        targets = read_targets(Y, label_names, trial, owner=owner)
        tree = self._growing_tree()
        missing = [label for label in np.unique(targets.indices).tolist() if not tree.has_label(label)]
        if missing:
            name = trial.array.tolist()[missing[0]]
            raise LabelwoodError(
                f"{owner}: the tree given to learn_tree has no label {name!r} and is closed; use warm_start_from"
            )

    def _begin(self, names: LabelNames) -> Self:
        """A copy of the parameters that has seen nothing."""
        fresh: Self = clone(self)
        seed = secrets.randbits(32) if self.random_state is None else int(self.random_state)
        fresh._start(GrowingNames(names), seed)
        fresh.n_features_in_, fresh.fit_seconds_, fresh.label_counts_ = 1, {}, np.zeros(len(names), np.int64)
        fresh.trained_ = {"rows": 0, "feature_entries": 0, "label_entries": 0, "seed": seed}
        fresh._note_fitted()
        return fresh

    def _adopt(self, fresh: Self) -> Self:
        """Take over the fitted state of a copy."""
        fresh._note_fitted()
        kept = {name: value for name, value in vars(self).items() if name not in self._fitted}
        self.__dict__ = {**kept, **{name: vars(fresh)[name] for name in fresh._fitted}}
        return self

    def _start(self, names: GrowingNames, seed: int) -> None:
        self._names, self._seed, self._packed, self.rows_learned_ = names, seed, None, 0
        self._tree = self._new_tree()

    def _new_tree(self) -> _core.OnlineTree:
        return _core.OnlineTree(
            _POLICIES.index(self.policy), int(self.arity), int(self.max_leaf), float(self.alpha), self._seed,
            float(self.learning_rate), float(self.epsilon), float(self.bias), bool(self.normalize),
        )  # fmt: skip

    def _plant(self, tree: LabelTree, labels: npt.NDArray[Any], *, growing: bool) -> None:
        """Start from a tree whose label j is our ``labels[j]``."""
        assert self._tree is not None
        label = np.where(tree.label >= 0, labels[tree.label], -1).astype(np.int32)
        self._tree.plant(tree.parent, label, growing)

    def _learn_planted(
        self, tree: LinearTree | LabelTree, X: Any, Y: Any, label_names: Sequence[Hashable] | None, *, growing: bool
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
        fresh._count(features, targets)
        fresh.fit_seconds_ = dict(run.seconds)
        return self._adopt(fresh)

    def _clustered(self, X: CSR, Y: CSR, rows: npt.NDArray[Any], run: Run) -> tuple[LabelTree, npt.NDArray[Any]]:
        """Balanced 2-means over the labels of a sample: the tree, and the label of each of its leaves."""
        features, targets = X.take(rows), Y.take(rows)
        labels, local = np.unique(targets.indices, return_inverse=True)
        if len(labels) == 0:
            raise LabelwoodError("OnlineTree: warm_start must cover at least one row with a label")
        vectors = _core.label_vectors(
            features.indptr, features.indices, _core.unit_rows(features.indptr, features.indices, features.data),
            X.n_cols, targets.indptr, local.astype(np.int32), len(labels), 0, run.n_threads, None,
        )  # fmt: skip
        grown = _core.grow_tree(
            *vectors, X.n_cols, True, self.arity, self.max_leaf, 0, _WARM_ROUNDS, run.seed, run.n_threads, None
        )
        return freeze(*grown), labels

    def _live(self) -> _core.OnlineTree | None:
        self._check_fitted()
        return self._tree

    def _growing_tree(self) -> _core.OnlineTree:
        tree = self._live()
        if tree is None:
            raise LabelwoodError(
                "OnlineTree: this model was frozen or saved with inference_only and cannot learn or change; "
                "use the model it was made from"
            )
        return tree

    def _records(self) -> dict[str, npt.NDArray[Any]]:
        return self._kept_records if self._packed is not None else self._growing_tree().records()

    def _count(self, X: CSR, Y: CSR) -> None:
        """Note when and from how much the model has learned."""
        trained = self.trained_
        trained["at"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        trained["rows"] += X.n_rows
        trained["feature_entries"] += X.nnz
        trained["label_entries"] += Y.nnz
        self._fit_counts()
        np.add.at(self.label_counts_, Y.indices, 1)

    def _fit_counts(self) -> None:
        """Give the labels that are new a count of 0."""
        lacking = len(self._names) - len(self.label_counts_)
        if lacking:
            self.label_counts_ = np.pad(self.label_counts_, (0, lacking))


def _work(X: CSR, Y: CSR, order: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Running total of the work of rows: features times labels."""
    per_row = (np.diff(X.indptr) + 1) * (np.diff(Y.indptr) + 1)
    return np.cumsum(per_row[order])


def _first_of_each(top: TopK, k: int) -> TopK:
    """Lists in which every label keeps its best place only, k wide."""
    n_rows, width = top.labels.shape
    labels, scores = np.full((n_rows, k), -1, np.int32), np.zeros((n_rows, k), np.float32)
    for row in range(n_rows):
        _, first = np.unique(top.labels[row], return_index=True)
        kept = np.sort(first)
        kept = kept[top.labels[row, kept] >= 0][:k]
        labels[row, : len(kept)], scores[row, : len(kept)] = top.labels[row, kept], top.scores[row, kept]
    return TopK(labels, scores)
