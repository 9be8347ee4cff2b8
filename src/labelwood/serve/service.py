"""What the routes do, without HTTP: suggest, explain, learn, list and change labels, report on the service."""

from __future__ import annotations

import asyncio
import hashlib
import json
import platform
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from labelwood import __version__, label_names
from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.estimator.prediction import as_ids
from labelwood.explain import Explanation
from labelwood.explain.label_words import with_names
from labelwood.label_names import LabelNames
from labelwood.methods.text_classifier import Model, TextClassifier, estimator_of
from labelwood.run_context import logger
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
from labelwood.serve.state.followed_model import FollowedModel
from labelwood.serve.state.records import Answer, check_label_numbers, inputs_of, rows_of
from labelwood.serve.state.writer import StoppedError, Writer
from labelwood.serve.telemetry import Metrics
from labelwood.sparse import CSR, I32, TopK
from labelwood.text import as_encoder
from labelwood.vocabulary import Vocabulary
from labelwood.vocabulary.shown_names import ShownNames

# A request with a longer text, more features or more labels asked for is answered in a thread.
_LONG_TEXT, _MANY_FEATURES, _LONG_LIST = 20_000, 2_000, 100
_NAMES_AT_ONCE = 10_000

Label = str | int
T = TypeVar("T")


class CannotLearnError(LabelwoodError):
    """The current model does not learn."""


class ModelLender(Protocol):
    """Answers which model is current: a :class:`StateMachine` or a :class:`FollowedModel`.

    ``reload_error`` says why the newest model of the directory is not in use; it is empty if that model is in use.
    """

    reload_error: str

    def read(self) -> AbstractContextManager[Model]:
        """Lend the current model. It does not change until the block ends."""
        ...


