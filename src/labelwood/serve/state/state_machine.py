"""What the log does to a model: the state of the service is the fold of its records, in their order.

    {"kind": "model", "model": name}                              start from, or swap to, the model models/name
    {"kind": "learn", "examples": [...], "key", "digest"}         learn examples
    {"kind": "labels", "action", "label", "to", "key", "digest"}  rename, retire, merge or restore a label

A record that the model refuses changes nothing and is refused again, the same, whenever the log is replayed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.methods.online.learner import StreamLearner, learner_of
from labelwood.methods.online.stream_inputs import as_i32
from labelwood.methods.text_classifier import Model, estimator_of
from labelwood.serve.state.drift import Drift
from labelwood.serve.state.log import Frame, Record
from labelwood.sparse import CSR, I32, MAX_COLUMNS

Answer = dict[str, Any]
Step = Callable[[StreamLearner], object]

DRIFT_WINDOW = 1000
REMEMBERED_KEYS = 100_000


def rows_of(model: Model, examples: Sequence[Mapping[str, Any]]) -> CSR:
    """The vectors of examples, each a text or features, whichever the model takes."""
    wanted, other = ("text", "features") if model.takes == "text" else ("features", "text")
    for position, example in enumerate(examples):
        if example.get(wanted) is None:
            raise LabelwoodError(
                f"this model takes {wanted}, not {other}; example {position} has no {wanted}"
            )
    if model.takes == "text":
        return model.encode([example["text"] for example in examples])
    estimator = estimator_of(model)
    features = _vectors([example["features"] for example in examples], estimator.n_features_in_)
    return features if estimator.takes_new_features else as_i32(features, estimator.n_features_in_)


def _vectors(rows: Sequence[Mapping[str | int, float]], n_known: int) -> CSR:
    """Rows of columns and values, which the messages have checked, without a step of Python for each."""
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    count = int(indptr[-1])
    keys: Iterator[str | int] = chain.from_iterable(rows)
    if isinstance(next(chain.from_iterable(rows), None), str):  # from the log; a request has numbers
        keys = map(int, keys)
    columns = np.fromiter(keys, np.int64, count)
    values = np.fromiter(chain.from_iterable(row.values() for row in rows), np.float32, count)
    for start, stop in pairwise(indptr.tolist()):
        part = columns[start:stop]
        if (part[1:] < part[:-1]).any():
            order = part.argsort()
            columns[start:stop], values[start:stop] = part[order], values[start:stop][order]
    widest = 1 + (int(columns.max()) if count else -1)
    indices: npt.NDArray[Any] = columns.astype(np.int32) if widest <= MAX_COLUMNS else columns
    return CSR(indptr, indices, values, max(n_known, widest, 1))


def change_model(model: Model, records: Sequence[Record], drift: Drift) -> tuple[list[Answer], list[Step]]:
    """Apply the records of one frame to a model, the examples of a run of records predicted before they are learned.

    The answer of each record, and what was done: the same steps bring an equal model to the same state.
    """
    answers: list[Answer] = []
    steps: list[Step] = []
    for kind, run in groupby(records, key=lambda record: record["kind"]):
        if kind == "learn":
            answers += _learn(model, list(run), drift, steps)
        else:
            answers += [_change_label(model, one, steps) for one in run]
    return answers, steps


def _change_label(model: Model, record: Record, steps: list[Step]) -> Answer:
    action, label, to = record["action"], record["label"], record.get("to")

    def step(learner: StreamLearner) -> None:
        getattr(learner.labels, action)(*([label] if to is None else [label, to]))

    try:
        step(learner_of(model, owner="serve"))
    except LabelwoodError as error:
        return {"refused": str(error)}
    steps.append(step)
    return {"action": action, "label": label, "to": to}


def _learn(model: Model, records: list[Record], drift: Drift, steps: list[Step]) -> list[Answer]:
    """Learn several records in one call, or one by one if that is refused: the model comes out the same."""
    learner = learner_of(model, owner="serve")
    examples = [example for record in records for example in record["examples"]]
    before, labels = learner.n_labels_, [example["labels"] for example in examples]
    try:
        rows = rows_of(model, examples)
        predicted, targets = learner.test_then_learn(rows, labels, k=1, at_once=True)
    except LabelwoodError as error:
        if len(records) == 1:
            return [{"refused": str(error)}]
        return [answer for record in records for answer in _learn(model, [record], drift, steps)]
    steps.append(lambda other: other.partial_fit(rows, labels))
    n_new = _note(drift, predicted[:, 0], targets, before)
    ends = np.cumsum([len(record["examples"]) for record in records])
    return [
        {
            "learned": len(record["examples"]),
            "new_labels": int(n_new[end - len(record["examples"]) : end].sum()),
        }
        for record, end in zip(records, ends.tolist(), strict=True)
    ]


def _note(drift: Drift, predicted: I32, targets: CSR, n_known: int) -> npt.NDArray[np.int64]:
    """Tell ``drift`` of examples just learned; how many labels were new in each."""
    rows = np.repeat(np.arange(targets.n_rows), np.diff(targets.indptr))
    hits = np.zeros(targets.n_rows, bool)
    hits[rows[targets.indices == predicted[rows]]] = True
    new = np.flatnonzero(targets.indices >= n_known)
    _, first = np.unique(targets.indices[new], return_index=True)
    counts = np.bincount(rows[new[first]], minlength=targets.n_rows)
    labelled = np.diff(targets.indptr) > 0
    drift.note(hits[labelled].tolist(), counts[labelled].tolist())
    return counts


@dataclass
class Replica:
    """A model and all that the service knows besides: the fold of the log up to record ``sequence``."""

    model: Model
    sequence: int = 0
    time: int = 0
    learned: int = 0
    keys: OrderedDict[str, tuple[str, Answer]] = field(default_factory=OrderedDict)
    drift: Drift = field(default_factory=lambda: Drift(DRIFT_WINDOW))

    def apply(self, frame: Frame, load_model: Callable[[str], Model]) -> list[Answer]:
        """Apply a frame; the answer of each of its records."""
        if frame.records[0]["kind"] == "model":  # always alone in its frame
            name = frame.records[0]["model"]
            self.model, self.drift = load_model(name), Drift(self.drift.window)
            self.sequence, self.time = frame.last, frame.time
            return [{"model": name, "sequence": frame.sequence}]
        return self.apply_to(self.model, frame)[0]

    def apply_to(self, model: Model, frame: Frame) -> tuple[list[Answer], list[Step]]:
        """Apply a frame of learning to ``model``, which from now on is the model of this replica."""
        answers, steps = change_model(model, frame.records, self.drift)
        for offset, (record, answer) in enumerate(zip(frame.records, answers, strict=True)):
            answer["sequence"] = frame.sequence + offset
            self.learned += answer.get("learned", 0)
            if record.get("key") is not None:
                self._remember(record["key"], record["digest"], answer)
        self.model, self.sequence, self.time = model, frame.last, frame.time
        return answers, steps

    def _remember(self, key: str, digest: str, answer: Answer) -> None:
        self.keys[key] = (digest, answer)
        while len(self.keys) > REMEMBERED_KEYS:
            self.keys.popitem(last=False)
