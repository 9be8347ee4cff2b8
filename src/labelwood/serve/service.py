"""What the routes do, without HTTP: suggest, explain, learn, labels, facts, on whatever model is in view."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.explain import Explanation
from labelwood.methods.text_classifier import Model, estimator_of
from labelwood.serve.http.messages import (
    ExplainRequest,
    Input,
    LabelChange,
    LabelEntry,
    LabelList,
    LearnRequest,
    ModelInfo,
    SuggestBatchRequest,
    SuggestRequest,
)
from labelwood.serve.state.model_views import View
from labelwood.serve.state.state_machine import rows_of
from labelwood.serve.state.writer import Learned, Learner
from labelwood.serve.telemetry import Metrics
from labelwood.sparse import CSR

_ROOM_FOR_NUMBERS = 1000


class CannotLearnError(LabelwoodError):
    """The model in view does not learn."""


@dataclass
class Service:
    """A view to read from, and a learner if the model learns here."""

    view: View
    metrics: Metrics
    learner: Learner | None = None
    alarm_below: float = 0.0
    writes_elsewhere: bool = False  # another process takes what changes the model
    is_reader: bool = False  # another process sets the gauges
    closing: bool = False

    def suggest(self, request: SuggestRequest) -> list[Suggestion]:
        """The labels of one input."""
        return self._suggest([request], request)[0]

    def suggest_batch(self, request: SuggestBatchRequest) -> list[list[Suggestion]]:
        """The labels of several inputs."""
        return self._suggest(request.inputs, request)

    def _suggest(
        self, inputs: list[Input] | list[SuggestRequest], options: SuggestRequest | SuggestBatchRequest
    ) -> list[list[Suggestion]]:
        with self.view.read() as model:
            return suggest(
                estimator_of(model),
                rows_of(model, [_plain(one) for one in inputs]),
                k=options.k,
                threshold=options.threshold,
                allowed=options.allowed,
            )

    def explain(self, request: ExplainRequest) -> Explanation:
        """Why labels are suggested, or missed."""
        with self.view.read() as model:
            row: Any = (
                [request.text]
                if model.takes == "text" and request.text is not None
                else rows_of(model, [_plain(request)])
            )
            return model.explain(row, request.k, missed=request.missed, n_features=request.n_features)[0]

    def learn(self, request: LearnRequest, key: str | None) -> Future[Learned]:
        """Hand examples to the writer."""
        learner = self._writer()
        examples = [{**_plain(one), "labels": one.labels} for one in request.examples]
        with self.view.read() as model:
            _check_examples(model, examples)
        record = {"kind": "learn", "examples": examples, **_keyed(key, examples)}
        return learner.submit(record)

    def change_label(self, request: LabelChange, key: str | None) -> Future[Learned]:
        """Hand a change of a label to the writer."""
        change = {"action": request.action, "label": request.label, "to": request.to}
        return self._writer().submit({"kind": "labels", **change, **_keyed(key, change)})

    def labels(self, *, start: int, limit: int, contains: str) -> LabelList:
        """A part of the labels, those whose name contains a text."""
        with self.view.read() as model:
            entries = _entries(model)
        wanted = contains.casefold()
        found = [entry for entry in entries if wanted in str(entry.label).casefold()] if wanted else entries
        return LabelList(total=len(found), labels=found[start : start + limit])

    def info(self) -> ModelInfo:
        """What is served."""
        self.push_gauges()
        with self.view.read() as model:
            estimator = estimator_of(model)
            return ModelInfo(
                method=estimator.method_name,
                takes=model.takes,
                labels=estimator.n_labels_,
                features=estimator.n_features_in_,
                learns=self.learner is not None or self.writes_elsewhere,
                facts={"trained_at": estimator.trained_.get("at"), **estimator.describe()},
                service=self.metrics.gauges(),
            )

    def push_gauges(self) -> None:
        """Bring the gauges of this process up to date."""
        if self.is_reader:
            return
        if self.learner is None:
            with self.view.read() as model:
                self.metrics.set_gauges({"labels": estimator_of(model).n_labels_})
            return
        learner, store = self.learner, self.learner.store
        drift = store.replica.drift
        self.metrics.set_gauges(
            {
                "examples_learned": store.replica.learned,
                "labels": estimator_of(store.replica.model).n_labels_,
                "log_bytes": store.log.size,
                "log_sequence": store.replica.sequence,
                "queue_length": learner.waiting,
                "learning_refused": float(bool(learner.failed or learner.refused)),
                "snapshots_failed": learner.snapshots_failed,
                "clock_went_back": store.log.backwards,
                "drift_examples": drift.examples,
                "drift_precision_at_1": drift.precision or 0.0,
                "drift_new_label_rate": drift.new_label_rate or 0.0,
                "drift_alarm": float(drift.alarm(self.alarm_below)),
            }
        )

    def _writer(self) -> Learner:
        if self.learner is None:
            raise CannotLearnError(
                "this model does not learn here; serve an online-tree or online-forest model that was saved whole"
            )
        return self.learner


def _plain(one: Input) -> dict[str, Any]:
    return {"text": one.text} if one.features is None else {"features": one.features}


def _keyed(key: str | None, contents: Any) -> dict[str, Any]:
    if key is None:
        return {}
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":")).encode()
    return {"key": key, "digest": hashlib.sha256(canonical).hexdigest()}


def _check_examples(model: Model, examples: list[dict[str, Any]]) -> None:
    """Refuse what the model would refuse, before it is logged."""
    wanted, names = model.takes, model.label_names
    for position, example in enumerate(examples):
        if example.get(wanted) is None:
            raise LabelwoodError(f"this model takes {wanted}; example {position} has none")
        if names.kind == "ids" and len(names):
            bound = len(names) + _ROOM_FOR_NUMBERS
            for label in example["labels"]:
                if not isinstance(label, int) or not 0 <= label < bound:
                    raise LabelwoodError(
                        f"the labels of this model are numbers from 0, at present below {bound}; "
                        f"got {label!r} in example {position}"
                    )


def _entries(model: Model) -> list[LabelEntry]:
    return [
        LabelEntry(
            label=as_label(entry.name),
            state=entry.state,
            support=entry.support,
            age=entry.age,
            idle=entry.idle,
            merged_into=None if entry.target is None else as_label(entry.target),
        )
        for entry in estimator_of(model).label_entries()
    ]


Label = str | int


class Suggestion(NamedTuple):
    """A label and its score."""

    label: Label
    score: float


def suggest(
    estimator: TreeEstimator,
    rows: CSR,
    *,
    k: int,
    threshold: float = 0.0,
    allowed: Collection[Label] | None = None,
) -> list[list[Suggestion]]:
    """The k best labels of each row that score at least ``threshold`` and are among ``allowed``, best first.

    With ``allowed`` the search is asked for more and more labels until k of each row are allowed ones. A beam search
    looks at some labels only, so a row may end up with fewer.
    """
    if allowed is None:
        return [list(row) for row in _found(estimator, rows, k, threshold)]
    permitted, width = frozenset(allowed), 4 * k
    while True:
        wide = list(_found(estimator, rows, width, threshold))
        kept = [[one for one in row if one.label in permitted][:k] for row in wide]
        enough = all(
            len(few) >= min(k, len(permitted)) or len(row) < width
            for few, row in zip(kept, wide, strict=True)
        )
        if enough or width >= estimator.n_labels_:
            return kept
        width = min(4 * width, estimator.n_labels_)


def _found(estimator: TreeEstimator, rows: CSR, k: int, threshold: float) -> Iterator[list[Suggestion]]:
    if estimator.n_labels_ == 0:
        yield from ([] for _ in range(rows.n_rows))
        return
    top = estimator.topk_ids(rows, min(k, estimator.n_labels_))
    least = float(np.float32(threshold))
    for ids, scores in zip(top.labels.tolist(), top.scores.tolist(), strict=True):
        kept = [
            (label, score) for label, score in zip(ids, scores, strict=True) if label >= 0 and score >= least
        ]
        names = estimator.label_names.named([label for label, _ in kept])
        yield [Suggestion(as_label(name), score) for name, (_, score) in zip(names, kept, strict=True)]


def as_label(name: Any) -> Label:
    """A label name as JSON holds it: a string or an integer stays, anything else is spelt out."""
    return name if isinstance(name, str | int) and not isinstance(name, bool) else str(name)