class Suggestion(NamedTuple):
    """A label, its score, and the name of its concept, if there is one."""

    label: Label
    score: float
    name: str | None = None


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
    vocabulary: Vocabulary | None = None  # instead of the model's
    language: str | None = None  # of names, if a request does not say
    _names: dict[str | None, tuple[Vocabulary | None, ShownNames]] = field(default_factory=dict)

    async def suggest(self, request: SuggestRequest) -> list[Suggestion]:
        """Suggest labels for one input."""
        if _is_long(request):
            return (await in_thread(partial(self._suggest, [request], request)))[0]
        return self._suggest([request], request)[0]

    async def suggest_batch(self, request: SuggestBatchRequest) -> list[list[Suggestion]]:
        """Suggest labels for several inputs."""
        return await in_thread(partial(self._suggest, request.inputs, request))

    async def explain(self, request: ExplainRequest) -> Explanation:
        """Explain why labels are suggested or missed."""
        return await asyncio.to_thread(self._explain, request)

    async def learn(self, request: LearnRequest, key: str | None) -> Answer:
        """Learn examples and texts of labels. The answer comes when they are on disk and suggestions reflect them."""
        writer = self._writer()
        examples = [{**_plain(one), "labels": one.labels} for one in request.examples]
        examples += [{"text": text, "labels": [one.label]} for one in request.label_texts for text in one.texts]
        if key is None or not writer.remembers(key):  # what was learned once counts, whatever the model takes by now
            with self.current.read() as model:
                _check_examples(model, examples)
        return await _written(writer, {"kind": "learn", "examples": examples, **_keyed(key, examples)})

    async def change_label(self, request: LabelChange, key: str | None) -> Answer:
        """Change a label. The answer comes when the change is on disk and suggestions reflect it."""
        change = {"action": request.action, "label": request.label, "to": request.to}
        return await _written(self._writer(), {"kind": "labels", **change, **_keyed(key, change)})

    async def labels(self, *, start: int, limit: int, contains: str, language: str | None = None) -> LabelList:
        """List labels that contain a text, or whose concept has a name that contains it."""
        return await asyncio.to_thread(self._labels, start, limit, contains.casefold(), language)

    def names(self, model: Model, language: str | None = None) -> ShownNames:
        """The names of labels in a language; raise if the vocabulary has no names in it."""
        vocabulary = self.vocabulary or model.vocabulary_
        wanted = self.language if language is None else language
        kept = self._names.get(wanted)
        if kept is None or kept[0] is not vocabulary:
            kept = self._names[wanted] = (vocabulary, ShownNames(vocabulary, wanted))
        return kept[1]

    def info(self) -> ModelInfo:
        """Describe the current model and the service."""
        self.push_gauges()
        with self.current.read() as model:
            estimator, vocabulary = estimator_of(model), self.vocabulary or model.vocabulary_
            languages = [] if vocabulary is None else [tag for tag in vocabulary.name_languages if tag]
            return ModelInfo(
                name=self.name,
                method=estimator.method_name,
                takes=model.takes,
                vector=model.vector_width,
                fields=list(model.field_names) if isinstance(model, TextClassifier) else [],
                labels=estimator.n_labels_,
                features=estimator.n_features_in_,
                learns=self.writer is not None or self.writer_elsewhere,
                languages=languages,
                language=self.language or next(iter(languages), ""),
                facts={"trained_at": estimator.trained_.get("at"), **estimator.describe()},
                service=self.metrics.gauges(),
            )

    def learning_trouble(self) -> str:
        """Why learning is refused at the moment; empty if it is not."""
        if self.writer is not None:
            return self.writer.trouble
        refused = self.writer_elsewhere and self.metrics.gauges()["learning_refused"]
        return "the writer process refuses records; its log says why" if refused else ""

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

    def reload(self, model: Path) -> None:
        """Take up the model at a path if the current model began from another. A followed model needs no call."""
        if self.writer is None:
            return
        try:
            self.writer.swap(model)
        except StoppedError as error:
            logger.warning("the model in use is kept: %s", error)

    @property
    def reload_error(self) -> str:
        """Why the newest model of the directory is not in use; empty if it is."""
        if not self.current.reload_error and self.writer_elsewhere and self.metrics.gauges()["reload_failed"]:
            return "the process that learns could not take up the newest model; its log says why"
        return self.current.reload_error

    def close(self) -> None:
        """Learn what is waiting, or stop following the model. No thread holds the model afterwards."""
        if self.writer is not None:
            self.writer.close()
        if isinstance(self.current, FollowedModel):
            self.current.close()

    def push_gauges(self) -> None:
        """Update the gauges of this process."""
        if not self.sets_gauges:
            return
        if self.writer is not None:
            self.metrics.set_gauges(self.writer.gauges())
            return
        with self.current.read() as model:
            labels = estimator_of(model).n_labels_
        self.metrics.set_gauges({"labels": labels, "reload_failed": float(bool(self.reload_error))})

    def _suggest(
        self,
        inputs: list[Input] | list[SuggestRequest],
        options: SuggestRequest | SuggestBatchRequest,
        cancelled: threading.Event | None = None,
    ) -> list[list[Suggestion]]:
        with self.current.read() as model:
            return suggest(
                estimator_of(model),
                rows_of(model, [_plain(one) for one in inputs]),
                k=options.k,
                threshold=options.threshold,
                allowed=options.allowed,
                cancelled=cancelled,
                names=self.names(model, options.language),
            )

    def _explain(self, request: ExplainRequest) -> Explanation:
        with self.current.read() as model:
            found = model.explain(
                inputs_of(model, [_plain(request)]), request.k, missed=request.missed, n_features=request.n_features
            )[0]
            return with_names(found, self.names(model, request.language).name)

    def _labels(self, start: int, limit: int, contains: str, language: str | None) -> LabelList:
        with self.current.read() as model:
            estimator, names = estimator_of(model), self.names(model, language)
            found: Sequence[int] = range(estimator.n_labels_)
            if contains:
                found = _containing(estimator.label_names, contains, self.vocabulary or model.vocabulary_)
            entries = estimator.label_entries(found[start : start + limit])
            return LabelList(total=len(found), labels=[_as_message(entry, names) for entry in entries])

    def _writer(self) -> Writer:
        if self.writer is None:
            raise CannotLearnError(
                "this model does not learn here; "
                "serve a living-tree, online-tree or online-forest model that was saved whole"
            )
        return self.writer


def suggest(
    estimator: TreeEstimator,
    rows: CSR,
    *,
    k: int,
    threshold: float = 0.0,
    allowed: Collection[Label] | None = None,
    cancelled: threading.Event | None = None,
    names: ShownNames | None = None,
) -> list[list[Suggestion]]:
    """The k best labels of each row that score at least ``threshold`` and are in ``allowed``, best first.

    Labels in ``allowed`` that the model does not know are skipped. Another thread may set ``cancelled`` to end the
    search with an error.
    """
    if estimator.n_labels_ == 0:
        return [[] for _ in range(rows.n_rows)]
    ids = None if allowed is None else _known_ids(estimator, allowed)
    top = estimator.topk_ids(rows, min(k, estimator.n_labels_), allowed=ids, cancelled=cancelled)
    return list(_named(estimator, top, threshold, names or ShownNames(None), cancelled))


