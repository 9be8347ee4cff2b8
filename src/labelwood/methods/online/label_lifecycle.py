"""The labels of a model that learns: listed, renamed, retired, merged and restored while it goes on learning."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.estimator.fitted import moved_entry
from labelwood.label_names import LabelEntry

if TYPE_CHECKING:
    from labelwood.methods.online.learner import StreamLearner


_RECORDS = ("support", "first_seen", "last_seen", "retired", "answers_as")


class Labels:
    """The labels of a model that learns from a stream, as ``model.labels``."""

    def __init__(self, model: StreamLearner) -> None:
        self._model, self._owner = model, f"{type(model).__name__}.labels"

    def list(self, ids: Sequence[int] | None = None) -> list[LabelEntry]:
        """Every label in the order of its id, or the labels of ``ids``."""
        model = self._model
        with model.reading:
            records, seen = model.label_records(), model.n_seen_
            wanted = range(model.n_labels_) if ids is None else ids
            names = model.label_names.named(wanted)
        known = np.array([label for label in wanted if label < len(records["support"])], np.int64)
        columns = (records[name][known].tolist() for name in _RECORDS)
        of_known = dict(zip(known.tolist(), zip(*columns, strict=True), strict=True))
        entries = []
        for name, label in zip(names, wanted, strict=True):
            support, first, last, retired, target = of_known.get(label, (0, -1, -1, 0, label))
            merged = target != label
            state = "merged" if merged else "retired" if retired else "active" if first >= 0 else "unseen"
            age, idle = (None, None) if first < 0 else (seen - first, seen - last - 1)
            (into,) = model.label_names.named([target]) if merged else (None,)
            entries.append(LabelEntry(name, label, state, support, age, idle, into))
        moved = model.moved_labels()
        return [moved_entry(entry, moved, model.label_names) for entry in entries] if moved else entries

    def rename(self, old: Hashable, new: Hashable) -> None:
        """Give a label another name; it keeps what was learned."""
        with self._model.changing:
            self._model.label_names.rename(old, new, owner=self._owner)

    def retire(self, name: Hashable) -> None:
        """Stop suggesting the label. Its statistics stay, and examples that have it still teach it."""
        with self._model.changing:
            label = self._id(name)
            self._set(label, retired=True, answers_as=self._target(label))

    def merge(self, source: Hashable, target: Hashable) -> None:
        """Let one label answer as another.

        From here on, examples with ``source`` count as examples of ``target``, and where the leaf of ``source`` is
        found, ``target`` is suggested: nothing learned is lost. A label is suggested once, with its better score.
        """
        with self._model.changing:
            one, other = self._id(source), self._target(self._id(target))
            if one == other:
                raise LabelwoodError(f"{self._owner}: two different labels are needed to merge; got {source!r} twice")
            for entry in self.list():  # labels merged into the source are merged into the target too
                if entry.id == one or (entry.state == "merged" and self._target(entry.id) == one):
                    self._set(entry.id, retired=False, answers_as=other)

    def restore(self, name: Hashable) -> None:
        """Undo retiring or merging."""
        with self._model.changing:
            label = self._id(name)
            self._set(label, retired=False, answers_as=label)

    def _id(self, name: Hashable) -> int:
        return self._model.label_names.id_of(name, owner=self._owner)

    def _target(self, label: int) -> int:
        targets = self._model.label_records()["answers_as"]
        return int(targets[label]) if label < len(targets) else label

    def _set(self, label: int, *, retired: bool, answers_as: int) -> None:
        self._model.set_lifecycle(label, retired=retired, answers_as=answers_as)
