"""What the routes do, without HTTP: suggest, explain, learn, list and change labels, report on the service."""

from __future__ import annotations

import asyncio
import hashlib
import json
import platform
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from labelwood import __version__
from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.explain import Explanation
from labelwood.methods.text_classifier import Model, estimator_of
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
from labelwood.serve.state.records import Answer, rows_of
from labelwood.serve.state.writer import Writer
from labelwood.serve.telemetry import Metrics
from labelwood.sparse import CSR

_LONG_TEXT = 20_000  # characters; a longer text is suggested for in a thread
_SPARE_LABEL_NUMBERS = 1000

Label = str | int


class CannotLearnError(LabelwoodError):
    """The current model does not learn."""


class ModelLender(Protocol):
    """Answers which model is current: a :class:`StateMachine` or a :class:`FollowedModel`."""

    def read(self) -> AbstractContextManager[Model]:
        """Lend the current model. It does not change until the block ends."""
        ...


class Suggestion(NamedTuple):
    """A label and its score."""

    label: Label
    score: float


@dataclass
class Service:
    """The current model to read, and a writer if this process learns.

    Methods run on the event loop, or move long work to a thread.
    """

    current: ModelLender
    metrics: Metrics
    writer: Writer | None = None
    writer_elsewhere: bool = False  # another process takes records
    sets_gauges: bool = True
    closing: bool = False
    name: str = ""  # of the model, for people

    async def suggest(self, request: SuggestRequest) -> list[Suggestion]:
        """Suggest labels for one input."""
        if request.text is not None and len(request.text) > _LONG_TEXT:
            return (await asyncio.to_thread(self._suggest, [request], request))[0]
        return self._suggest([request], request)[0]

    async def suggest_batch(self, request: SuggestBatchRequest) -> list[list[Suggestion]]:
        """Suggest labels for several inputs."""
        return await asyncio.to_thread(self._suggest, request.inputs, request)

    async def explain(self, request: ExplainRequest) -> Explanation:
        """Explain why labels are suggested or missed."""
        return await asyncio.to_thread(self._explain, request)

    async def learn(self, request: LearnRequest, key: str | None) -> Answer:
        """Learn examples. The answer comes when they are on disk and suggestions reflect them."""
        writer = self._writer()
        examples = [{**_plain(one), "labels": one.labels} for one in request.examples]
        with self.current.read() as model:
            _check_examples(model, examples)
        return await _written(writer, {"kind": "learn", "examples": examples, **_keyed(key, examples)})

    async def change_label(self, request: LabelChange, key: str | None) -> Answer:
        """Change a label. The answer comes when the change is on disk and suggestions reflect it."""
        change = {"action": request.action, "label": request.label, "to": request.to}
        return await _written(self._writer(), {"kind": "labels", **change, **_keyed(key, change)})

    async def labels(self, *, start: int, limit: int, contains: str) -> LabelList:
        """List labels whose name contains a text."""
        return await asyncio.to_thread(self._labels, start, limit, contains.casefold())

    def info(self) -> ModelInfo:
        """Describe the current model and the service."""
        self.push_gauges()
        with self.current.read() as model:
            estimator = estimator_of(model)
            return ModelInfo(
                name=self.name,
                method=estimator.method_name,
                takes=model.takes,
                labels=estimator.n_labels_,
                features=estimator.n_features_in_,
                learns=self.writer is not None or self.writer_elsewhere,
                facts={"trained_at": estimator.trained_.get("at"), **estimator.describe()},
                service=self.metrics.gauges(),
            )

    def information(self) -> dict[str, dict[str, object]]:
        """What is served by which version, as labels of metrics."""
        with self.current.read() as model:
            estimator = estimator_of(model)
            facts = {
                "method": estimator.method_name,
                "takes": model.takes,
                "trained_at": estimator.trained_.get("at") or "",
                "learns": "yes" if self.writer is not None or self.writer_elsewhere else "no",
            }
        return {"build": {"version": __version__, "python": platform.python_version()}, "model": facts}

    def push_gauges(self) -> None:
        """Update the gauges of this process."""
        if not self.sets_gauges:
            return
        if self.writer is not None:
            self.metrics.set_gauges(self.writer.gauges())
            return
        with self.current.read() as model:
            self.metrics.set_gauges({"labels": estimator_of(model).n_labels_})

    def _suggest(
        self, inputs: list[Input] | list[SuggestRequest], options: SuggestRequest | SuggestBatchRequest
    ) -> list[list[Suggestion]]:
        with self.current.read() as model:
            return suggest(
                estimator_of(model),
                rows_of(model, [_plain(one) for one in inputs]),
                k=options.k,
                threshold=options.threshold,
                allowed=options.allowed,
            )

    def _explain(self, request: ExplainRequest) -> Explanation:
        with self.current.read() as model:
            row: Any = (
                [request.text]
                if model.takes == "text" and request.text is not None
                else rows_of(model, [_plain(request)])
            )
            return model.explain(row, request.k, missed=request.missed, n_features=request.n_features)[0]

    def _labels(self, start: int, limit: int, contains: str) -> LabelList:
        with self.current.read() as model:
            entries = _entries(model)
        found = [entry for entry in entries if contains in str(entry.label).casefold()]
        return LabelList(total=len(found), labels=found[start : start + limit])

    def _writer(self) -> Writer:
        if self.writer is None:
            raise CannotLearnError(
                "this model does not learn here; serve an online-tree or online-forest model that was saved whole"
            )
        return self.writer


