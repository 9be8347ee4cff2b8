"""A sitting: the decisions of people about documents, as the fold of a log.

    {"kind": "decide", "document", "digest", "action", "label", "who", "key", "suggested"}
    {"kind": "undo", "of": record, "who", "key"}

``action`` is accept, reject or clear, for one label, or done, for the document; ``suggested`` are the labels that were
shown when a document was done. ``digest`` is that of the text: a decision about a text that has changed since does not
count. The time of a record is that of its frame. A record counts when it is on disk, and once, whatever is sent again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple

from labelwood.errors import LabelwoodError
from labelwood.review.documents import Documents
from labelwood.run_context import logger
from labelwood.serve.state.frames import Frame, Record
from labelwood.serve.state.lock import lock_directory
from labelwood.serve.state.log import Clock, LogWriter, read_log, wall_clock
from labelwood.serve.state.writer import KeyReusedError
from labelwood.storage.atomic import create_directory

Action = Literal["accept", "reject", "clear", "done"]
_LOG = "log"


@dataclass
class Decision:
    """One record of the log: what a person did to a document, at ``time`` (microseconds since 1970)."""

    record: int
    time: int
    who: str
    document: str
    action: Action
    label: str | None = None
    suggested: Sequence[str] = ()
    undone: bool = False


class Reviewed(NamedTuple):
    """What people have said about a document: a mark for each label, and who was done with it, and when.

    ``who`` is None while nobody is done.
    """

    marks: dict[str, str]
    who: str | None = None
    time: int = 0
    suggested: Sequence[str] = ()

    @property
    def labels(self) -> list[str]:
        """The labels of the document."""
        return [label for label, mark in self.marks.items() if mark == "accept"]


class _Kept(NamedTuple):
    """What a key stands for: the contents of its request, and the record that it made or took back."""

    contents: tuple[Any, ...]
    record: int


@dataclass
class Sitting:
    """The decisions about documents, in a directory that one process writes to.

    Without ``writes``, the decisions so far are read, also beside a process that writes.
    """

    folder: Path
    documents: Documents
    clock: Clock = wall_clock
    writes: bool = True
    n_done: int = 0
    outdated: int = 0  # decisions about texts that have changed, or about documents that are gone
    in_use: Counter[str] = field(default_factory=Counter)  # the documents for which each label is accepted
    _by_document: dict[str, list[Decision]] = field(default_factory=dict)
    _by_record: dict[int, Decision] = field(default_factory=dict)
    _keys: dict[str, _Kept] = field(default_factory=dict)
    _writing: Lock = field(default_factory=Lock)
    _is_closed: bool = False

    def __post_init__(self) -> None:
        if not self.writes:
            self._replay()
            return
        create_directory(self.folder)
        self._lock = lock_directory(self.folder, busy="another labelwood review is writing here")
        try:
            self._log = LogWriter(self.folder / _LOG, clock=self.clock)
            if self._log.torn is not None:
                logger.warning("a crash left the log unfinished: %s", self._log.torn)
            self._replay()
        except BaseException:
            self._lock.release()
            raise

    def _replay(self) -> None:
        for frame in read_log(self.folder / _LOG):
            self._apply(frame)

    def decide(
        self,
        document: str,
        action: Action,
        *,
        who: str,
        key: str,
        label: str | None = None,
        suggested: Sequence[str] = (),
    ) -> Reviewed:
        """Write a decision; when the call returns, it is on disk."""
        row = self.documents.row(document)
        if (label is None) != (action == "done"):
            raise LabelwoodError("review: accept, reject and clear take a label; done takes none")
        record = {"kind": "decide", "document": document, "digest": self.documents.digest(row), "action": action,
                  "who": who, "key": key}  # fmt: skip
        self._write(record | ({"suggested": list(suggested)} if label is None else {"label": label}))
        return self.of(document)

    def undo(self, *, who: str, key: str) -> Decision | None:
        """Take back the last decision of a person; None if there is none left."""
        with self._writing:
            if self._came_before(key, ("undo", who)):
                return self._by_record.get(self._keys[key].record)
            mine = (one for one in reversed(self._by_record.values()) if one.who == who and not one.undone)
            last = next(mine, None)
            if last is not None:
                self._append({"kind": "undo", "of": last.record, "who": who, "key": key})
        return last

    def of(self, document: str) -> Reviewed:
        """What people have said about a document."""
        marks: dict[str, str] = {}
        done: Decision | None = None
        for one in self._by_document.get(document, ()):
            if one.undone:
                continue
            if one.action == "done":
                done = one
            elif one.label is not None:
                marks.pop(one.label, None)
                if one.action != "clear":
                    marks[one.label] = one.action
        return Reviewed(marks) if done is None else Reviewed(marks, done.who, done.time, done.suggested)

    def is_done(self, document: str) -> bool:
        """True if somebody is done with a document."""
        return any(one.action == "done" and not one.undone for one in self._by_document.get(document, ()))

    def done(self) -> Iterator[tuple[str, Reviewed]]:
        """The documents that are done, in the order of the file."""
        for document in self.documents.ids:
            if document in self._by_document and (found := self.of(document)).who is not None:
                yield document, found

    def close(self) -> None:
        """Close the log, and let other processes write; do nothing the second time."""
        if self.writes and not self._is_closed:
            self._is_closed = True
            self._log.close()
            self._lock.release()

    def _write(self, record: Record) -> None:
        with self._writing:
            if not self._came_before(record["key"], _contents_of(record)):
                self._append(record)

    def _came_before(self, key: str, contents: tuple[Any, ...]) -> bool:
        """True if a request with this key and these contents was written; raise if the contents were others."""
        kept = self._keys.get(key)
        if kept is not None and kept.contents != contents:
            raise KeyReusedError("review: this key came before, with other contents")
        return kept is not None

    def _append(self, record: Record) -> None:
        self._apply(self._log.append([record]))

    def _apply(self, frame: Frame) -> None:
        for number, record in enumerate(frame.records, start=frame.sequence):
            self._keys[record["key"]] = _Kept(_contents_of(record), record.get("of", number))
            if record["kind"] == "undo":
                self._take_back(self._by_record.get(record["of"]))
            elif not self._is_current(record):
                self.outdated += 1
            else:
                self._take(record, number, frame.time)

    def _is_current(self, record: Record) -> bool:
        document = record["document"]
        return self.documents.has(document) and record["digest"] == self.documents.digest(self.documents.row(document))

    def _take(self, record: dict[str, Any], number: int, time: int) -> None:
        document = record["document"]
        before, was_done = self.of(document).labels, self.is_done(document)
        one = Decision(number, time, record["who"], document, record["action"], record.get("label"),
                       record.get("suggested", ()))  # fmt: skip
        self._by_record[number] = one
        self._by_document.setdefault(document, []).append(one)
        self.n_done += one.action == "done" and not was_done
        self._count(before, self.of(document).labels)

    def _take_back(self, one: Decision | None) -> None:
        if one is None:
            return
        before = self.of(one.document).labels
        one.undone = True
        self.n_done -= one.action == "done" and not self.is_done(one.document)
        self._count(before, self.of(one.document).labels)

    def _count(self, before: Sequence[str], after: Sequence[str]) -> None:
        self.in_use.update(after)
        self.in_use.subtract(before)
        for label in before:
            if not self.in_use[label]:
                del self.in_use[label]


def _contents_of(record: Record) -> tuple[Any, ...]:
    """What a person asked for; suggestions may differ when the request is sent again."""
    if record["kind"] == "undo":
        return "undo", record["who"]
    return "decide", record["who"], record["document"], record["action"], record.get("label")
