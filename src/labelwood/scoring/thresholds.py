"""From scores to decisions: calibrated probabilities, thresholds, and weights of labels at prediction.

Ranking by probability is best for precision. Ranking by ``probability * weight`` is best where rare labels count for
more: the weight is the inverse propensity for PSP@k, the inverse frequency for averages over labels. To predict a set
of labels, the threshold is chosen for the metric by which the set is judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError, LabelwoodError
from labelwood.scoring.calibration import Calibration, Listed
from labelwood.sparse import F32, F64, I64, TopK

Objective = Literal["precision", "tail", "macro"]
Target = Literal["micro-f1", "macro-f1", "precision"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
TARGETS: tuple[Target, ...] = get_args(Target)

CANDIDATES = 50  # labels to ask for when weights or maps by depth may change their order
_FEWEST_RIGHT = 5  # a label needs this many right predictions on held-out rows for a threshold of its own
_ROUNDS = 50
_PREFIX = "decisions."
_THRESHOLDS = _PREFIX + "label_thresholds"


@dataclass(frozen=True)
class Decisions:
    """What was learnt on held-out rows about using a model's scores.

    ``threshold`` holds for all labels, except for those that have their own in ``label_thresholds``. ``strength`` is
    the power of the label weights.
    """

    calibration: Calibration | None = None
    threshold: float | None = None
    label_thresholds: F32 = field(default_factory=lambda: np.empty(0, np.float32))
    strength: float = 1.0

    def width(self, k: int, weights: F64 | None) -> int:
        """The number of labels to ask a model for, so that the best k are among them."""
        reorders = weights is not None or not (self.calibration is None or self.calibration.keeps_order)
        return max(k, CANDIDATES) if reorders else k

    def apply(self, top: TopK, k: int, weights: F64 | None) -> TopK:
        """The best k by probability, or by probability times weight, with these as scores."""
        if self.calibration is None and weights is None:
            return top
        scores = top.scores.astype(np.float64)
        if self.calibration is not None:
            scores = self.calibration.apply(top.labels, scores)
        if weights is not None:
            scores = scores * weights[np.maximum(top.labels, 0)]
        return best(top, scores, k)

    def thresholds(self, labels: npt.NDArray[Any], default: float) -> F64:
        """The threshold of each label of an array."""
        common = default if self.threshold is None else self.threshold
        own = (labels >= 0) & (labels < len(self.label_thresholds))
        found = np.full(labels.shape, common)
        found[own] = self.label_thresholds[labels[own]]
        return found

    def lowest(self, default: float) -> float:
        """The lowest threshold of any label."""
        common = default if self.threshold is None else self.threshold
        return float(min(common, self.label_thresholds.min(initial=np.inf)))

    def saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Facts and arrays; nothing if nothing was learnt."""
        facts: dict[str, Any] = {"threshold": self.threshold, "strength": self.strength}
        arrays: dict[str, npt.NDArray[Any]] = {_THRESHOLDS: self.label_thresholds}
        if self.calibration is not None:
            facts["calibration"] = self.calibration.kind
            arrays |= self.calibration.arrays()
        nothing = self.threshold is None and self.calibration is None and self.strength == 1.0
        return ({}, {}) if nothing else (facts, arrays)

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Decisions:
        """The inverse of :meth:`saved`; checks every invariant."""
        if not facts:
            return cls()
        threshold, strength, own = facts["threshold"], facts["strength"], arrays[_THRESHOLDS]
        kind = facts.get("calibration")
        numbers = [strength] if threshold is None else [strength, threshold]
        if not all(isinstance(number, int | float) and np.isfinite(number) for number in numbers):
            raise FormatError("decisions: threshold and strength must be numbers")
        if own.dtype != np.float32 or own.ndim != 1 or np.isnan(own).any():
            raise FormatError("decisions: label_thresholds must be float32, one a label")
        calibration = None if kind is None else Calibration.restore(kind, arrays)
        return cls(calibration, threshold, own, float(strength))


def is_saved_here(name: str) -> bool:
    """True if an array of a saved model belongs to its decisions."""
    return name.startswith((_PREFIX, "calibration."))


def best(top: TopK, scores: F64, k: int) -> TopK:
    """The k best labels of each list by the given scores."""
    scored = np.where(top.labels >= 0, scores, -np.inf).astype(np.float32)
    order = np.lexsort((top.labels, -scored), axis=1)[:, :k]
    labels = np.take_along_axis(top.labels, order, axis=1)
    return TopK(labels, np.where(labels >= 0, np.take_along_axis(scored, order, axis=1), np.float32(0)))


def label_weights(objective: Objective, label_counts: I64, n_rows: int, *, strength: float = 1.0) -> F64 | None:
    """The weight of each label under an objective, at most 1; None if all labels weigh the same.

    ``tail``: inverse propensities. ``macro``: the inverse of the label's count, so that all labels weigh the same in
    sum. ``strength`` is the power to which weights are raised.
    """
    if objective == "precision":
        return None
    if objective == "tail":
        from labelwood.metrics import inverse_propensities  # noqa: PLC0415 - serving does without the metrics

        weights = inverse_propensities(label_counts, n_rows)
    elif objective == "macro":
        weights = 1 / (label_counts + 1.0)
    else:
        raise LabelwoodError(f"objective must be one of {', '.join(OBJECTIVES)}; got {objective!r}")
    powered: F64 = weights**strength
    scaled: F64 = powered / powered.max(initial=1e-300)
    return scaled


