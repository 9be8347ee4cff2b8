"""What a record of the log does to a model.

    {"kind": "model", "model": name, "fingerprint"}               replace the model by models/name
    {"kind": "learn", "examples": [...], "key", "digest"}         learn examples
    {"kind": "labels", "action", "label", "to", "key", "digest"}  rename, retire, merge or restore a label

Label names in logs of earlier versions may break the rule for names; they are escaped as in models of these versions.
A record that the model refuses changes nothing. Every replay refuses it again with the same answer. The state machine
applies records of kind "model" itself; this module applies the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.label_names import readable
from labelwood.methods.online.learner import StreamLearner, learner_of
from labelwood.methods.online.stream_inputs import as_i32
from labelwood.methods.text_classifier import Model, estimator_of
from labelwood.serve.state.drift import Drift
from labelwood.serve.state.frames import Record
from labelwood.sparse import CSR, I32, MAX_COLUMNS
from labelwood.validation.embedded import Embedded

Answer = dict[str, Any]
Step = Callable[[StreamLearner], object]

SPARE_LABEL_NUMBERS = 1000
# Version 1 of the log did not hold a record to the number of labels that the model has when the record is applied.
# Only numbers that no machine could make room for are refused there.
SPARE_IN_VERSION_1 = 2**26


def apply_records(
    model: Model, records: Sequence[Record], drift: Drift, *, spare: int = SPARE_LABEL_NUMBERS
) -> tuple[list[Answer], list[Step]]:
    """Apply records in their order; return the answer to each record, and the steps that changed the model.

    The same steps bring an equal copy of the model to the same state. Examples are predicted for ``drift`` before they
    are learned; consecutive records of kind "learn" are predicted and learned together. ``spare``: see
    :func:`check_label_numbers`.
    """
    answers: list[Answer] = []
    steps: list[Step] = []
    for kind, run in groupby(records, key=lambda record: record["kind"]):
        if kind == "learn":
            answers += _learn(model, list(run), drift, steps, spare)
        else:
            answers += [_change_label(model, one, steps) for one in run]
    return answers, steps


def check_label_numbers(
    model: Model, examples: Sequence[Mapping[str, Any]], *, spare: int = SPARE_LABEL_NUMBERS
) -> None:
    """Raise if a label of a model whose labels are numbers is ``spare`` or more above the largest known number.

    The model makes room for all labels below a number, so one large number would take all memory.
    """
    names = model.label_names
    if names.kind != "ids" or not len(names):
        return
    bound = len(names) + spare
    for position, example in enumerate(examples):
        for label in example["labels"]:
            if not isinstance(label, int) or not 0 <= label < bound:
                raise LabelwoodError(
                    f"the labels of this model are numbers from 0 to {bound - 1} at present; "
                    f"got {label!r} in example {position}"
                )


def rows_of(model: Model, inputs: Sequence[Mapping[str, Any]]) -> CSR:
    """The feature rows of inputs. Each input must hold what the model takes."""
    found = inputs_of(model, inputs)
    return found if isinstance(found, CSR) else model.encode(found)


def inputs_of(model: Model, inputs: Sequence[Mapping[str, Any]]) -> Any:
    """What the model takes of inputs: a list of texts, texts with vectors (Embedded), or rows of features (CSR)."""
    wanted, other = ("text", "features") if model.takes == "text" else ("features", "text")
    for position, one in enumerate(inputs):
        if one.get(wanted) is None:
            raise LabelwoodError(f"this model takes {wanted}, not {other}; example {position} has no {wanted}")
    if model.takes == "text":
        texts = [one["text"] for one in inputs]
        return Embedded(texts, _vectors(model, inputs)) if _have_vectors(model, inputs) else texts
    estimator = estimator_of(model)
    features = _feature_rows([one["features"] for one in inputs], estimator.n_features_in_)
    return features if estimator.takes_new_features else as_i32(features, estimator.n_features_in_)


def _have_vectors(model: Model, inputs: Sequence[Mapping[str, Any]]) -> bool:
    return bool(model.vector_width) or any(one.get("vector") is not None for one in inputs)


def _vectors(model: Model, inputs: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.float32]:
    """The vectors of inputs, each of the width that the model takes."""
    width = model.vector_width
    for position, one in enumerate(inputs):
        given = one.get("vector")
        if not width and given is not None:
            raise LabelwoodError(f"this model takes texts without vectors; example {position} has a vector")
        if given is None or len(given) != width:
            got = "none" if given is None else f"one of {len(given)}"
            raise LabelwoodError(
                f"this model takes a vector of {width} numbers beside each text; example {position} has {got}"
            )
    return np.array([one["vector"] for one in inputs], np.float32)


def _feature_rows(rows: Sequence[Mapping[str | int, float]], n_known: int) -> CSR:
    """Rows of columns and values that ``messages`` has validated.

    ``stream_inputs.read_features`` reads the same rows and validates them, which takes several times as long.
    """
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    count = int(indptr[-1])
    keys: Iterator[str | int] = chain.from_iterable(rows)
    if isinstance(next(chain.from_iterable(rows), None), str):  # columns are strings in the log, integers in a request
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


def _change_label(model: Model, record: Record, steps: list[Step]) -> Answer:
    action, label, to = record["action"], readable(record["label"]), readable(record.get("to"))

    def step(learner: StreamLearner) -> None:
        getattr(learner.labels, action)(*([label] if to is None else [label, to]))

    try:
        step(learner_of(model, owner="serve"))
    except LabelwoodError as error:
        return {"refused": str(error)}
    steps.append(step)
    return {"action": action, "label": label, "to": to}


def _learn(model: Model, records: list[Record], drift: Drift, steps: list[Step], spare: int) -> list[Answer]:
    """Learn several records in one call. If one of them is refused, learn them one by one: the result is the same."""
    learner = learner_of(model, owner="serve")
    examples = [example for record in records for example in record["examples"]]
    n_known, labels = learner.n_labels_, [list(map(readable, example["labels"])) for example in examples]
    try:
        check_label_numbers(model, examples, spare=spare)
        rows = rows_of(model, examples)
        predicted, targets = learner.test_then_learn(rows, labels, k=1, at_once=True)
    except LabelwoodError as error:
        if len(records) == 1:
            return [{"refused": str(error)}]
        return [answer for record in records for answer in _learn(model, [record], drift, steps, spare)]
    steps.append(lambda other: other.partial_fit(rows, labels))
    n_new = _note_drift(drift, predicted[:, 0], targets, n_known)
    ends = np.cumsum([len(record["examples"]) for record in records])
    return [
        {"learned": len(record["examples"]), "new_labels": int(n_new[end - len(record["examples"]) : end].sum())}
        for record, end in zip(records, ends.tolist(), strict=True)
    ]


def _note_drift(drift: Drift, predicted: I32, targets: CSR, n_known: int) -> npt.NDArray[np.int64]:
    """Report learned examples to ``drift``; return the number of new labels of each example."""
    rows = np.repeat(np.arange(targets.n_rows), np.diff(targets.indptr))
    hits = np.zeros(targets.n_rows, bool)
    hits[rows[targets.indices == predicted[rows]]] = True
    new = np.flatnonzero(targets.indices >= n_known)
    _, first = np.unique(targets.indices[new], return_index=True)
    counts = np.bincount(rows[new[first]], minlength=targets.n_rows)
    labelled = np.diff(targets.indptr) > 0
    drift.note(hits[labelled].tolist(), counts[labelled].tolist())
    return counts