def _known_ids(estimator: TreeEstimator, labels: Collection[Label]) -> I32:
    """The ids of the labels that the model knows."""
    names = estimator.label_names
    if names.kind == "ids":
        return as_ids(label for label in labels if isinstance(label, int) and 0 <= label < len(names))
    found = (names.index.get(label) for label in labels)
    return as_ids(label for label in found if label is not None)


def _named(
    estimator: TreeEstimator, top: TopK, threshold: float, shown: ShownNames, cancelled: threading.Event | None
) -> Iterator[list[Suggestion]]:
    least = float(np.float32(threshold))
    for ids, scores in zip(top.labels, top.scores, strict=True):
        if cancelled is not None and cancelled.is_set():
            raise LabelwoodError("the prediction was cancelled")
        scored = zip(ids.tolist(), scores.tolist(), strict=True)
        kept = [(label, score) for label, score in scored if label >= 0 and score >= least]
        names = estimator.label_names.named([label for label, _ in kept])
        pairs = zip(names, kept, strict=True)
        if not shown:
            yield [Suggestion(_json_label(name), score) for name, (_, score) in pairs]
        else:
            yield [Suggestion(_json_label(name), score, shown.name(name)) for name, (_, score) in pairs]


def _is_long(request: SuggestRequest) -> bool:
    """True if a request may take longer than handing it to a thread and back."""
    texts = request.text.values() if isinstance(request.text, dict) else (request.text or "",)
    n_numbers = len(request.features or ()) + len(request.vector or ())
    size = sum(map(len, texts)) / _LONG_TEXT + n_numbers / _MANY_FEATURES
    return size > 1 or request.allowed is not None or request.k > _LONG_LIST


async def in_thread(work: Callable[[threading.Event], T]) -> T:
    """Work in a thread. If the request is cancelled, by its time limit or its client, the event is set."""
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(work, cancelled)
    finally:
        cancelled.set()


async def _written(writer: Writer, record: dict[str, Any]) -> Answer:
    """Hand a record to the writer and wait for the answer; raise if the model refused the record."""
    learned = await asyncio.wrap_future(writer.submit(record))
    if "refused" in learned.answer:
        raise LabelwoodError(learned.answer["refused"])
    return {**learned.answer, "replayed": learned.replayed}


def _plain(one: Input) -> dict[str, Any]:
    if one.features is not None:
        return {"features": one.features}
    return {"text": one.text} if one.vector is None else {"text": one.text, "vector": one.vector}


def _keyed(key: str | None, contents: Any) -> dict[str, Any]:
    """The fields of a record that make a repeated request count once."""
    if key is None:
        return {}
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":")).encode()
    return {"key": key, "digest": hashlib.sha256(canonical).hexdigest()}


def _check_examples(model: Model, examples: list[dict[str, Any]]) -> None:
    """Raise if the model would refuse an example, so that it is not logged."""
    found = inputs_of(model, examples)
    if isinstance(model, TextClassifier):
        as_encoder(model.encoder_).check_texts(found)
    check_label_numbers(model, examples)


def _containing(names: LabelNames, part: str, vocabulary: Vocabulary | None) -> list[int]:
    """The ids of the labels that contain a text, in lower case, or whose preferred name in any language does."""
    found: list[int] = []
    for start in range(0, len(names), _NAMES_AT_ONCE):
        some = range(start, min(start + _NAMES_AT_ONCE, len(names)))
        found += [label for label, name in zip(some, names.named(some), strict=True) if part in str(name).casefold()]
    if vocabulary is None:
        return found
    concepts = {concept for name, concept in vocabulary.by_name.items() if concept >= 0 and part in name}
    labels = (names.index.get(uri) for uri in vocabulary.uris_of(sorted(concepts)))
    return sorted({*found, *(label for label in labels if label is not None)})


def _as_message(entry: label_names.LabelEntry, names: ShownNames) -> LabelEntry:
    return LabelEntry(
        label=_json_label(entry.name),
        **({"name": names.name(entry.name)} if names else {}),
        state=entry.state,
        support=entry.support,
        age=entry.age,
        idle=entry.idle,
        merged_into=None if entry.target is None else _json_label(entry.target),
    )


def _json_label(name: Any) -> Label:
    """A label name as JSON has it: strings and integers as they are, any other name as a string."""
    return name if isinstance(name, str | int) and not isinstance(name, bool) else str(name)
