"""The documents to review: a file of texts, each with an id."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from labelwood.data import TextDataset
from labelwood.errors import LabelwoodError
from labelwood.text import Document

_ID_NAMES = ("id", "doc_id", "document_id", "uri", "url", "identifier", "key")
_DIGEST = 16  # hexadecimal digits
LONGEST_ID = 1000  # characters


@dataclass(frozen=True)
class Documents:
    """Texts and their ids. Without a column of ids, the id of a document is its row, from 1."""

    ids: Sequence[str]
    texts: Sequence[Document]

    @classmethod
    def of(cls, dataset: TextDataset, column: str | None = None) -> Documents:
        """The documents of a data set that kept its table; ``column`` names the ids, else it is recognized."""
        table, texts = dataset.table or {}, [_sound(text) for text in dataset.texts]
        if column is not None and column not in table:
            raise LabelwoodError(f"review: there is no column {column!r}; the columns are {', '.join(table) or 'none'}")
        named = column or next((name for name in table if name.strip().lower() in _ID_NAMES), None)
        if named is None:
            return cls([str(row) for row in range(1, len(texts) + 1)], texts)
        ids = [_whole(str(cell).strip()) for cell in table[named]]
        problem = _problem_of(ids)
        if problem is None:
            return cls(ids, texts)
        if column is not None:
            raise LabelwoodError(f"review: the ids in column {column!r} must be {problem}")
        return cls([str(row) for row in range(1, len(texts) + 1)], texts)

    def __len__(self) -> int:
        return len(self.ids)

    def row(self, document: str) -> int:
        """The row of a document; raise if there is none with this id."""
        found = self._rows.get(document)
        if found is None:
            raise LabelwoodError(f"review: there is no document {document[:100]!r}")
        return found

    def has(self, document: str) -> bool:
        """True if there is a document with this id."""
        return document in self._rows

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.ids)}

    def digest(self, row: int) -> str:
        """A digest of a text: a decision holds for this text only."""
        plain = json.dumps(self.texts[row], sort_keys=True).encode()
        return hashlib.sha256(plain).hexdigest()[:_DIGEST]


def _problem_of(ids: Sequence[str]) -> str | None:
    """What ids must be and are not; None if they are all good."""
    repeated = next((one for one, count in Counter(ids).items() if count > 1), None)
    if repeated is not None:
        return f"distinct; {repeated[:100]!r} stands twice"
    long = next((one for one in ids if len(one) > LONGEST_ID), None)
    return None if long is None else f"at most {LONGEST_ID} characters long; one has {len(long)}"


def parts_of(text: Document) -> list[tuple[str, str]]:
    """The parts of a text to show: its fields by name, or the whole text without a name."""
    return list(text.items()) if isinstance(text, dict) else [("", str(text))]


def _sound(text: Document) -> Document:
    return {name: _whole(part) for name, part in text.items()} if isinstance(text, dict) else _whole(str(text))


def _whole(text: str) -> str:
    """A text without half characters, which JSON lines can express and UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
