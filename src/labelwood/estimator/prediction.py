"""What an estimator does with its scores: calibrate them, cut sets of labels off, weigh labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.executors import Executor, is_local
from labelwood.executors.predict_shards import sharded_topk
from labelwood.explain import Explanation
from labelwood.label_names import LabelNames
from labelwood.run_context import RunContext
from labelwood.scoring.calibration import KINDS, Listed, choose
from labelwood.scoring.thresholds import Decisions, Objective, Target, choose_thresholds, label_weights
from labelwood.sparse import CSR, F32, I32, I64, TopK
from labelwood.validation.targets import check_lengths

if TYPE_CHECKING:
    import scipy.sparse as sp

Kind = Literal["auto", "isotonic", "platt"]

_FIRST_CANDIDATES = 16
_LISTED = (
    20  # labels of a held-out row from which maps and thresholds are learnt, if it has no more true ones
)


class Deciding:
    """The part of an estimator that turns scores into probabilities and decisions."""

    n_jobs: int | None
    verbose: bool
    n_features_in_: int
    label_counts_: I64
    trained_: dict[str, Any]
    objective: Objective = "precision"
    _names: LabelNames
    _decisions: Decisions = Decisions()

    if TYPE_CHECKING:  # what the estimator has

        @property
        def n_labels_(self) -> int:
            """Number of labels."""

        def _topk(self, X: CSR, k: int, run: RunContext) -> TopK: ...

        def to_saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
            """Manifest and arrays."""

        _read_features: Callable[[Any], CSR]
        _encode_labels: Callable[[Any], CSR]
        _id_of: Callable[[Hashable], int]
        _checked_k: Callable[[Any], int]
        _n_threads: Callable[[], int]
        _note_fitted: Callable[[], None]

    def _label_depths(self) -> I32 | None:
        """The depth of each label, where labels have one."""
        return None

    def calibrate(self, X: Any, Y: Any, *, method: Kind = "auto", by_depth: bool | None = None) -> Self:
        """Make scores mean something: 0.7 is to mean that seven of ten such labels are right.

        ``X`` and ``Y`` are rows that the model was not trained on. ``method`` is ``isotonic`` or ``platt``, learnt for
        all labels together or, in label trees, ``by_depth``; what is left open is chosen by log-loss on rows the map
        was not learnt from. Thresholds chosen before are forgotten. Calibrating again starts afresh.
        """
        kinds = KINDS if method == "auto" else (method,)
        if not set(kinds) <= set(KINDS):
            raise LabelwoodError(
                f"{type(self).__name__}: method must be auto, isotonic or platt; got {method!r}"
            )
        features, truth = self._rows_and_truth(X, Y)
        top = self._topk(features, self._listed_width(truth), self._own_run())
        self._decisions = self._calibrated(top, truth, kinds, by_depth)
        self._note_fitted()
        return self

    def choose_thresholds(
        self, X: Any, Y: Any, *, target: Target = "micro-f1", level: float = 0.9, per_label: bool = False
    ) -> Self:
        """Choose from which score on :meth:`predict` takes a label, on rows the model was not trained on.

        ``target`` is ``micro-f1`` or ``macro-f1``, to be made as high as possible, or ``precision``: as many labels as
        possible of which a share of ``level`` is right. ``per_label`` gives labels seen often enough thresholds of
        their own.
        """
        features, truth = self._rows_and_truth(X, Y)
        top = self._topk_ids(features, self._listed_width(truth), "precision")
        self._decisions = self._with_thresholds(top, truth, target, level=level, per_label=per_label)
        self._note_fitted()
        return self

    def decided(self) -> dict[str, Any]:
        """What was learnt on held-out rows, in words and numbers; empty if nothing was."""
        found: dict[str, Any] = {}
        calibration = self._decisions.calibration
        if calibration is not None:
            found["calibration"] = calibration.kind + (", by depth" if calibration.n_groups > 1 else "")
        if self._decisions.threshold is not None:
            found["threshold"] = round(self._decisions.threshold, 6)
            own = self._decisions.label_thresholds
            if len(own):
                found["own_thresholds"] = int((own != np.float32(self._decisions.threshold)).sum())
        return found

    @property
    def threshold_(self) -> float | None:
        """The score from which on ``predict`` takes a label, if it was chosen on held-out rows."""
        return self._decisions.threshold

    def thresholds_of(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """From which score on :meth:`predict` takes each label of an array, names or columns as they come back."""
        index = self._names.index
        ids = [index.get(label, -1) for label in labels.ravel().tolist()]
        return self._decisions.thresholds(np.array(ids, np.int64), 0.5).reshape(labels.shape)

    def predict(
        self, X: Any, *, k: int | None = None, threshold: float | None = None
    ) -> sp.csr_array[np.float32]:
        """The predicted labels as a sparse 0/1 matrix, rows x labels.

        With ``k``: the k best of each row; with ``threshold``: those that score at least as much; with both:
        both must hold; with neither: the thresholds of :meth:`choose_thresholds`, or else one of 0.5.
        """
        features = self._read_features(X)
        if k is None:
            cuts = self._decisions if threshold is None else Decisions()
            rows, ids = self._above(features, cuts, 0.5 if threshold is None else threshold)
        else:
            top = self._topk_ids(features, k)
            rows, ids, _ = entries(top, None if threshold is None else top.scores >= threshold)
        return self._matrix(features.n_rows, rows, ids, np.ones(len(ids), np.float32))

    def _topk_ids(
        self, X: Any, k: int, objective: Objective | None = None, executor: Executor | None = None
    ) -> TopK:
        """The k best label ids of each row of a user's X, exactly k wide."""
        features, k = self._read_features(X), self._checked_k(k)
        weights = label_weights(
            self.objective if objective is None else objective,
            self.label_counts_,
            self.trained_["rows"],
            strength=self._decisions.strength,
        )
        width = min(self._decisions.width(k, weights), self.n_labels_)
        run = self._own_run()
        run.executor = executor
        predict = self._topk if is_local(run) else partial(sharded_topk, self)
        found = predict(features, width, run)
        top = self._decisions.apply(found, min(k, self.n_labels_), weights)
        lacking = k - top.labels.shape[1]
        if lacking == 0:
            return top
        right = ((0, 0), (0, lacking))
        return TopK(np.pad(top.labels, right, constant_values=-1), np.pad(top.scores, right))

    def _calibrated(
        self, top: TopK, truth: CSR, kinds: tuple[str, ...] = KINDS, by_depth: bool | None = None
    ) -> Decisions:
        """Decisions with a map learnt from the lists of held-out rows."""
        depths = None if by_depth is False else self._label_depths()
        if by_depth and depths is None:
            raise LabelwoodError(f"{type(self).__name__}: by_depth must be false: its labels have no depth")
        listed = _listed(top, truth)
        calibration, _ = choose(listed, depths, kinds, grouped=by_depth)
        return Decisions(calibration, strength=self._decisions.strength)

    def _with_thresholds(
        self, top: TopK, truth: CSR, target: Target, *, level: float = 0.9, per_label: bool = False
    ) -> Decisions:
        n_positive = np.bincount(truth.indices, minlength=truth.n_cols)
        return choose_thresholds(
            self._decisions, _listed(top, truth), n_positive, target, level=level, per_label=per_label
        )

    def _with_meaning(self, explanation: Explanation) -> Explanation:
        """The explanation of a calibrated model with what its scores mean."""
        calibration = self._decisions.calibration
        if calibration is None:
            return explanation
        suggestions = explanation.suggestions
        ids = np.array([self._id_of(suggestion.label) for suggestion in suggestions], np.int32)
        meant = calibration.apply(ids, np.array([suggestion.score for suggestion in suggestions])).tolist()
        told = (replace(one, probability=chance) for one, chance in zip(suggestions, meant, strict=True))
        return replace(explanation, suggestions=tuple(told))

    def _rows_and_truth(self, X: Any, Y: Any) -> tuple[CSR, CSR]:
        features, truth = self._read_features(X), self._encode_labels(Y)
        check_lengths(features.n_rows, truth.n_rows, type(self).__name__)
        return features, truth

    def _listed_width(self, truth: CSR) -> int:
        """How many labels of a held-out row are looked at: enough for rows with many."""
        most = int(np.quantile(np.diff(truth.indptr), 0.99)) if truth.n_rows else 0
        return min(max(_LISTED, 2 * most), self.n_labels_)

    def _own_run(self) -> RunContext:
        return RunContext(n_threads=self._n_threads(), verbose=bool(self.verbose))

    def _above(self, X: CSR, cuts: Decisions, default: float) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Rows and ids of every label at or above its threshold.

        Asks for a few labels first, and for more only in the rows where the last of those might have passed.
        """
        rows, k, lowest = np.arange(X.n_rows), _FIRST_CANDIDATES, cuts.lowest(default)
        found = []
        while True:
            top = self._topk_ids(X.take(rows), k, "precision")  # thresholds are for probabilities
            done = (top.labels[:, -1] < 0) | (top.scores[:, -1] < lowest) | (k >= self.n_labels_)
            passed = top.scores >= cuts.thresholds(top.labels, default)
            part, ids, _ = entries(top, passed & done[:, None])
            found.append((rows[part], ids))
            rows, k = rows[~done], 4 * k
            if len(rows) == 0:
                return np.concatenate([part[0] for part in found]), np.concatenate(
                    [part[1] for part in found]
                )

    def _matrix(self, n_rows: int, rows: Any, ids: Any, values: F32) -> sp.csr_array[np.float32]:
        import scipy.sparse as sp  # noqa: PLC0415 - predict_topk does without it

        matrix = sp.coo_array((values, (rows, ids)), shape=(n_rows, self.n_labels_)).tocsr()
        matrix.sort_indices()
        return matrix


def entries(top: TopK, keep: Any = None) -> tuple[npt.NDArray[Any], npt.NDArray[Any], F32]:
    """Rows, ids and scores of the kept predictions; padding is dropped."""
    kept = top.labels >= 0 if keep is None else (top.labels >= 0) & keep
    rows, _ = np.nonzero(kept)
    return rows, top.labels[kept], top.scores[kept]


def _listed(top: TopK, truth: CSR) -> Listed:
    from labelwood.metrics.judged import judge  # noqa: PLC0415 - serving does without the metrics

    return Listed.of(top, judge(truth, top).hits)
