"""Labels as living things: listed, renamed, retired, merged and restored while the model goes on learning."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from labelwood.errors import LabelwoodError

if TYPE_CHECKING:
    from labelwood.methods.online.online_tree import OnlineTree

_OWNER = "OnlineTree.labels"


class LabelEntry(NamedTuple):
    """What is known of a label.

    ``support`` is the number of examples seen with it, ``age`` how many examples ago the first of them was,
    ``idle`` how many ago the last. ``state`` is ``active``, ``retired``, ``merged`` (into ``target``) or ``unseen``.
    """

    name: Any
    id: int
    state: str
    support: int
    age: int | None
    idle: int | None
    target: Any = None


class Labels:
    """The labels of a growing :class:`OnlineTree`, as ``model.labels``."""

    def __init__(self, model: OnlineTree) -> None:
        self._model = model

    def list(self) -> list[LabelEntry]:
        """Every label in the order of its id."""
        model = self._model
        records, seen = model._records(), model.n_seen_
        columns = [
            records[name].tolist() for name in ("support", "first_seen", "last_seen", "retired", "answers_as")
        ]
        entries, names = [], model._names.array.tolist()
        for label, name in enumerate(names):
            support, first, last, retired, target = (
                (column[label] for column in columns) if label < len(columns[0]) else (0, -1, -1, 0, label)
            )
            merged = target != label
            state = "merged" if merged else "retired" if retired else "active" if first >= 0 else "unseen"
            age, idle = (None, None) if first < 0 else (seen - first, seen - last - 1)
            entries.append(
                LabelEntry(name, label, state, support, age, idle, names[target] if merged else None)
            )
        return entries

    def rename(self, old: Hashable, new: Hashable) -> None:
        """Give a label another name; what it has learned stays."""
        self._model._names.rename(old, new, owner=_OWNER)

    def retire(self, name: Hashable) -> None:
        """Never suggest the label again. Its statistics stay, and examples that carry it go on teaching it."""
        label = self._id(name)
        self._set(label, retired=True, answers_as=self._target(label))

    def merge(self, source: Hashable, target: Hashable) -> None:
        """Let one label answer as another.

        From now on examples with ``source`` count as examples of ``target``, and where the leaf of ``source`` would be
        suggested, ``target`` is: nothing learned is lost. A label is still suggested once, with the better score.
        """
        one, other = self._id(source), self._target(self._id(target))
        if one == other:
            raise LabelwoodError(f"{_OWNER}: two different labels are needed to merge; got {source!r} twice")
        for entry in self.list():  # labels merged into the source follow it
            if entry.id == one or (entry.state == "merged" and self._target(entry.id) == one):
                self._set(entry.id, retired=False, answers_as=other)

    def restore(self, name: Hashable) -> None:
        """Undo retiring or merging."""
        label = self._id(name)
        self._set(label, retired=False, answers_as=label)

    def _id(self, name: Hashable) -> int:
        return self._model._names.id_of(name, owner=_OWNER)

    def _target(self, label: int) -> int:
        targets = self._model._records()["answers_as"]
        return int(targets[label]) if label < len(targets) else label

    def _set(self, label: int, *, retired: bool, answers_as: int) -> None:
        self._model._growing_tree().set_lifecycle(label, retired, answers_as)
