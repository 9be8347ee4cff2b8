"""A fitted model: its labels, its features, and what a method answers for rows.

The names without an underscore are the API within the library: what commands, the service, figures and blends ask.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from labelwood.errors import LabelwoodError
from labelwood.explain import Asked, Explanation, Place
from labelwood.label_names import LabelEntry, LabelNames
from labelwood.packed.label_tree import LabelledTree
from labelwood.packed.routed_forest import RoutedForest
from labelwood.run_context import RunContext, thread_count
from labelwood.scoring.thresholds import Decisions, Objective
from labelwood.sparse import CSR, I32, I64, TopK
from labelwood.validation.column_names import check_columns, column_names, n_dimensions
from labelwood.validation.features import as_features
from labelwood.validation.targets import is_matrix, named_rows, read_matrix, read_rows, to_csr
from labelwood.vocabulary import Vocabulary
from labelwood.vocabulary.current_labels import CurrentLabels, label_id, moved_ids, renames


class FittedModel:
    """What a fitted estimator knows; ``Prediction`` adds predictions, ``TreeEstimator`` fit and save."""

    method_name: ClassVar[str] = ""
    takes: ClassVar[Literal["features", "text"]] = "features"
    can_shrink: ClassVar[bool] = False  # the model has prune, quantize and shrink_curve
    has_label_weights: ClassVar[bool] = False  # trees() are label trees: features have weights for each label
    takes_new_features: ClassVar[bool] = False  # rows may have columns beyond those of training
    vector_width: ClassVar[int] = 0  # numbers of a vector beside each text, in a model of texts
    takes_vectors: ClassVar[bool] = False  # learns from dense columns as they are; others get them as sparse entries

    n_jobs: int | None
    verbose: bool
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]
    label_counts_: I64
    trained_: dict[str, Any]
    objective: Objective = "precision"
    _names: LabelNames
    _decisions: Decisions = Decisions()
    # What moved_labels found, with the vocabulary and the number of labels for which it holds.
    _moved: tuple[Vocabulary | None, int, dict[int, int]] = (None, -1, {})
    _fitted: frozenset[str] = frozenset()  # the attributes that fit or load has set

    def topk_rows(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k best label ids of each row by the method's own scores, 1 <= k <= n_labels_.

        If ``run.allowed`` is set, only these labels are searched, and k is at most their number.
        """
        raise NotImplementedError

    def explain_one(self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: RunContext) -> Explanation:
        """Why ``topk_rows`` gives these k labels for one row."""
        raise NotImplementedError

    def to_saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The manifest and the arrays of the saved model."""
        raise NotImplementedError

    def trees(self) -> Sequence[LabelledTree] | RoutedForest:
        """The fitted trees as they are stored, to draw and to measure."""
        raise LabelwoodError(f"{type(self).__name__}: the method has no trees of its own")

    def topk_by_tree(self, X: CSR, k: int, run: RunContext) -> list[TopK]:
        """The labels that each label tree proposes for rows; their average is the model's answer."""
        raise LabelwoodError(f"{self.method_name} has one tree; a curve over trees needs several")

    @property
    def main_member(self) -> FittedModel:
        """The model whose trees stand for this one: itself, or the member of a blend with the largest weight."""
        return self

    @property
    def can_learn(self) -> bool:
        """True if ``partial_fit`` can teach this model more rows."""
        return False

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The label names in the order of their ids: 0..L-1 if Y was a matrix without names."""
        return self.label_names.array

    @property
    def n_labels_(self) -> int:
        """Number of labels."""
        return len(self.label_names)

    @property
    def label_names(self) -> LabelNames:
        """The names of the labels, by id and by name."""
        self._check_fitted()
        return self._names

    @property
    def decisions(self) -> Decisions:
        """What was learnt on held-out rows: calibration, thresholds, strength of label weights."""
        return self._decisions

    @property
    def n_threads(self) -> int:
        """The threads that ``n_jobs`` stands for."""
        return thread_count(self.n_jobs, owner=type(self).__name__)

    def set_threads(self, n_jobs: int) -> None:
        """Predict with this many threads from here on."""
        self.n_jobs = n_jobs

    @property
    def vocabulary_(self) -> Vocabulary | None:
        """What the labels mean: their concepts, if the model has a vocabulary."""
        return self.label_names.vocabulary

    def use_vocabulary(self, vocabulary: Vocabulary | None) -> None:
        """Take a vocabulary, or a newer version of it, without learning anything again.

        Labels of replaced concepts take over the new URI, or count for it if it is a label already. Labels of concepts
        that are deprecated without a replacement are not suggested.
        """
        if vocabulary is not None and self.label_names.kind != "ids":
            self._rename_labels(renames(self.label_names, vocabulary))
        self.label_names.vocabulary = vocabulary

    def _rename_labels(self, new: Mapping[Hashable, str]) -> None:
        self._names = self._names.renamed(new)

    def moved_labels(self) -> dict[int, int]:
        """Label ids that are not suggested under their own name, with the id that stands for each, or -1."""
        names = self.label_names
        if names.vocabulary is None:
            return {}
        vocabulary, count, found = self._moved
        if vocabulary is not names.vocabulary or count != len(names):
            found = moved_ids(names)
            self._moved = (names.vocabulary, len(names), found)
        return found

    def label_entries(self, ids: Sequence[int] | None = None) -> list[LabelEntry]:
        """Labels with their numbers of training rows: all labels in the order of ids, or those of ``ids``."""
        wanted = range(self.n_labels_) if ids is None else ids
        counts = self.label_counts_[np.array(wanted, np.int64)].tolist()
        moved = self.moved_labels()
        names = self.label_names.named(wanted)
        entries = [
            LabelEntry(name, label, "active", count) for name, label, count in zip(names, wanted, counts, strict=True)
        ]
        return [moved_entry(entry, moved, self.label_names) for entry in entries] if moved else entries

    def encode(self, X: Any) -> CSR:
        """A user's X as checked rows of the model's features."""
        self._check_fitted()
        self._check_columns(X)
        return as_features(X, owner=type(self).__name__, n_features=self.n_features_in_)

    def encode_labels(self, Y: Any) -> CSR:
        """A user's Y with this model's label ids; labels unknown to the model become further columns."""
        names, owner = self.label_names, type(self).__name__
        if is_matrix(Y):
            matrix, columns = read_matrix(Y, owner=owner), column_names(Y)
            if columns is None or names.kind == "ids":
                return CSR(matrix.indptr, matrix.indices, matrix.data, max(matrix.n_cols, len(names)))
            Y = named_rows(matrix, columns)
        rows = read_rows(Y, owner=owner)
        if names.vocabulary is not None and names.kind != "ids":
            current = CurrentLabels(names.vocabulary)
            rows = [[one for label in row if (one := current(label)) is not None] for row in rows]
        return to_csr(rows, names.index, len(names), owner=owner)

    def id_of(self, label: Hashable) -> int:
        """The id of a label; with a vocabulary, the name of its concept will do."""
        return label_id(self._names, label, owner=type(self).__name__)

    def knows_any(self, row: CSR) -> bool:
        """True if a feature of the row is known to the model."""
        return bool(np.any(row.data)) or (row.dense_part is not None and bool(np.any(row.dense_part)))

    def feature_namer(self) -> Callable[[int], str | None]:
        """A function from a column of X to the name it had at fit, or None."""
        names = self._feature_names or ()
        return lambda column: names[column] if column < len(names) else None

    def _label_depths(self) -> I32 | None:
        """The depth of each label, where labels have one."""
        return None

    def _names_bytes(self) -> int:
        """Bytes of the label names and counts in a saved model."""
        return 8 * len(self._names) + sum(array.nbytes for array in self._names.state()[1].values())

    def _own_run(self) -> RunContext:
        return RunContext(n_threads=self.n_threads, verbose=bool(self.verbose))

    @property
    def _feature_names(self) -> list[str] | None:
        names: list[str] | None = self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
        return names

    def _check_columns(self, X: Any, *, may_grow: bool = False) -> None:
        """Compare the names of X's columns with those at fit; rows from within the library have none."""
        if n_dimensions(X) == 2 and not isinstance(X, CSR):
            check_columns(self._feature_names, column_names(X), owner=type(self).__name__, may_grow=may_grow)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"{type(self).__name__}: not fitted yet; call fit(X, Y) first")

    def __sklearn_is_fitted__(self) -> bool:
        return "_names" in vars(self)


def moved_entry(entry: LabelEntry, moved: Mapping[int, int], names: LabelNames) -> LabelEntry:
    """The entry of a label as its vocabulary has it: merged into what replaces it, or retired."""
    target = moved.get(entry.id)
    if target is None:
        return entry
    return entry._replace(
        state="retired" if target < 0 else "merged", target=None if target < 0 else names.named([target])[0]
    )
