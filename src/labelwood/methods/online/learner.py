"""What every method that learns from a stream shares: reading batches, learning them, records of labels, freezing."""

from __future__ import annotations

import copy
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.label_names import LabelEntry, LabelNames
from labelwood.methods.online.label_lifecycle import Labels
from labelwood.methods.online.model_lock import LOCK, Locked, changes, lock_inherited, reads
from labelwood.methods.online.progressive import Progressive, judge_progressive
from labelwood.methods.online.stream_inputs import GrowingNames, check_size, read_features, read_targets
from labelwood.methods.text_classifier import Model
from labelwood.params import check_parameters
from labelwood.sparse import CSR, I32, TopK
from labelwood.validation.column_names import column_names

if TYPE_CHECKING:
    from labelwood.methods.online.living_batch import Batch, RefitResult, TrainingJob

_PROGRESSIVE_ROWS = 256


class StreamLearner(Locked, TreeEstimator):
    """A method that learns batch after batch; labels and features may appear at any time.

    Threads may share a model. A method that changes it runs alone, so that every other method sees it before or after
    the change, never in between.
    """

    takes_new_features: ClassVar[bool] = True
    has_label_weights: ClassVar[bool] = True

    rows_learned_: int
    defers_refits: bool = False  # whoever owns the model decides when it trains again
    last_refit_: RefitResult | None = None
    _names: GrowingNames

    def learn_rows(self, X: CSR, Y: CSR, n_threads: int) -> None:
        """Learn checked rows, in their order; ``rows_learned_`` counts them, also after an interrupt."""
        raise NotImplementedError

    def predict_then_learn(self, X: CSR, Y: CSR, k: int) -> TopK:
        """Learn checked rows, in their order; the k best labels of each row before it was learned."""
        raise NotImplementedError

    def freeze(self, *, weight_threshold: float | None = None) -> Self:
        """A packed copy for prediction only."""
        raise NotImplementedError

    def label_records(self) -> dict[str, npt.NDArray[Any]]:
        """Support, first and last sight, retirement and target of every label that was seen."""
        raise NotImplementedError

    def set_lifecycle(self, label: int, *, retired: bool, answers_as: int) -> None:
        """Retire a label id, or let it answer as another."""
        raise NotImplementedError

    @property
    def n_seen_(self) -> int:
        """Number of examples learned, every pass counted."""
        raise NotImplementedError

    @property
    def _normalizes(self) -> bool:
        """True if rows are scaled to unit length."""
        raise NotImplementedError

    def begun(self, names: LabelNames) -> Self:
        """A copy of the parameters that has seen nothing."""
        raise NotImplementedError

    def _refuse_new_labels(self, Y: Any, label_names: Sequence[Hashable] | None) -> None:
        """Raise if Y has labels that the model may not add."""

    @property
    def refit_due(self) -> str:
        """Why it is time to train a batch model again; empty if it is not, or if the method has none."""
        return ""

    @property
    def can_refit(self) -> bool:
        """True if the method has a batch model that can be trained again."""
        return False

    @property
    def batch_rows_and_age(self) -> tuple[int, int]:
        """The rows that the batch model was trained on, and the rows learned since."""
        return 0, 0

    @property
    def refit_under_way(self) -> TrainingJob | None:
        """The refit that has begun and not ended; None if there is none."""
        return None

    def begin_refit(self) -> TrainingJob:
        """Begin to train the batch model again; see :class:`LivingTree`."""
        raise LabelwoodError(f"{type(self).__name__}: the method has no batch model to train again")

    def end_refit(self, batch: Batch) -> RefitResult:
        """Take up the trained batch model, unless it does worse on the last rows."""
        raise LabelwoodError(f"{type(self).__name__}: the method has no batch model to train again")

    def drop_refit(self, reason: str) -> RefitResult:
        """End the refit under way without a new model."""
        raise LabelwoodError(f"{type(self).__name__}: the method has no batch model to train again")

    @changes
    def partial_fit(self, X: Any, Y: Any, *, label_names: Sequence[Hashable] | None = None) -> Self:
        """Learn some rows, in their order, on top of what is known.

        ``X`` as in ``fit``, or a list of dicts from feature id to value; a matrix may have more columns than earlier
        ones. ``Y`` as in ``fit``; labels may be new. If the input is refused, nothing is learned. If learning is
        interrupted, the model has learned the first ``rows_learned_`` rows; the exception says so as well.
        """
        if not self.__sklearn_is_fitted__():
            check_parameters(self)
            return self._adopt(self.begun(LabelNames.columns(0)).partial_fit(X, Y, label_names=label_names))
        self._check_can_learn()
        self._learn_batch(*self._read_batch(X, Y, label_names))
        return self

    @changes
    def progressive(self, X: Any, Y: Any, *, k: int = 5, label_names: Sequence[Hashable] | None = None) -> Progressive:
        """Learn rows in their order, predicting the k best labels of each before it is learned."""
        if not self.__sklearn_is_fitted__():
            check_parameters(self)
            self._adopt(self.begun(LabelNames.columns(0)))
        before = self.label_records()["support"]
        predicted, targets = self.test_then_learn(X, Y, k=k, label_names=label_names)
        return judge_progressive(predicted, targets, before)

    @changes
    def test_then_learn(
        self, X: Any, Y: Any, *, k: int = 1, label_names: Sequence[Hashable] | None = None, at_once: bool = False
    ) -> tuple[I32, CSR]:
        """Learn rows as ``partial_fit``; the ids of the k best labels of each row beforehand, and the true ones.

        Each row is predicted before it is learned, or, with ``at_once``, all rows before the first is learned, which
        is faster.
        """
        self._check_can_learn()
        features, targets = self._read_batch(X, Y, label_names)
        if at_once:
            predicted = self.topk_rows(features, k, self._own_run()).labels
            self._learn_batch(features, targets)
            return predicted, targets
        found = [np.empty((0, k), np.int32)]
        for start in range(0, features.n_rows, _PROGRESSIVE_ROWS):
            stop = min(features.n_rows, start + _PROGRESSIVE_ROWS)
            found.append(self.predict_then_learn(features.rows(start, stop), targets.rows(start, stop), k).labels)
        return np.concatenate(found), targets

    def save(
        self, path: str | os.PathLike[str], *, inference_only: bool = False, weight_threshold: float | None = 0.1
    ) -> None:
        """Write the model to a directory, with all that learning on needs.

        ``inference_only`` drops the optimiser's state and the weights of at most ``weight_threshold``: a fraction of
        the size, for a model that only predicts.
        """
        if inference_only and self.can_learn:
            self.freeze(weight_threshold=weight_threshold).save(path)
        else:
            super().save(path)

    @property
    def label_names(self) -> GrowingNames:
        """The names of the labels, by id and by name; new labels are added at the end.

        They change with the model: other threads read them within ``with model.reading``.
        """
        self._check_fitted()
        return self._names

    @property
    @reads
    def classes_(self) -> npt.NDArray[Any]:
        """The label names in the order of their ids."""
        return self.label_names.array

    @property
    def labels(self) -> Labels:
        """The labels one by one: list, rename, retire, merge, restore."""
        self._check_fitted()
        return Labels(self)

    def label_entries(self, ids: Sequence[int] | None = None) -> list[LabelEntry]:
        """Labels with their records: all labels in the order of ids, or those of ``ids``."""
        return self.labels.list(ids)

    def encode(self, X: Any) -> CSR:
        """A user's X as checked rows; features may be new."""
        self._check_fitted()
        self._check_columns(X, may_grow=True)
        return self._rows_of(X)

    def _rows_of(self, X: Any) -> CSR:
        owner = type(self).__name__
        features = read_features(X, self.n_features_in_, owner=owner)
        if not self._normalizes:
            check_size(features, owner)
        return features

    def _read_batch(self, X: Any, Y: Any, label_names: Sequence[Hashable] | None) -> tuple[CSR, CSR]:
        """X and Y of a stream, checked against each other before anything of them is kept."""
        owner, is_new = type(self).__name__, self.n_seen_ == 0
        features = self._rows_of(X)
        if not is_new:
            self._check_columns(X, may_grow=True)
        n_rows = Y.shape[0] if hasattr(Y, "shape") else len(Y) if hasattr(Y, "__len__") else features.n_rows
        if n_rows != features.n_rows:
            raise LabelwoodError(
                f"{owner}: X and Y must have the same number of rows; got {features.n_rows} and {n_rows}"
            )
        self._refuse_new_labels(Y, label_names)
        try:
            targets = read_targets(Y, label_names, self._names, owner=owner)
        finally:
            self._fit_counts()
        self.n_features_in_ = max(self.n_features_in_, features.n_cols)
        if is_new or self._feature_names is not None:
            self._name_features(column_names(X))
            self._fitted |= {"feature_names_in_"} & vars(self).keys()
        return features, targets

    def _fit_counts(self) -> None:
        """Give new labels a count of 0."""
        lacking = len(self._names) - len(self.label_counts_)
        if lacking:
            self.label_counts_ = np.pad(self.label_counts_, (0, lacking))

    def _learn_batch(self, X: CSR, Y: CSR) -> None:
        try:
            self.learn_rows(X, Y, self.n_threads)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(f"{type(self).__name__}: the first {self.rows_learned_} of {X.n_rows} rows are learned")
            raise

    @changes
    def _adopt(self, fresh: Self) -> Self:
        return super()._adopt(fresh)

    def _note_fitted(self) -> None:
        super()._note_fitted()
        self._fitted -= LOCK

    def _rename_labels(self, new: Mapping[Hashable, str]) -> None:
        for old, name in new.items():
            self._names.rename(old, name, owner=type(self).__name__)

    @reads
    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle and copy, with copies of what learning changes in place."""
        state = {name: value for name, value in super().__getstate__().items() if name not in LOCK}
        if self.__sklearn_is_fitted__():
            state["_names"] = GrowingNames(self._names)
            state["label_counts_"], state["trained_"] = self.label_counts_.copy(), dict(self.trained_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "label_counts_" in state:
            self.label_counts_ = np.array(state["label_counts_"])  # joblib may give a file that is mapped read-only

    def __copy__(self) -> Self:
        """A copy shares nothing: else learning would change both."""
        return copy.deepcopy(self)

    def _check_can_learn(self) -> None:
        self._check_fitted()
        if not self.can_learn:
            raise LabelwoodError(
                f"{type(self).__name__}: this model was frozen or saved with inference_only and cannot learn or "
                "change; use the model it was made from"
            )


lock_inherited(
    StreamLearner,
    reading=(
        "topk_ids", "predict_topk", "predict_proba", "predict", "explain", "score", "thresholds_of", "encode_labels",
        "to_saved", "coef_of", "top_features",
    ),
    changing=("calibrate", "choose_thresholds", "use_vocabulary"),
)  # fmt: skip


def learner_of(model: Model, *, owner: str) -> StreamLearner:
    """The estimator of a model that can learn; ``owner`` opens the error if it cannot."""
    classifier = model.classifier_
    if not classifier.can_learn:
        raise LabelwoodError(
            f"{owner}: this {classifier.method_name} model cannot learn; only online-tree, online-forest and "
            "living-tree models learn from a stream, unless they are frozen or saved with inference_only"
        )
    return cast(StreamLearner, classifier)
