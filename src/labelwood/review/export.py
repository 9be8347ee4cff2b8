"""The reviewed documents as a file: CSV, JSON lines, or Annif's text and URIs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from labelwood.data._files import COMPRESSIONS
from labelwood.errors import LabelwoodError
from labelwood.review.documents import Documents, parts_of
from labelwood.review.labels import KnownLabels
from labelwood.review.sitting import Reviewed

Format = Literal["csv", "jsonl", "annif"]
FORMATS: tuple[Format, ...] = get_args(Format)
_SUFFIXES: dict[str, Format] = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".tsv": "annif"}
_MARKS = (";", "|", ",")  # between labels; readers take the first that occurs in the file


class Exported(NamedTuple):
    """One document, ready to be written."""

    id: str
    text: dict[str, str]
    labels: list[str]
    names: list[str]
    who: str
    when: str


def format_of(path: Path) -> Format:
    """The format that a suffix tells."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        raise LabelwoodError(f"review: {path} must not be compressed; write .csv, .jsonl or .tsv")
    found = _SUFFIXES.get(suffixes[-1] if suffixes else "")
    if found is None:
        raise LabelwoodError(f"review: the output must end in .csv, .jsonl or .tsv (Annif); got {path.name!r}")
    return found


def exported(
    documents: Documents, done: Iterable[tuple[str, Reviewed]], labels: KnownLabels, language: str = ""
) -> Iterator[Exported]:
    """The documents that are done."""
    for document, found in done:
        text = documents.texts[documents.row(document)]
        when = datetime.fromtimestamp(found.time / 1e6, UTC).isoformat(timespec="seconds")
        names = [labels.shown(label, language).name for label in found.labels]
        parts = {name or "text": content for name, content in parts_of(text)}
        yield Exported(document, parts, found.labels, names, found.who or "", when)


def as_text(rows: Iterable[Exported], format: Format) -> str:
    """The content of a file."""
    return {"csv": _as_csv, "jsonl": _as_jsonl, "annif": _as_annif}[format](list(rows))


def _as_csv(rows: list[Exported]) -> str:
    mark = next((mark for mark in _MARKS if not any(mark in label for one in rows for label in one.labels)), None)
    if mark is None:
        raise LabelwoodError(f"review: labels contain each of {' '.join(_MARKS)}; write JSON lines (.jsonl)")
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    fields = list(dict.fromkeys(name for one in rows for name in one.text)) or ["text"]
    writer.writerow(["id", *fields, "labels", "who", "when"])
    for one in rows:
        cells = [one.text.get(name, "") for name in fields]
        writer.writerow([one.id, *cells, mark.join(one.labels), one.who, one.when])
    return stream.getvalue()


def _as_jsonl(rows: list[Exported]) -> str:
    lines = (
        {"id": one.id, **one.text, "labels": one.labels, "names": one.names, "who": one.who, "when": one.when}
        for one in rows
    )
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _as_annif(rows: list[Exported]) -> str:
    """A text and its labels in ``<>`` a line; documents without labels are left out, as Annif has no such lines."""
    for one in rows:
        if bad := next((label for label in one.labels if any(sign in label for sign in "<> \t")), None):
            raise LabelwoodError(f"review: Annif's labels are URIs; {bad!r} is none: write .csv or .jsonl")
    lines = (
        f"{' '.join(' '.join(one.text.values()).split())}\t{' '.join(f'<{label}>' for label in one.labels)}\n"
        for one in rows
        if one.labels
    )
    return "".join(lines)
