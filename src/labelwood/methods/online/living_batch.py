"""The batch part of a living model: its training, its answers in the labels of the living model, its saved form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError, LabelwoodError
from labelwood.explain import Asked, Explanation
from labelwood.methods.label_tree.linear_tree import LinearTree
from labelwood.methods.online.row_store import Rows
from labelwood.methods.online.stream_inputs import as_i32
from labelwood.params import check_parameters
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, F64, I32, Arrays, TopK, label_matrix

MORE = 10  # labels asked for in place of retired and merged ones


@dataclass(frozen=True)
class Refit:
    """A training of the batch model: its number, and the number of rows seen when it began.

    Rows that were recent then and rows from ``until`` on judge the trained model.
    """

    number: int
    until: int


@dataclass(frozen=True)
class RefitResult:
    """How a refit ended: the progressive quality of the last rows with the model in use, and with the new one."""

    number: int
    rows: int
    before: float
    after: float
    judged_rows: int
    taken: bool
    reason: str = ""  # why the new model was not taken up


@dataclass(frozen=True)
class TrainingJob:
    """All that determines the batch model of a refit."""

    rows: Rows
    parameters: Mapping[str, Any]
    seed: int
    until: int


@dataclass(frozen=True)
class Batch:
    """A LinearTree over the labels of its training rows; its label j is label ``labels[j]`` of the living model.

    It was trained on ``n_rows`` of the rows before position ``until``.
    """

    tree: LinearTree
    labels: I32
    until: int
    n_rows: int

    def known(self) -> F64:
        """The number of examples of each label before ``until``, estimated if the rows are a part of all rows."""
        counts = np.zeros(int(self.labels.max(initial=-1)) + 1)
        counts[self.labels] = self.tree.label_counts_ * (self.until / self.n_rows)
        return counts

    def topk(self, X: CSR, k: int, run: RunContext, answers: I32 | None) -> TopK:
        """The k best labels of rows, in lists of exactly k.

        ``answers`` is the label that each label answers as, -1 if it is retired; None if all answer as themselves.
        """
        found = TopK(np.full((X.n_rows, k), -1, np.int32), np.zeros((X.n_rows, k), np.float32))
        own = RunContext(n_threads=run.n_threads)
        own.cancelled, own.allowed = run.cancelled, self._allowed(run.allowed, answers)
        width = own.width(min(k if answers is None else k + MORE, len(self.labels)))
        if width == 0:
            return found
        top = self.tree.topk_rows(as_i32(X, self.tree.n_features_in_), width, own)
        labels = np.where(top.labels >= 0, self.labels[top.labels], -1).astype(np.int32)
        if answers is not None:
            return answered(TopK(labels, top.scores), answers, k)
        found.labels[:, :width], found.scores[:, :width] = labels, top.scores
        return found

    def explain(self, row: CSR, k: int, asked: Asked, run: RunContext) -> Explanation:
        """Why the tree suggests labels; ``asked`` has names for the labels of the living model."""
        own = replace(asked, label_name=lambda label: asked.label_name(int(self.labels[label])))
        rows = as_i32(row, self.tree.n_features_in_)
        return self.tree.explain_one(rows, min(k, len(self.labels)), own, [], RunContext(n_threads=run.n_threads))

    def _allowed(self, allowed: I32 | None, answers: I32 | None) -> I32 | None:
        """The labels of the tree that answer as an allowed label."""
        if allowed is None:
            return None
        own = self.labels if answers is None else answers[self.labels]
        return np.flatnonzero(np.isin(own, allowed)).astype(np.int32)

    def saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Facts and arrays."""
        manifest, arrays = self.tree.to_saved()
        return {"tree": manifest, "until": self.until, "rows": self.n_rows}, {**arrays, "batch_labels": self.labels}

    @classmethod
    def restore(cls, facts: Mapping[str, Any], arrays: Arrays, n_labels: int) -> Batch:
        """The inverse of :meth:`saved`; checks every invariant."""
        own = dict(arrays)
        labels = own.pop("batch_labels")
        tree = LinearTree.from_saved(facts["tree"], own, where="the batch model")
        until, n_rows = facts["until"], facts["rows"]
        if type(until) is not int or type(n_rows) is not int or not 0 < n_rows <= until < 2**62:
            raise FormatError(f"the batch model must say how many rows it has learned; got {until!r}, {n_rows!r}")
        rises = labels.dtype == np.int32 and labels.ndim == 1 and bool((np.diff(labels) > 0).all())
        if not rises or len(labels) != tree.n_labels_ or labels[0] < 0 or labels[-1] >= n_labels:
            raise FormatError("the labels of the batch model must be labels of the living model")
        return cls(tree, labels, until, n_rows)


def train_batch(job: TrainingJob, *, n_jobs: int | None) -> Batch:
    """Train the batch model of a refit: a function of the job, whatever the number of threads."""
    rows = job.rows
    labels, local = np.unique(rows.Y.indices, return_inverse=True)
    if len(labels) == 0:
        raise LabelwoodError("LivingTree: the rows to train on have no labels")
    tree = unfitted_batch(job.parameters, n_jobs=n_jobs).set_params(random_state=job.seed)
    tree.fit(rows.X, label_matrix(rows.Y.indptr, local.astype(np.int32), len(labels)).to_scipy())
    # The time of the training is no part of the state: two trainings of the same rows give the same bytes.
    tree.trained_, tree.fit_seconds_ = {k: v for k, v in tree.trained_.items() if k != "at"}, {}
    tree.set_params(n_jobs=1)
    return Batch(tree, labels.astype(np.int32), job.until, rows.X.n_rows)


def unfitted_batch(parameters: Mapping[str, Any] | None, *, n_jobs: int | None) -> LinearTree:
    """The batch model before training."""
    try:
        tree = LinearTree(**{**(parameters or {}), "n_jobs": n_jobs})
    except TypeError as error:
        raise LabelwoodError(f"LivingTree: batch must hold parameters of LinearTree by name; {error}") from None
    check_parameters(tree)
    return tree


def answered(top: TopK, answers: I32, k: int) -> TopK:
    """The labels that labels answer as, each at its best place; lists of exactly k."""
    labels, scores = np.full((len(top.labels), k), -1, np.int32), np.zeros((len(top.labels), k), np.float32)
    named = np.where(top.labels >= 0, answers[top.labels], -1)
    for row in range(len(named)):
        _, first = np.unique(named[row], return_index=True)
        kept = np.sort(first[named[row, first] >= 0])[:k]
        labels[row, : len(kept)], scores[row, : len(kept)] = named[row, kept], top.scores[row, kept]
    return TopK(labels, scores)
