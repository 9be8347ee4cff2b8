"""All of prediction: best labels, probabilities, sets of labels, explanations, and what held-out rows teach.

Every prediction goes through :meth:`Prediction.topk_ids`: it reads the rows, asks the method for its best labels
(``topk_rows``), and applies what was learnt on held-out rows (calibration, thresholds, label weights).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from labelwood import executors
from labelwood.errors import LabelwoodError, LabelwoodWarning
from labelwood.estimator.fitted import FittedModel
from labelwood.executors import Executor
from labelwood.executors.predict_shards import sharded_topk
from labelwood.explain import Asked, Explanation, places_in
from labelwood.explain.coefficients import coefficients
from labelwood.explain.label_words import with_names
from labelwood.packed.routed_forest import RoutedForest
from labelwood.run_context import RunContext
from labelwood.scoring.calibration import KINDS, Listed, choose
from labelwood.scoring.current_lists import current_lists, targets_of
from labelwood.scoring.thresholds import Decisions, Objective, Target, choose_thresholds, label_weights
from labelwood.sparse import CSR, F32, I32, TopK
from labelwood.validation.targets import check_lengths
from labelwood.vocabulary.shown_names import ShownNames

if TYPE_CHECKING:
    import scipy.sparse as sp

Kind = Literal["auto", "isotonic", "platt"]

_FIRST_CANDIDATES = 16
_LONG_LIST = 1000  # labels searched for a missed one
# Calibration and thresholds learn from this many labels of a held-out row, or more if rows have many true labels.
_LISTED = 20
_HARDLY_ANY = 0.05  # thresholds by which fewer rows than this get a label are warned of


class Prediction(FittedModel):
    """The predictions of a fitted estimator."""

    def topk_ids(
        self,
        X: Any,
        k: int,
        objective: Objective | None = None,
        executor: Executor | None = None,
        *,
        allowed: I32 | None = None,
        cancelled: threading.Event | None = None,
    ) -> TopK:
        """The k best label ids of each row of a user's X, exactly k wide.

        ``allowed`` are the ascending ids of the only labels to search. Another thread may set ``cancelled`` to end
        the search with an error.
        """
        features, k = self.encode(X), self._checked_k(k)
        moved = self.moved_labels()
        if moved:
            return self._current_topk(features, k, moved, objective, executor, allowed, cancelled)
        return self._own_topk(features, k, objective, executor, allowed, cancelled)

    def _own_topk(
        self,
        features: CSR,
        k: int,
        objective: Objective | None,
        executor: Executor | None,
        allowed: I32 | None,
        cancelled: threading.Event | None,
    ) -> TopK:
        """The k best of the labels that were learned."""
        weights = label_weights(
            self.objective if objective is None else objective,
            self.label_counts_,
            self.trained_["rows"],
            strength=self._decisions.strength,
        )
        run = self._own_run()
        run.executor, run.allowed, run.cancelled = executor, allowed, cancelled
        width = run.width(min(self._decisions.width(k, weights), self.n_labels_))
        if width == 0:
            return TopK(np.full((features.n_rows, k), -1, np.int32), np.zeros((features.n_rows, k), np.float32))
        predict = self.topk_rows if run.is_local else partial(sharded_topk, self)
        top = self._decisions.apply(predict(features, width, run), min(k, width), weights)
        lacking = k - top.labels.shape[1]
        if lacking == 0:
            return top
        right = ((0, 0), (0, lacking))
        return TopK(np.pad(top.labels, right, constant_values=-1), np.pad(top.scores, right))

    def _current_topk(self, features: CSR, k: int, moved: Mapping[int, int], *how: Any) -> TopK:
        """The k best of the labels that the vocabulary has today: wider lists, until enough labels are left."""
        width, target = min(2 * k, k + len(moved)), targets_of(moved, self.n_labels_)
        while True:
            top = self._own_topk(features, width, *how)
            found = current_lists(top, target, k)
            short = (found.labels[:, -1] < 0) & (top.labels[:, -1] >= 0)
            if width >= self.n_labels_ or not short.any():
                return found
            width = min(4 * width, self.n_labels_)

    def predict_topk(
        self,
        X: Any,
        k: int = 5,
        *,
        objective: Objective | None = None,
        executor: str | Executor | None = None,
        allowed: Iterable[Hashable] | None = None,
    ) -> tuple[npt.NDArray[Any], F32]:
        """The k best labels of each row and their scores, best first: two arrays [rows, k].

        Labels are names if the model was fitted with names, else columns of Y. Where a row has fewer than k labels
        to offer (k may exceed the number of labels), it ends in None, or -1 for columns, with a score of 0.

        ``objective`` changes what is best: ``tail`` weights labels by inverse propensity (best for PSP@k), ``macro``
        by inverse frequency; the scores are then weighted too. Best after :meth:`calibrate`. ``executor`` says where
        rows are predicted, in shards; see :meth:`fit`. ``allowed`` lists the only labels to predict: only the paths to
        them are searched, and label trees search them exactly, whatever their beam.
        """
        where = None if executor is None else executors.executor_of(executor, owner=type(self).__name__)
        ids = None if allowed is None else as_ids(map(self.id_of, allowed))
        top = self.topk_ids(X, k, objective, where, allowed=ids)
        return self._names.take(top.labels), top.scores

    def predict_proba(self, X: Any, *, k: int = 10) -> sp.csr_array[np.float32]:
        """The scores of the k best labels of each row as a sparse matrix, rows x labels; all other entries are 0.

        A score lies between 0 and 1. In a label tree it is the product of the probabilities on the path to the label,
        averaged over the trees; in a forest it is the share of the training rows in the reached leaves that have the
        label; ``rerank`` and ``Blend`` combine several. It orders the labels of a row. After :meth:`calibrate` it is a
        probability: of the labels with 0.7, about seven in ten are right. A row may have several labels, so its scores
        do not add up to 1. An ``objective`` other than ``precision`` lowers those of frequent labels.
        """
        top = self.topk_ids(X, k)
        return self._matrix(len(top.labels), *_entries(top))

    def predict(self, X: Any, *, k: int | None = None, threshold: float | None = None) -> sp.csr_array[np.float32]:
        """The predicted labels as a sparse 0/1 matrix, rows x labels.

        With ``k``: the k best labels of each row. With ``threshold``: the labels that score at least as much. With
        both: both must hold. With neither: the thresholds of :meth:`choose_thresholds`, or else 0.5.
        """
        features = self.encode(X)
        if k is None:
            cuts = self._decisions if threshold is None else Decisions()
            rows, ids = self._above(features, cuts, 0.5 if threshold is None else threshold)
        else:
            top = self.topk_ids(features, k)
            rows, ids, _ = _entries(top, None if threshold is None else top.scores >= threshold)
        return self._matrix(features.n_rows, rows, ids, np.ones(len(ids), np.float32))

    def explain(
        self,
        X: Any,
        k: int = 5,
        *,
        missed: Sequence[Hashable] = (),
        n_features: int | None = 10,
        feature_name: Callable[[int], str | None] | None = None,
    ) -> list[Explanation]:
        """Why the k best labels of each row are suggested: plain records, see :mod:`labelwood.explain`.

        ``missed`` lists labels to look for: the explanation says where each was lost, and to which labels. A step
        lists its ``n_features`` largest contributions (None: all), named by ``feature_name``, else by the columns of
        X at fit.
        """
        rows, k = self.encode(X), self._checked_k(k)
        ids, moved = [self.id_of(label) for label in missed], self.moved_labels()
        named = feature_name or self.feature_namer()
        asked = Asked(cache(lambda label: self._names.named([label])[0]), cache(named), n_features)
        run = RunContext(n_threads=self.n_threads)
        found = []
        for number in range(rows.n_rows):
            row = rows.rows(number, number + 1)
            places = places_in(self.topk_rows(row, min(_LONG_LIST, self.n_labels_), run), ids) if ids else []
            explanation = self.explain_one(row, min(k + len(moved), self.n_labels_), asked, places, run)
            if moved:
                kept = [one for one in explanation.suggestions if self.id_of(one.label) not in moved]
                explanation = replace(explanation, suggestions=tuple(kept[:k]))
            found.append(replace(self._with_probabilities(explanation), row_is_empty=not self.knows_any(row)))
        if self.vocabulary_ is None:
            return found
        names = ShownNames(self.vocabulary_)
        return [with_names(one, names.name) for one in found]

    def coef_of(self, label: Hashable) -> sp.csr_array[np.float64]:
        """The weights of a label, a sparse row 1 x features; only label trees have them.

        ``OneVsRest`` has one classifier per label, and these are its weights. In other label trees the weights on the
        path to the label are added up, then averaged over the trees. Biases are left out. The weights hold for rows as
        the classifiers see them: of unit length if ``normalize`` is true.
        """
        import scipy.sparse as sp  # noqa: PLC0415 - predict_topk does without it

        self._check_fitted()
        if not self.has_label_weights:
            raise LabelwoodError(
                f"{type(self).__name__}: a label has no weights in this method; explain(X) shows what decides. "
                "Label trees have weights: LinearTree, OneVsRest, OnlineTree, OnlineForest."
            )
        trees, label_id = self.trees(), self.id_of(label)
        assert not isinstance(trees, RoutedForest)
        columns, weights = coefficients(trees, label_id)
        return sp.csr_array((weights, columns, [0, len(columns)]), shape=(1, self.n_features_in_))

    def top_features(
        self, label: Hashable, n: int = 10, *, feature_name: Callable[[int], str | None] | None = None
    ) -> list[tuple[Any, float]]:
        """The n features that speak most for a label, largest weight of :meth:`coef_of` first, with their weights.

        A feature is named by ``feature_name``, else by the columns of X at fit, else by its column.
        """
        n, named = self._checked_k(n, "n"), feature_name or self.feature_namer()
        row = self.coef_of(label)
        order = np.argsort(-row.data, kind="stable")[:n]
        best = zip(row.indices[order].tolist(), row.data[order].tolist(), strict=True)
        shown = [(column, named(column), weight) for column, weight in best if weight > 0]
        return [(column if name is None else name, weight) for column, name, weight in shown]

    def score(self, X: Any, y: Any) -> float:
        """Precision at 1: the share of rows whose best label is right; ``y`` is what ``fit`` takes as Y."""
        from labelwood.metrics import precision_at_k  # noqa: PLC0415 - fitting and serving do without the metrics

        top, truth = self.topk_ids(X, 1), self.encode_labels(y)
        check_lengths(len(top.labels), truth.n_rows, type(self).__name__)
        return float(precision_at_k(truth, top, 1))

    def calibrate(self, X: Any, Y: Any, *, method: Kind = "auto", by_depth: bool | None = None) -> Self:
        """Turn scores into probabilities: of the labels with a score of 0.7, seven in ten shall be right.

        ``X`` and ``Y`` are rows that the model was not trained on. ``method`` is ``isotonic`` or ``platt``, one map
        for all labels or, in label trees, one per depth (``by_depth``). What is left open is chosen by log-loss on
        rows that the map did not learn from. Calibration forgets earlier thresholds and starts afresh each time.
        """
        kinds = KINDS if method == "auto" else (method,)
        if not set(kinds) <= set(KINDS):
            raise LabelwoodError(f"{type(self).__name__}: method must be auto, isotonic or platt; got {method!r}")
        features, truth = self._rows_and_truth(X, Y)
        top = self.topk_rows(features, self._listed_width(truth), self._own_run())
        return self._decide(self._calibrated(top, truth, kinds, by_depth))

    def choose_thresholds(
        self, X: Any, Y: Any, *, target: Target = "micro-f1", level: float = 0.9, per_label: bool = False
    ) -> Self:
        """Choose the score from which :meth:`predict` takes a label, on rows the model was not trained on.

        ``target`` is ``micro-f1`` or ``macro-f1``, to be maximised, or ``precision``: as many labels as possible, of
        which a share of ``level`` is right. ``per_label`` gives frequent labels thresholds of their own. A warning says
        if hardly any of the rows gets a label.
        """
        features, truth = self._rows_and_truth(X, Y)
        top = self.topk_ids(features, self._listed_width(truth), "precision")
        decisions = self._with_thresholds(top, truth, target, level=level, per_label=per_label)
        passed = (top.labels >= 0) & (top.scores >= decisions.thresholds(top.labels, 0.5))
        share = float(passed.any(axis=1).mean())
        if share < _HARDLY_ANY:
            asked = (
                f"level={level:g}: lower the level, or choose" if target == "precision" else f"target={target!r}: try"
            )
            warnings.warn(
                f"{share:.1%} of the held-out rows get a label with {asked} another target",
                LabelwoodWarning,
                stacklevel=2,
            )
        return self._decide(decisions)

    def decided(self) -> dict[str, Any]:
        """What was learnt on held-out rows, in words and numbers; empty if nothing was."""
        found: dict[str, Any] = {}
        calibration, threshold = self._decisions.calibration, self._decisions.threshold
        if calibration is not None:
            found["calibration"] = calibration.kind + (", by depth" if calibration.n_groups > 1 else "")
        if threshold is not None:
            found["threshold"] = round(threshold, 6)
            own = self._decisions.label_thresholds
            if len(own):
                found["own_thresholds"] = int((own != np.float32(threshold)).sum())
        return found

    @property
    def threshold_(self) -> float | None:
        """The score from which ``predict`` takes a label, if it was chosen on held-out rows."""
        return self._decisions.threshold

    def thresholds_of(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The score from which :meth:`predict` takes each label of an array, by the labels that it returns."""
        index = self._names.index
        ids = [index.get(label, -1) for label in labels.ravel().tolist()]
        return self._decisions.thresholds(np.array(ids, np.int64), 0.5).reshape(labels.shape)

    def _decide(self, decisions: Decisions) -> Self:
        self._decisions = decisions
        self._fitted |= {"_decisions"}
        return self

    def _calibrated(
        self, top: TopK, truth: CSR, kinds: tuple[str, ...] = KINDS, by_depth: bool | None = None
    ) -> Decisions:
        """Decisions with a map learnt from the top labels of held-out rows."""
        depths = None if by_depth is False else self._label_depths()
        if by_depth and depths is None:
            raise LabelwoodError(f"{type(self).__name__}: by_depth must be false: its labels have no depth")
        calibration, _ = choose(_listed(top, truth), depths, kinds, grouped=by_depth)
        return Decisions(calibration, strength=self._decisions.strength)

    def _with_thresholds(
        self, top: TopK, truth: CSR, target: Target, *, level: float = 0.9, per_label: bool = False
    ) -> Decisions:
        n_positive = np.bincount(truth.indices, minlength=truth.n_cols)
        return choose_thresholds(
            self._decisions, _listed(top, truth), n_positive, target, level=level, per_label=per_label
        )

    def _with_probabilities(self, explanation: Explanation) -> Explanation:
        """The explanation of a calibrated model with the probabilities of its scores."""
        calibration = self._decisions.calibration
        if calibration is None:
            return explanation
        suggestions = explanation.suggestions
        ids = np.array([self.id_of(suggestion.label) for suggestion in suggestions], np.int32)
        chances = calibration.apply(ids, np.array([suggestion.score for suggestion in suggestions])).tolist()
        told = (replace(one, probability=chance) for one, chance in zip(suggestions, chances, strict=True))
        return replace(explanation, suggestions=tuple(told))

    def _rows_and_truth(self, X: Any, Y: Any) -> tuple[CSR, CSR]:
        features, truth = self.encode(X), self.encode_labels(Y)
        check_lengths(features.n_rows, truth.n_rows, type(self).__name__)
        return features, truth

    def _listed_width(self, truth: CSR) -> int:
        """The labels of a held-out row to look at: enough for rows with many true labels."""
        most = int(np.quantile(np.diff(truth.indptr), 0.99)) if truth.n_rows else 0
        return min(max(_LISTED, 2 * most), self.n_labels_)

    def _above(self, X: CSR, cuts: Decisions, default: float) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Rows and ids of every label at or above its threshold.

        The first search asks for a few labels. Rows whose last label may have passed are searched again, wider.
        """
        rows, k, lowest = np.arange(X.n_rows), _FIRST_CANDIDATES, cuts.lowest(default)
        found_rows, found_ids = [], []
        while True:
            top = self.topk_ids(X.take(rows), k, "precision")  # thresholds are for probabilities
            done = (top.labels[:, -1] < 0) | (top.scores[:, -1] < lowest) | (k >= self.n_labels_)
            passed = top.scores >= cuts.thresholds(top.labels, default)
            part, ids, _ = _entries(top, passed & done[:, None])
            found_rows.append(rows[part])
            found_ids.append(ids)
            rows, k = rows[~done], 4 * k
            if len(rows) == 0:
                return np.concatenate(found_rows), np.concatenate(found_ids)

    def _matrix(self, n_rows: int, rows: Any, ids: Any, values: F32) -> sp.csr_array[np.float32]:
        import scipy.sparse as sp  # noqa: PLC0415 - predict_topk does without it

        matrix = sp.coo_array((values, (rows, ids)), shape=(n_rows, self.n_labels_)).tocsr()
        matrix.sort_indices()
        return matrix

    def _checked_k(self, k: Any, name: str = "k") -> int:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise LabelwoodError(f"{type(self).__name__}: {name} must be an integer, at least 1; got {k!r}")
        return int(k)


def as_ids(labels: Iterable[int]) -> I32:
    """Label ids in ascending order, each once."""
    return np.unique(np.fromiter(labels, np.int32))


def _entries(top: TopK, keep: Any = None) -> tuple[npt.NDArray[Any], npt.NDArray[Any], F32]:
    """Rows, ids and scores of the kept predictions; padding is dropped."""
    kept = top.labels >= 0 if keep is None else (top.labels >= 0) & keep
    rows, _ = np.nonzero(kept)
    return rows, top.labels[kept], top.scores[kept]


def _listed(top: TopK, truth: CSR) -> Listed:
    from labelwood.metrics.judged import judge  # noqa: PLC0415 - serving does without the metrics

    return Listed.of(top, judge(truth, top).hits)