def choose_thresholds(
    decisions: Decisions, listed: Listed, n_positive: I64, target: Target, *, level: float, per_label: bool
) -> Decisions:
    """The best thresholds for a target on held-out rows.

    ``micro-f1``, ``macro-f1``: the highest F1. ``precision``: the lowest thresholds at which at least a share of
    ``level`` of the predictions is right. Labels that are seldom right on the held-out rows share one threshold.
    """
    if target not in TARGETS:
        raise LabelwoodError(f"target must be one of {', '.join(TARGETS)}; got {target!r}")
    if not len(listed.rows):
        raise LabelwoodError("choose_thresholds: the model lists no label of the rows given")
    common = _of_all(listed, n_positive, target, level)
    own = _of_each(listed, n_positive, target, level, common) if per_label else np.empty(0, np.float32)
    return replace(decisions, threshold=common, label_thresholds=own)


def _of_all(listed: Listed, n_positive: I64, target: Target, level: float) -> float:
    order = np.argsort(-listed.scores, kind="stable")
    scores, right = listed.scores[order], np.cumsum(listed.hits[order])
    predicted = np.arange(1, len(scores) + 1)
    last_of_tie = np.append(np.diff(scores) != 0, True)
    if target == "micro-f1":
        value = 2 * right / (predicted + n_positive.sum())
    elif target == "precision":
        value = np.where(right >= level * predicted, predicted, 0)
    else:
        value = _macro_f1(listed.labels[order], listed.hits[order], n_positive)
    value = np.where(last_of_tie, value, -1)
    place = int(value.argmax())
    return _past(float(scores[0])) if target == "precision" and value[place] <= 0 else float(scores[place])


def _macro_f1(labels: npt.NDArray[Any], hits: npt.NDArray[np.bool_], n_positive: I64) -> F64:
    """The sum of all labels' F1 after each prediction, best first: a prediction changes the F1 of its label."""
    by_label = np.argsort(labels, kind="stable")
    first = np.append(True, np.diff(labels[by_label]) != 0)
    start = np.maximum.accumulate(np.where(first, np.arange(len(labels)), 0))
    right = np.cumsum(hits[by_label])
    right = right - (right - hits[by_label])[start]
    f1 = 2 * right / (np.arange(len(labels)) - start + 1 + n_positive[labels[by_label]])
    change = f1 - np.where(first, 0, np.append(0, f1[:-1]))
    in_order = np.empty(len(labels))
    in_order[by_label] = change
    total: F64 = np.cumsum(in_order)
    return total


def _of_each(listed: Listed, n_positive: I64, target: Target, level: float, common: float) -> F32:
    order = np.lexsort((-listed.scores, listed.labels))
    labels, scores, hits = listed.labels[order], listed.scores[order], listed.hits[order]
    starts = np.flatnonzero(np.append(True, np.diff(labels) != 0))
    sizes = np.diff(np.append(starts, len(labels)))
    right = np.cumsum(hits)
    right = right - np.repeat((right - hits)[starts], sizes)
    predicted = np.arange(len(labels)) - np.repeat(starts, sizes) + 1
    cut_here = np.append((np.diff(labels) != 0) | (np.diff(scores) != 0), True)  # not between equal scores

    def cuts(value: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The place of each label's best cut, the last of equals, and the value there."""
        shown = np.where(cut_here, value, -np.inf)
        highest = np.maximum.reduceat(shown, starts)
        at = np.where(shown == np.repeat(highest, sizes), np.arange(len(labels)), -1)
        return np.maximum.reduceat(at, starts), highest

    if target == "macro-f1":
        at, value = cuts(2 * right / (predicted + n_positive[labels]))
    elif target == "precision":
        at, value = cuts(np.where(right >= level * predicted, predicted, 0).astype(np.float64))
    else:  # micro-F1 is a quotient of sums: Dinkelbach's iteration makes it a sum over labels
        f1, at, value = 0.0, starts, np.zeros(len(starts))
        for _ in range(_ROUNDS):
            at, value = cuts(2.0 * right - f1 * predicted)
            used = value > 0
            found = 2 * right[at[used]].sum() / max(predicted[at[used]].sum() + n_positive.sum(), 1)
            if found <= f1 + 1e-9:  # type: ignore[unreachable]  # NumPy's stubs give the quotient no type
                break
            f1 = float(found)
    own = np.full(len(n_positive), common, np.float32)
    enough = np.add.reduceat(hits.astype(np.int64), starts) >= _FEWEST_RIGHT
    chosen = np.where(value > 0, scores[at], _past(float(scores.max())))
    own[labels[starts[enough]]] = chosen[enough]
    return own


def _past(score: float) -> float:
    """A threshold just above a score."""
    return float(np.nextafter(np.float32(score), np.float32(np.inf)))
