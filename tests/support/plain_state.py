"""What the state of a learning service must be after its records, in plain Python: no log, no tree, no threads."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

SPARE = 1000


class RefusedError(Exception):
    """The service must refuse the request with status 422."""


@dataclass
class PlainLabel:
    """A label, its number of examples, and what became of it."""

    name: Any
    support: int = 0
    seen: bool = False
    retired: bool = False
    target: int | None = None  # the label that it was merged into


@dataclass
class PlainState:
    """The labels of a model, the number of the last record, and the keys of requests."""

    labels: list[PlainLabel] = field(default_factory=list)
    numbered: bool = False  # labels are the numbers 0, 1, ...
    sequence: int = 1
    learned: int = 0
    keys: dict[str, tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    records: list[Any] = field(default_factory=list)  # all that was applied, to teach another model

    def copy(self) -> PlainState:
        """A copy that shares nothing with this state."""
        return copy.deepcopy(self)

    def ask(self, kind: str, contents: Any, key: str | None) -> dict[str, Any]:
        """Apply a request and return its answer; raise if it must be refused."""
        if key is not None and key in self.keys:
            known, answer = self.keys[key]
            if known != contents:
                raise RefusedError
            if "refused" in answer:
                raise RefusedError
            return {**answer, "replayed": True}
        if kind == "learn" and self._is_out_of_range(contents):
            raise RefusedError  # before it gets a number
        self.sequence += 1
        before = copy.deepcopy((self.labels, self.numbered, self.learned))
        try:
            answer = self._learn(contents) if kind == "learn" else self._change(**contents)
        except RefusedError:
            self.labels, self.numbered, self.learned = before
            answer = {"refused": True}
        answer["sequence"] = self.sequence
        if key is not None:
            self.keys[key] = contents, answer
        if "refused" in answer:
            raise RefusedError
        self.records.append((kind, contents))
        return {**answer, "replayed": False}

    def swap(self, other: PlainState, path: Any) -> None:
        """Replace the model."""
        self.sequence += 1
        self.labels, self.numbered = copy.deepcopy(other.labels), other.numbered
        self.records.append(("model", path))

    def refit(self, result: dict[str, Any]) -> None:
        """Train the batch model again, by two records; no label changes."""
        self.sequence += 2
        self.records.append(("refit", result))

    def entries(self) -> list[dict[str, Any]]:
        """The labels as ``GET /labels`` lists them, without their ages."""
        return [
            {
                "label": label.name,
                "state": self._state(label),
                "support": label.support,
                "merged_into": None if label.target is None else self.labels[label.target].name,
            }
            for label in self.labels
        ]

    def suggestible(self) -> set[Any]:
        """The labels that may be suggested."""
        return {label.name for label in self.labels if self._state(label) == "active"}

    @staticmethod
    def _state(label: PlainLabel) -> str:
        if label.target is not None:
            return "merged"
        return "retired" if label.retired else "active" if label.seen else "unseen"

    def _find(self, name: Any) -> int:
        for number, label in enumerate(self.labels):
            if label.name == name:
                return number
        raise RefusedError

    def _is_out_of_range(self, examples: list[dict[str, Any]]) -> bool:
        if not self.numbered:
            return False
        names = [name for example in examples for name in example["labels"]]
        return any(not isinstance(name, int) or not 0 <= name < len(self.labels) + SPARE for name in names)

    def _learn(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        n_known = len(self.labels)
        if self.numbered:
            most = max((name for example in examples for name in example["labels"]), default=-1)
            self.labels += [PlainLabel(number) for number in range(n_known, most + 1)]
        new: set[int] = set()
        for example in examples:
            numbers = set()
            for name in example["labels"]:
                try:
                    numbers.add(self._find(name))
                except RefusedError:
                    self.labels.append(PlainLabel(name))
                    numbers.add(len(self.labels) - 1)
            new |= {number for number in numbers if number >= n_known}
            targets = {number if (to := self.labels[number].target) is None else to for number in numbers}
            for number in targets:
                self.labels[number].support += 1
                self.labels[number].seen = True
        self.learned += len(examples)
        return {"learned": len(examples), "new_labels": len(new)}

    def _change(self, *, action: str, label: Any, to: Any = None) -> dict[str, Any]:
        getattr(self, f"_{action}")(*([self._find(label)] if to is None else [self._find(label), to]))
        return {"action": action, "label": label, "to": to}

    def _rename(self, number: int, name: Any) -> None:
        if any(label.name == name for label in self.labels):
            raise RefusedError
        self.labels[number].name, self.numbered = name, False

    def _retire(self, number: int) -> None:
        self.labels[number].retired = True

    def _merge(self, number: int, into: Any) -> None:
        found = self._find(into)
        target = found if self.labels[found].target is None else self.labels[found].target
        if target == number:
            raise RefusedError
        for other, label in enumerate(self.labels):
            if other == number or label.target == number:
                label.retired, label.target = False, target

    def _restore(self, number: int) -> None:
        self.labels[number].retired, self.labels[number].target = False, None