def suggest(
    estimator: TreeEstimator, rows: CSR, *, k: int, threshold: float = 0.0, allowed: Collection[Label] | None = None
) -> list[list[Suggestion]]:
    """The k best labels of each row that score at least ``threshold`` and are in ``allowed``, best first.

    With ``allowed`` the search is repeated with more labels until k labels of each row are allowed. A beam search
    reaches some labels only, so a row may get fewer.
    """
    if allowed is None:
        return [list(row) for row in _found(estimator, rows, k, threshold)]
    permitted, width = frozenset(allowed), 4 * k
    while True:
        wide = list(_found(estimator, rows, width, threshold))
        kept = [[one for one in row if one.label in permitted][:k] for row in wide]
        enough = all(
            len(few) >= min(k, len(permitted)) or len(row) < width for few, row in zip(kept, wide, strict=True)
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
        kept = [(label, score) for label, score in zip(ids, scores, strict=True) if label >= 0 and score >= least]
        names = estimator.label_names.named([label for label, _ in kept])
        yield [Suggestion(_json_label(name), score) for name, (_, score) in zip(names, kept, strict=True)]


async def _written(writer: Writer, record: dict[str, Any]) -> Answer:
    """Hand a record to the writer and wait for the answer; raise if the model refused the record."""
    learned = await asyncio.wrap_future(writer.submit(record))
    if "refused" in learned.answer:
        raise LabelwoodError(learned.answer["refused"])
    return {**learned.answer, "replayed": learned.replayed}


def _plain(one: Input) -> dict[str, Any]:
    return {"text": one.text} if one.features is None else {"features": one.features}


def _keyed(key: str | None, contents: Any) -> dict[str, Any]:
    """The fields of a record that make a repeated request count once."""
    if key is None:
        return {}
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":")).encode()
    return {"key": key, "digest": hashlib.sha256(canonical).hexdigest()}


def _check_examples(model: Model, examples: list[dict[str, Any]]) -> None:
    """Raise if the model would refuse an example, so that it is not logged."""
    wanted, names = model.takes, model.label_names
    for position, example in enumerate(examples):
        if example.get(wanted) is None:
            raise LabelwoodError(f"this model takes {wanted}; example {position} has none")
        if names.kind == "ids" and len(names):
            bound = len(names) + _SPARE_LABEL_NUMBERS
            for label in example["labels"]:
                if not isinstance(label, int) or not 0 <= label < bound:
                    raise LabelwoodError(
                        f"the labels of this model are numbers from 0 to {bound - 1} at present; "
                        f"got {label!r} in example {position}"
                    )


def _entries(model: Model) -> list[LabelEntry]:
    return [
        LabelEntry(
            label=_json_label(entry.name),
            state=entry.state,
            support=entry.support,
            age=entry.age,
            idle=entry.idle,
            merged_into=None if entry.target is None else _json_label(entry.target),
        )
        for entry in estimator_of(model).label_entries()
    ]


def _json_label(name: Any) -> Label:
    """A label name as JSON has it: strings and integers as they are, any other name as a string."""
    return name if isinstance(name, str | int) and not isinstance(name, bool) else str(name)
