"""The growing state behind OnlineTree: how rows reach it, how it is searched, frozen, saved and restored."""

from __future__ import annotations

import copy
import datetime
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.explain import Asked, Explanation, Place
from labelwood.explain.label_tree import RowInTree, explain_row, members_of
from labelwood.methods.online.saved_state import RECORDS, check_growing, check_records
from labelwood.methods.online.stream_inputs import (
    GrowingNames,
    as_i32,
    check_size,
    read_features,
    read_targets,
)
from labelwood.packed.label_tree import LOGISTIC, PackedTree
from labelwood.packed.tree_shape import LabelTree
from labelwood.resources.estimate import Growth
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, I32, MAX_COLUMNS, TopK
from labelwood.validation.column_names import column_names

_POLICIES = ("best-greedy", "random", "complete", "flat")
# Work between two looks at the world outside, in features times labels: a few tenths of a second.
CHUNK = 1_000_000
_RECORD = "record."
_PACKED = "packed."


class GrowingEstimator(TreeEstimator):
    """An estimator whose fitted state is a growing tree, or the packed tree it was frozen into."""

    _held_in_training: ClassVar[float] = 1.3  # the tree as it is, and room that its tables have left
    _growth: ClassVar[Growth] = Growth(0.0, 1.3, slowing=0.88)

    policy: str
    arity: int
    max_leaf: int
    alpha: float
    learning_rate: float
    epsilon: float
    epochs: int
    bias: float
    normalize: bool
    search: str
    beam_width: int

    rows_learned_: int
    _names: GrowingNames
    _tree: _core.OnlineTree | None
    _packed: PackedTree | None
    _leaf_labels: I32
    _seed: int
    _kept_records: dict[str, npt.NDArray[Any]]

    def describe(self) -> dict[str, Any]:
        """Depth, nodes and size of the fitted tree."""
        if self._packed is not None:
            tree = self._packed.tree
            return {
                "depth": tree.depth,
                "nodes": tree.n_nodes,
                "nonzero_weights": self._packed.chunks.n_weights,
            }
        facts = self._growing_tree().facts()
        kept = ("depth", "nodes", "auxiliary_classifiers", "seen", "updates", "bytes")
        return {**{name: facts[name] for name in kept}, "features_seen": facts["features"]}

    def _epochs(
        self, X: CSR, Y: CSR, order: npt.NDArray[Any], random: np.random.Generator, run: RunContext
    ) -> None:
        for epoch in range(self.epochs):
            with run.phase("learn", int(_work(X, Y, order)[-1])) as progress:
                self._learn(
                    X, Y, order if epoch == 0 else random.permutation(X.n_rows), progress, count=False
                )

    def _learn(
        self,
        X: CSR,
        Y: CSR,
        order: npt.NDArray[Any],
        progress: Callable[[int], None] | None,
        *,
        count: bool = True,
    ) -> None:
        """Learn the rows ``order``; between chunks Python sees signals, and other threads may predict."""
        assert self._tree is not None
        tree, n_threads = self._tree, self._n_threads()
        order = np.ascontiguousarray(order, np.int64)
        # Most batches of a stream are small; the bound spares them the sums.
        small = (X.nnz + X.n_rows) * (Y.nnz + Y.n_rows) <= CHUNK
        work = None if small else _work(X, Y, order)
        before = tree.seen
        try:
            for start, stop in pairwise([0, len(order)] if work is None else _cuts(work)):
                rows, marks, chunk = X, Y, order[start:stop]
                if X.resident:  # rows in a file come into memory a chunk at a time
                    rows, marks, chunk = X.take(chunk), Y.take(chunk), np.arange(len(chunk))
                tree.learn(
                    rows.indptr, rows.indices, rows.data, marks.indptr, marks.indices, Y.n_cols, chunk, n_threads
                )  # fmt: skip
                if progress is not None and work is not None:
                    progress(int(work[stop - 1]))
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(f"OnlineTree: the first {tree.seen - before} of {len(order)} rows are learned")
            raise
        finally:
            # The tree's own count: an interrupt may come between the end of a call and the next line here.
            self.rows_learned_ = tree.seen - before
            if count:
                self._count(X, Y, self.rows_learned_)

    def _topk(self, X: CSR, k: int, run: RunContext) -> TopK:
        if self._packed is not None:
            return self._topk_packed(X, k, run)
        with run.phase("search", X.nnz) as progress:
            tree = self._growing_tree()
            return TopK(*tree.search(X.indptr, X.indices, X.data, k, run.n_threads, progress))

    def _packed_rows(self, X: CSR, packed: PackedTree) -> CSR:
        """Rows as a packed tree takes them: scaled if the method scales, without features it has not seen."""
        values = (
            _core.unit_rows(X.indptr, as_i32(X, MAX_COLUMNS).indices, X.data) if self.normalize else X.data
        )
        return as_i32(CSR(X.indptr, X.indices, values, X.n_cols), packed.n_features)

    def _topk_packed(self, X: CSR, k: int, run: RunContext) -> TopK:
        assert self._packed is not None
        rows = self._packed_rows(X, self._packed)
        # Leaves of merged labels suggest the same label: ask for as many more as there are doubles.
        doubles = len(self._leaf_labels) - len(np.unique(self._leaf_labels))
        wide = min(k + doubles, len(self._leaf_labels))
        top = self._packed.topk(rows, wide, beam_width=self.beam_width, exact=self.search == "exact", run=run)
        found = np.where(top.labels >= 0, self._leaf_labels[top.labels], -1).astype(np.int32)
        return TopK(found, top.scores) if doubles == 0 else _first_of_each(TopK(found, top.scores), k)

    def _explain(
        self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: RunContext
    ) -> Explanation:
        """Explained on the packed tree; a live one is packed for it with every weight, which takes a copy."""
        frozen = self if self._packed is not None else self.freeze()
        packed, leaf_labels = frozen._packed, frozen._leaf_labels
        assert packed is not None
        top = self._topk(row, k, run)
        view = RowInTree(packed, self._packed_rows(row, packed), asked, number=0, leaf_labels=leaf_labels)
        beam_width = self.beam_width if self._packed is not None and self.search == "beam" else None
        return explain_row([view], [members_of(top)], top, asked, beam_width=beam_width, missed=missed)

    def freeze(self, *, weight_threshold: float | None = None) -> Self:
        """A packed copy for prediction only."""
        raise NotImplementedError

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        self._fit_counts()
        if self._packed is not None:
            records = {_RECORD + name: array for name, array in self._kept_records.items()}
            facts = {
                "inference_only": True,
                "seed": self._seed,
                "rows_learned": self.rows_learned_,
                **self.describe(),
            }
            return facts, {**self._packed.arrays(_PACKED), **records, "leaf_labels": self._leaf_labels}
        tree = self._growing_tree()
        facts = {
            **tree.facts(),
            "inference_only": False,
            "seed": self._seed,
            "rows_learned": self.rows_learned_,
        }
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

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled and copied: the kernel's tree as its saved state."""
        state: dict[str, Any] = super().__getstate__()
        tree = state.get("_tree")
        return state if tree is None else {**state, "_tree": (tree.facts(), tree.state())}

    def __copy__(self) -> Self:
        """A copy shares nothing: what grows would grow in both."""
        return copy.deepcopy(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if isinstance(state.get("_tree"), tuple):
            self._restore_growing(*state["_tree"])

    def _read_features(self, X: Any) -> CSR:
        self._check_fitted()
        self._check_columns(X, may_grow=True)
        return self._rows_of(X, type(self).__name__)

    def _rows_of(self, X: Any, owner: str) -> CSR:
        features = read_features(X, self.n_features_in_, owner=owner)
        if not self.normalize:
            check_size(features, owner)
        return features

    def _read_batch(
        self, X: Any, Y: Any, label_names: Sequence[Hashable] | None, owner: str
    ) -> tuple[CSR, CSR]:
        """X and Y of a stream, checked against each other before anything of them is kept."""
        features = self._rows_of(X, owner)
        columns = column_names(X)
        if self._growing_tree().seen > 0:
            self._check_columns(X, may_grow=True)
        n_rows = Y.shape[0] if hasattr(Y, "shape") else len(Y) if hasattr(Y, "__len__") else features.n_rows
        if n_rows != features.n_rows:
            raise LabelwoodError(
                f"{owner}: X and Y must have the same number of rows; got {features.n_rows} and {n_rows}"
            )
        if not self._growing_tree().growing:
            self._refuse_new_labels(Y, label_names, owner)
        targets = read_targets(Y, label_names, self._names, owner=owner)
        self.n_features_in_ = max(self.n_features_in_, features.n_cols)
        if self._growing_tree().seen == 0 or self._feature_names is not None:
            self._name_features(columns)
            self._fitted |= {"feature_names_in_"} & vars(self).keys()
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

    def _count(self, X: CSR, Y: CSR, n_rows: int) -> None:
        """Note when and from how much the model has learned: the first rows of X and Y."""
        trained, n_marks = self.trained_, int(Y.indptr[n_rows])
        trained["at"] = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        trained["rows"] += n_rows
        trained["feature_entries"] += int(X.indptr[n_rows])
        trained["label_entries"] += n_marks
        self._fit_counts()
        np.add.at(self.label_counts_, Y.indices[:n_marks], 1)

    def _fit_counts(self) -> None:
        """Give the labels that are new a count of 0."""
        lacking = len(self._names) - len(self.label_counts_)
        if lacking:
            self.label_counts_ = np.pad(self.label_counts_, (0, lacking))


def _work(X: CSR, Y: CSR, order: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Running total of the work of rows: features times labels."""
    per_row = (np.diff(X.indptr) + 1) * (np.diff(Y.indptr) + 1)
    return np.cumsum(per_row[order])


def _cuts(work: npt.NDArray[np.int64]) -> list[int]:
    """Bounds of chunks of rows of about equal work."""
    cuts = np.searchsorted(work, np.arange(CHUNK, int(work[-1]), CHUNK), side="right").tolist()
    return [0, *(cut for cut in dict.fromkeys(cuts) if 0 < cut < len(work)), len(work)]


def _first_of_each(top: TopK, k: int) -> TopK:
    """Lists in which every label keeps its best place only, k wide."""
    n_rows = len(top.labels)
    labels, scores = np.full((n_rows, k), -1, np.int32), np.zeros((n_rows, k), np.float32)
    for row in range(n_rows):
        _, first = np.unique(top.labels[row], return_index=True)
        kept = np.sort(first)
        kept = kept[top.labels[row, kept] >= 0][:k]
        labels[row, : len(kept)], scores[row, : len(kept)] = top.labels[row, kept], top.scores[row, kept]
    return TopK(labels, scores)
