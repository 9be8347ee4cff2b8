"""The growing tree behind OnlineTree: learning, search, explanation, saving and restoring."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import FormatError, LabelwoodError
from labelwood.explain import Asked, Explanation, Place
from labelwood.explain.label_tree import RowInTree, explain_row, members_of
from labelwood.explain.tree_weights import GrowingTreeWeights, PackedTreeWeights, TreeWeights, renamed
from labelwood.hybrid import as_sparse, topk_in_blocks
from labelwood.methods.online.learner import StreamLearner
from labelwood.methods.online.model_lock import reads
from labelwood.methods.online.saved_state import RECORDS, check_growing, check_records
from labelwood.methods.online.stream_inputs import GrowingNames, as_i32, read_targets
from labelwood.packed.label_tree import LOGISTIC, LabelledTree, PackedTree, narrow
from labelwood.packed.tree_shape import LabelTree
from labelwood.resources.estimate import Growth
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, I32, MAX_COLUMNS, TopK

# Work of one kernel call, in features times labels: a few tenths of a second, then Python handles signals.
CHUNK = 1_000_000
_RECORD = "record."
_PACKED = "packed."


class GrowingEstimator(StreamLearner):
    """An estimator whose fitted state is a growing tree, or the packed tree it was frozen into."""

    _held_in_training: ClassVar[float] = 1.3  # the tree, and free room in its tables
    _growth: ClassVar[Growth] = Growth(0.0, 1.3, slowing=0.88)

    policy: str
    arity: int
    max_leaf: int
    alpha: float
    balance: str
    learning_rate: float
    epsilon: float
    epsilon_place: str
    epochs: int
    bias: float
    normalize: bool
    search: str
    beam_width: int

    _tree: _core.OnlineTree | None
    _packed: PackedTree | None
    _leaf_labels: I32
    _explained: GrowingTreeWeights | None = None  # what the last explanation made: the shape of the growing tree
    _seed: int
    _kept_records: dict[str, npt.NDArray[Any]]

    def describe(self) -> dict[str, Any]:
        """Depth, nodes and size of the fitted tree."""
        if self._packed is not None:
            tree = self._packed.tree
            return {"depth": tree.depth, "nodes": tree.n_nodes, "nonzero_weights": self._packed.node_weights.n_weights}
        facts = self._growing_tree().facts()
        kept = ("depth", "nodes", "auxiliary_classifiers", "seen", "updates", "bytes")
        return {**{name: facts[name] for name in kept}, "features_seen": facts["features"]}

    def learn_rows(self, X: CSR, Y: CSR, n_threads: int) -> None:
        """Learn checked rows, in their order; ``rows_learned_`` counts them, also after an interrupt."""
        tree = self._growing_tree()
        before = tree.seen
        try:
            self._learn(X, Y, np.arange(X.n_rows, dtype=np.int64), None, n_threads)
        finally:
            # The tree's own count: an interrupt may come between the end of a call and the next line here.
            self.rows_learned_ = tree.seen - before
            self._count(X, Y, self.rows_learned_)

    def predict_then_learn(self, X: CSR, Y: CSR, k: int) -> TopK:
        """Learn checked rows, in their order; the k best labels of each row before it was learned."""
        labels, scores = self._growing_tree().progressive(X, Y, k)
        self._count(X, Y, X.n_rows)
        return TopK(labels, scores)

    def _epochs(self, X: CSR, Y: CSR, order: npt.NDArray[Any], random: np.random.Generator, run: RunContext) -> None:
        for epoch in range(self.epochs):
            with run.phase("learn", int(work_of(X, Y, order)[-1])) as progress:
                rows = order if epoch == 0 else random.permutation(X.n_rows)
                self._learn(X, Y, rows, progress, run.n_threads)
        self.rows_learned_ = X.n_rows

    def _learn(
        self, X: CSR, Y: CSR, order: npt.NDArray[Any], progress: Callable[[int], None] | None, n_threads: int
    ) -> None:
        """Learn the rows ``order``; between chunks Python sees signals."""
        tree, order = self._growing_tree(), np.ascontiguousarray(order, np.int64)
        bounds, work = chunk_bounds(X, Y, order)
        for start, stop in pairwise(bounds):
            rows, marks, chunk = X, Y, order[start:stop]
            if X.resident:  # rows in a file come into memory a chunk at a time
                rows, marks, chunk = X.take(chunk), Y.take(chunk), np.arange(len(chunk))
            tree.learn(rows, marks, chunk, n_threads)
            if progress is not None and work is not None:
                progress(int(work[stop - 1]))

    def topk_rows(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k best labels of each row: exactly on a live tree, by ``search`` on a frozen one."""
        return topk_in_blocks(X, lambda rows: self._topk_sparse(rows, k, run))

    def _topk_sparse(self, X: CSR, k: int, run: RunContext) -> TopK:
        if self._packed is not None:
            return self._topk_packed(X, k, run)
        with run.phase("search", X.nnz) as progress:
            tree = self._growing_tree()
            return TopK(*tree.search(X, k, run.n_threads, progress, run.allowed))

    def _packed_rows(self, X: CSR) -> CSR:
        """Rows for a packed tree: scaled if the method scales, without columns that the tree has not seen."""
        values = _core.unit_rows(X.indptr, X.data) if self.normalize else X.data
        return as_i32(CSR(X.indptr, X.indices, values, X.n_cols), self.n_features_in_)

    def _topk_packed(self, X: CSR, k: int, run: RunContext) -> TopK:
        assert self._packed is not None
        if len(self._leaf_labels) == 0:  # every label is retired
            return TopK(np.full((X.n_rows, k), -1, np.int32), np.zeros((X.n_rows, k), np.float32))
        rows = self._packed_rows(X)
        leaves = self._allowed_leaves(run.allowed)
        suggested = self._leaf_labels if leaves is None else self._leaf_labels[leaves]
        if len(suggested) == 0:
            return TopK(np.full((X.n_rows, k), -1, np.int32), np.zeros((X.n_rows, k), np.float32))
        # Leaves of merged labels suggest the same label: ask for more, by the number of such leaves.
        doubles = len(suggested) - int(np.count_nonzero(np.bincount(suggested)))
        wide = min(k + doubles, len(suggested))
        is_exact = self.search == "exact"
        top = self._packed.topk(rows, wide, beam_width=self.beam_width, exact=is_exact, run=run, allowed=leaves)
        found = np.where(top.labels >= 0, self._leaf_labels[top.labels], -1).astype(np.int32)
        return TopK(found, top.scores) if doubles == 0 else _first_of_each(TopK(found, top.scores), k)

    def _allowed_leaves(self, allowed: I32 | None) -> I32 | None:
        """The leaves of the packed tree that suggest an allowed label; None if all labels are allowed."""
        if allowed is None:
            return None
        wanted = np.zeros(self.n_labels_, bool)
        wanted[allowed] = True
        return np.flatnonzero(wanted[self._leaf_labels]).astype(np.int32)

    def explain_one(self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: RunContext) -> Explanation:
        """Explain on the packed tree or on the growing one."""
        top = self.topk_rows(row, k, run)
        members = members_of(top)
        view = self.row_in_tree(row, asked, number=0)
        beam_width = self.beam_width if self._packed is not None and self.search == "beam" else None
        return explain_row([view], [members], top, asked, beam_width=beam_width, missed=missed)

    def row_in_tree(self, row: CSR, asked: Asked, *, number: int) -> RowInTree:
        """A row in this tree, as tree ``number`` of an explanation."""
        return RowInTree(self._tree_weights(), self._packed_rows(as_sparse(row)), asked, number=number)

    def _tree_weights(self) -> TreeWeights:
        if self._packed is not None:
            return PackedTreeWeights(self._packed, renamed(self._packed.tree.label, self._leaf_labels))
        tree = self._packable_tree()
        if self._explained is None or not self._explained.is_of(tree):
            self._explained = GrowingTreeWeights.of(tree)
        return self._explained

    def knows_any(self, row: CSR) -> bool:
        """True if a feature of the row is known to the model."""
        return super().knows_any(row) if self._packed is not None else self._growing_tree().knows_any(row)

    def _packable_tree(self) -> _core.OnlineTree:
        tree = self._growing_tree()
        if self.n_features_in_ > MAX_COLUMNS:
            raise LabelwoodError(
                f"{type(self).__name__}: freeze and explain take feature ids up to {MAX_COLUMNS}; "
                f"got {self.n_features_in_ - 1}"
            )
        return tree

    def _packed_from(self, arrays: dict[str, npt.NDArray[Any]]) -> tuple[PackedTree, I32]:
        """The packed tree that the kernel made, and the label of each leaf."""
        leaf_labels, shape = arrays.pop("leaf_labels"), LabelTree(arrays.pop("child_ptr"), arrays.pop("label"))
        arrays.pop("order")
        return PackedTree(shape, narrow(arrays, shape, "float16"), LOGISTIC, self.n_features_in_), leaf_labels

    @reads
    def trees(self) -> list[LabelledTree]:
        """The packed tree; a live one is packed for it."""
        if self._packed is None:
            return self.freeze().trees()
        return [LabelledTree(self._packed, self._leaf_labels)]

    def follow(self, forest: StreamLearner) -> None:
        """Know the labels and features of the forest that this tree is part of."""
        self._names, self.n_features_in_ = forest.label_names, forest.n_features_in_
        self._fit_counts()
        if hasattr(forest, "feature_names_in_"):
            self.feature_names_in_ = forest.feature_names_in_
            self._fitted |= {"feature_names_in_"}

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
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
            if type(facts[name]) is not int or not 0 <= facts[name] < 2**63:
                raise FormatError(f"{name} must be an integer, at least 0; got {facts[name]!r}")
        self._seed, self.rows_learned_ = facts["seed"], facts["rows_learned"]
        if facts["inference_only"]:
            self._restore_packed(arrays)
            return
        self._restore_growing(facts, arrays)

    def _restore_growing(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        checked = check_growing(arrays, self.n_labels_)
        counters = [facts[name] for name in ("seen", "updates", "decisions", "cursor")]
        whole = all(type(value) is int and 0 <= value < 2**62 for value in counters)
        if not whole or counters[-1] >= len(checked["parent"]):
            raise FormatError(f"the counters of the growing tree are damaged: {counters}")
        self._tree = self._new_tree()
        self._tree.restore(checked, bool(facts["growing"]), *counters)

    def _restore_packed(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self._leaf_labels = leaf_labels = arrays["leaf_labels"]
        known = leaf_labels.dtype == np.int32 and leaf_labels.ndim == 1
        if not known or not ((leaf_labels >= 0) & (leaf_labels < self.n_labels_)).all():
            raise FormatError("leaf_labels must be labels")
        self._packed = PackedTree.restore(arrays, _PACKED, LOGISTIC, len(leaf_labels), self.n_features_in_)
        records = {name: arrays[_RECORD + name] for name in RECORDS}
        self._kept_records = check_records(records, self.n_labels_)

    @reads
    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle and copy: the kernel's tree as its saved state."""
        state = {**super().__getstate__(), "_explained": None}
        tree = state.get("_tree")
        return state if tree is None else {**state, "_tree": (tree.facts(), tree.state())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if isinstance(state.get("_tree"), tuple):
            self._restore_growing(*state["_tree"])

    def _refuse_new_labels(self, Y: Any, label_names: Sequence[Hashable] | None) -> None:
        tree, owner = self._growing_tree(), type(self).__name__
        if tree.growing:
            return
        trial = GrowingNames(self._names)
        targets = read_targets(Y, label_names, trial, owner=owner)
        missing = [label for label in np.unique(targets.indices).tolist() if not tree.has_label(label)]
        if missing:
            name = trial.array.tolist()[missing[0]]
            raise LabelwoodError(
                f"{owner}: the tree given to learn_tree has no label {name!r} and is closed; use warm_start_from"
            )

    def _start(self, names: GrowingNames, seed: int) -> None:
        self._names, self._seed, self._packed, self.rows_learned_ = names, seed, None, 0
        self._tree = self._new_tree()

    def _new_tree(self) -> _core.OnlineTree:
        named = ("policy", "arity", "max_leaf", "alpha", "learning_rate", "epsilon", "bias")
        options = {name: getattr(self, name) for name in named}
        options |= {"printed_balance": self.balance == "printed", "epsilon_outside": self.epsilon_place == "outside"}
        return _core.OnlineTree({**options, "normalize": bool(self.normalize), "seed": self._seed})

    def _plant(self, tree: LabelTree, labels: npt.NDArray[Any], *, growing: bool) -> None:
        """Start from a tree whose label j is this model's label ``labels[j]``."""
        assert self._tree is not None
        label = np.where(tree.label >= 0, labels[tree.label], -1).astype(np.int32)
        self._tree.plant(tree.parent, label, growing)

    def label_records(self) -> dict[str, npt.NDArray[Any]]:
        """Support, first and last sight, retirement and target of every label that was seen."""
        return self._kept_records if self._packed is not None else self._growing_tree().records()

    def set_lifecycle(self, label: int, *, retired: bool, answers_as: int) -> None:
        """Retire a label id, or let it answer as another."""
        self._growing_tree().set_lifecycle(label, retired, answers_as)

    @property
    def can_learn(self) -> bool:
        """True if the model is fitted and neither frozen nor saved with ``inference_only``."""
        return self.__sklearn_is_fitted__() and self._tree is not None

    @property
    def n_seen_(self) -> int:
        """Number of examples learned, every pass counted."""
        self._check_fitted()
        return int(self.trained_.get("seen", 0)) if self._tree is None else self._tree.seen

    @property
    def _normalizes(self) -> bool:
        return self.normalize

    def _growing_tree(self) -> _core.OnlineTree:
        self._check_can_learn()
        assert self._tree is not None
        return self._tree

    def _count(self, X: CSR, Y: CSR, n_rows: int) -> None:
        """Count the first ``n_rows`` rows of X and Y as learned, and note the time."""
        trained, n_marks = self.trained_, int(Y.indptr[n_rows])
        trained["at"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        trained["rows"] += n_rows
        trained["feature_entries"] += int(X.indptr[n_rows])
        trained["label_entries"] += n_marks
        self._fit_counts()
        np.add.at(self.label_counts_, Y.indices[:n_marks], 1)


def work_of(X: CSR, Y: CSR, order: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Running total of the work of rows: features times labels."""
    per_row = (np.diff(X.indptr) + 1) * (np.diff(Y.indptr) + 1)
    return np.cumsum(per_row[order])


def chunk_bounds(X: CSR, Y: CSR, order: npt.NDArray[Any]) -> tuple[list[int], npt.NDArray[np.int64] | None]:
    """Bounds of chunks of rows of about equal work, and the running total of it; None if one chunk is enough."""
    # Most batches of a stream are small; the bound spares them the sums.
    if (X.nnz + X.n_rows) * (Y.nnz + Y.n_rows) <= CHUNK:
        return [0, len(order)], None
    work = work_of(X, Y, order)
    cuts = np.searchsorted(work, np.arange(CHUNK, int(work[-1]), CHUNK), side="right").tolist()
    return [0, *(cut for cut in dict.fromkeys(cuts) if 0 < cut < len(work)), len(work)], work


def _first_of_each(top: TopK, k: int) -> TopK:
    """Lists of k in which every label has only its best place."""
    n_rows = len(top.labels)
    labels, scores = np.full((n_rows, k), -1, np.int32), np.zeros((n_rows, k), np.float32)
    for row in range(n_rows):
        _, first = np.unique(top.labels[row], return_index=True)
        kept = np.sort(first)
        kept = kept[top.labels[row, kept] >= 0][:k]
        labels[row, : len(kept)], scores[row, : len(kept)] = top.labels[row, kept], top.scores[row, kept]
    return TopK(labels, scores)
