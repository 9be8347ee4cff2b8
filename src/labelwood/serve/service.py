"""What the routes do, without HTTP: suggest, explain, learn, labels, facts, on whatever model is in view."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from labelwood.errors import LabelwoodError
from labelwood.explain import Explanation
from labelwood.methods.online_tree import OnlineTree
from labelwood.methods.text_classifier import Model, TextClassifier, estimator_of
from labelwood.serve.learner import Learned, Learner
from labelwood.serve.messages import (
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
from labelwood.serve.metrics import Metrics
from labelwood.serve.replica import rows_of
from labelwood.serve.suggest import Suggestion, as_label, suggest
from labelwood.serve.views import View

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
                if isinstance(model, TextClassifier) and request.text is not None
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
                takes="text" if isinstance(model, TextClassifier) else "features",
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
                "this model does not learn here; serve an online-tree model that was saved whole"
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
    wanted = "text" if isinstance(model, TextClassifier) else "features"
    names = estimator_of(model)._names
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
    estimator = estimator_of(model)
    if isinstance(estimator, OnlineTree):
        return [
            LabelEntry(
                label=as_label(entry.name),
                state=entry.state,
                support=entry.support,
                age=entry.age,
                idle=entry.idle,
                merged_into=None if entry.target is None else as_label(entry.target),
            )
            for entry in estimator.labels.list()
        ]
    counts = estimator.label_counts_.tolist()
    return [
        LabelEntry(label=as_label(name), state="active", support=count)
        for name, count in zip(estimator.classes_.tolist(), counts, strict=True)
    ]
