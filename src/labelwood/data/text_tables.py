"""Read tables of texts: CSV, TSV, JSON lines, Parquet; find the columns of the text and of the labels."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from labelwood.data._files import check_claim, reading
from labelwood.errors import FormatError, LabelwoodError, LabelwoodWarning, nearest
from labelwood.progress import watched

# Column names that stand for the text and for the labels, compared without case.
_TEXT_NAMES = ("text", "title", "headline", "abstract", "summary", "description", "body", "content", "document")
_LABEL_NAMES = (
    "labels", "label", "tags", "tag", "subjects", "subject", "subject_uris", "topics", "topic",
    "categories", "category", "keywords", "classes", "class",
)  # fmt: skip
_SEPARATORS = (";", "|", ",")  # tried in this order
_URIS = re.compile(r"\s*<[^<>\s]+>(\s+<[^<>\s]+>)*\s*")
_SHOWN_COLUMNS = 12
_NAME_LIMIT = 40
_BYTES_PER_ROW = 64  # the least that a text and its list of labels take in memory

Table = dict[str, list[Any]]  # the cells of a table by column
Text = str | dict[str, str]  # of a row: one string, or the strings of its fields


class Documents(NamedTuple):
    """What is read from a file: texts, the labels of each, and with ``keep_table`` the cells of all columns.

    ``splits`` says that cells of labels are strings, which a separator divides.
    """

    texts: list[Text]
    labels: list[list[str]] | None
    table: Table | None = None
    splits: bool = False


@dataclass(frozen=True)
class Columns:
    """Names of the columns of the text and of the labels, and the separator between two labels.

    None where they are recognized by the file. With ``fields``, the columns of the text are fields: they stay apart.
    """

    text: tuple[str, ...] | None = None
    labels: str | None = None
    sep: str | None = None
    fields: bool = False

    def or_else(self, other: Columns) -> Columns:
        """These columns, and those of ``other`` where these are None."""
        fields = self.fields or (self.text is None and other.fields)
        return Columns(self.text or other.text, self.labels or other.labels, self.sep or other.sep, fields)

    def saved(self) -> dict[str, Any]:
        """The names that are not None, for a manifest."""
        text = {} if self.text is None else {"text": list(self.text)}
        return text | {name: getattr(self, name) for name in ("labels", "sep") if getattr(self, name) is not None}

    @classmethod
    def restore(cls, saved: Any) -> Columns:
        """The columns that a manifest describes; raises a FormatError if it is malformed."""
        named = dict(saved) if isinstance(saved, dict) else {"": ""}
        text = named.pop("text", None)
        names = [*named.values(), *(text if isinstance(text, list) else ())]
        is_sound = (text is None or (isinstance(text, list) and text)) and named.keys() <= {"labels", "sep"}
        if not is_sound or not all(isinstance(name, str) and name for name in names):
            raise FormatError(f"columns must be an object of names with the keys text, labels and sep; got {saved!r}")
        return cls(None if text is None else tuple(text), named.get("labels"), named.get("sep"))


@dataclass(frozen=True)
class Wanted:
    """The columns that the caller named, None where they are to be recognized, and what else is to be read."""

    text: Sequence[str] | None = None
    labels: str | None = None
    sep: str | None = None
    needs_labels: bool = True
    max_memory: int | None = None
    keep_table: bool = False
    fields: bool = False

    def text_of(self, names: Sequence[str], values: Sequence[str | None]) -> Text:
        """The text of a row: its columns joined, or apart as fields; None where a row lacks a column."""
        if self.fields:
            return {name: value for name, value in zip(names, values, strict=True) if value is not None}
        return _joined([value or "" for value in values])

    def columns(self, names: Sequence[str], where: str, *, may_lack: bool = False) -> tuple[list[str], str | None]:
        """Choose the columns of the text and of the labels among the columns of a file.

        A record may lack fields, but not all of them; ``names`` are then those of the first record.
        """
        text = self.text or ()
        if may_lack and any(name in names for name in text):
            text = [name for name in text if name in names]
        for name in [*text, *([self.labels] if self.labels and self.needs_labels else ())]:
            if name not in names:
                raise FormatError(
                    f"{where}: there is no column {name!r}{nearest(name, names)}; the columns are {_shown(names)}. "
                    "Choose with --text and --labels."
                )
        labels = self.labels or next(iter(_known(names, _LABEL_NAMES)), None)
        if labels is None and self.needs_labels:
            raise FormatError(
                f"{where}: cannot tell which column holds the labels; the columns are {_shown(names)}. "
                "Pass --labels NAME."
            )
        text = list(self.text or [name for name in names if name in _known(names, _TEXT_NAMES) and name != labels])
        if not text:
            raise FormatError(
                f"{where}: cannot tell which column holds the text; the columns are {_shown(names)}. "
                "Pass --text NAME,NAME."
            )
        return text, labels if self.needs_labels else None


def looks_like_header(line: str, delimiter: str) -> bool:
    """True if a line names columns, one of which stands for the text."""
    cells = [cell.strip().strip('"') for cell in line.split(delimiter)]
    return len(cells) > 1 and bool(_known(cells, _TEXT_NAMES))


def read_delimited(content: str, where: str, wanted: Wanted, *, delimiter: str | None) -> Documents:
    """Read a CSV or TSV file whose first line names the columns."""
    if not content.strip():
        raise FormatError(f"{where}: the file is empty")
    csv.field_size_limit(2**31 - 1)
    delimiter = delimiter or delimiter_of(content)
    stream = io.StringIO(content, newline="")
    reader = csv.reader(stream, delimiter=delimiter)
    names = [name.strip() for name in next(reader, [])]
    if len(set(names)) != len(names):
        raise FormatError(f"{where}: the first line must name every column once; it has {_shown(names)}")
    text, labels = wanted.columns(names, where)
    places, label_place = ([names.index(name) for name in text], None if labels is None else names.index(labels))
    texts: list[Text] = []
    cells: list[Any] = []
    kept: list[list[str]] = []
    try:
        for row in watched(reader, "read table", len(content), lambda _: stream.tell()):
            if not row:
                continue
            if len(row) != len(names):
                raise FormatError(
                    f"{where}, line {reader.line_num}: {len(row)} cells, but the first line names {len(names)}; "
                    f'a cell that contains {delimiter!r} or a line break must be in "quotes"'
                )
            texts.append(wanted.text_of(text, [row[place] for place in places]))
            if label_place is not None:
                cells.append(row[label_place])
            if wanted.keep_table:
                kept.append(row)
    except csv.Error as error:
        raise FormatError(f"{where}, line {reader.line_num}: {error}") from None
    table = {name: [row[place] for row in kept] for place, name in enumerate(names)} if wanted.keep_table else None
    return Documents(texts, None if label_place is None else split_labels(cells, wanted.sep, where), table, True)


def delimiter_of(content: str) -> str:
    """The delimiter of a CSV file: the mark that its first line has most often."""
    return max(",;\t", key=content.partition("\n")[0].count)


def read_json(content: str, where: str, wanted: Wanted, *, first_line: int = 1) -> Documents:
    """Read one JSON object per line, or one JSON array of objects; ``first_line`` is the number of the first line."""
    return _from_records(_records(content, where, first_line), where, wanted)


def parquet_files(path: Path) -> list[Path]:
    """Return the file itself, or the files of a directory of shards, sorted by name."""
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def read_parquet(path: Path, wanted: Wanted) -> Documents:
    """Read a Parquet file or a directory of Parquet files; needs pyarrow."""
    return joined([_read_parquet_file(file, wanted) for file in parquet_files(path)])


def joined(parts: Sequence[Documents]) -> Documents:
    """The documents of several files, one file after the other; a column that a file lacks is None there."""
    texts = [text for part in parts for text in part.texts]
    labels = (
        None if any(part.labels is None for part in parts) else [row for part in parts for row in part.labels or ()]
    )
    splits = any(part.splits for part in parts)
    if any(part.table is None for part in parts):
        return Documents(texts, labels, splits=splits)
    names = dict.fromkeys(name for part in parts for name in part.table or ())
    table = {
        name: [cell for part in parts for cell in (part.table or {}).get(name, [None] * len(part.texts))]
        for name in names
    }
    return Documents(texts, labels, table, splits)


def _read_parquet_file(path: Path, wanted: Wanted) -> Documents:
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an optional dependency
    except ImportError:
        raise LabelwoodError(
            f"{path}: reading Parquet needs pyarrow: pip install 'labelwood[parquet]', or save the table as CSV"
        ) from None
    with reading(path):
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                claimed = file.metadata.num_rows * _BYTES_PER_ROW
                check_claim(path, f"{file.metadata.num_rows} rows", claimed, wanted.max_memory)
                names = file.schema_arrow.names
                text, labels = wanted.columns(names, str(path))
                needed = None if wanted.keep_table else [*text, *([labels] if labels else [])]
                table = file.read(columns=needed).to_pydict()
        except (pyarrow.lib.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # an error of the system, not of pyarrow
                raise
            why = " ".join(str(error).split())
            raise FormatError(f"{path}: not a Parquet file that pyarrow can read ({why})") from None
    columns = [table[name] for name in text]
    texts = [
        wanted.text_of(text, [_as_text(value, f"{path}, row {row}") for value in values])
        for row, values in enumerate(zip(*columns, strict=True), start=1)
    ]
    cells = [] if labels is None else table[labels]
    marked = None if labels is None else split_labels(cells, wanted.sep, str(path))
    return Documents(texts, marked, table if wanted.keep_table else None, _has_strings(cells))


def _records(content: str, where: str, first_line: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects and the place of each."""
    found: Iterable[tuple[str, str | Any]]
    if content.lstrip().startswith("["):
        whole = _parsed(content, where)
        found = [(f"{where}, item {number}", item) for number, item in enumerate(whole, start=1)]
    else:
        lines = content.split("\n")  # splitlines would also split at separators within strings
        numbered = watched(enumerate(lines, start=first_line), "read lines", len(lines))
        found = (
            (place := f"{where}, line {number}", _parsed(line, place)) for number, line in numbered if line.strip()
        )
    for place, record in found:
        if not isinstance(record, dict):
            raise FormatError(
                f'{place}: expected a JSON object such as {{"text": ..., "labels": [...]}}; got {_short(record)}'
            )
        yield place, record


def _parsed(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else error
        raise FormatError(
            f"{place}: not JSON ({reason}); got {_short(line)}. "
            "For a table pass --format csv or --format tsv, for plain text --format lines."
        ) from None


def _from_records(records: Iterator[tuple[str, dict[str, Any]]], where: str, wanted: Wanted) -> Documents:
    texts: list[Text] = []
    cells: list[Any] = []
    text: list[str] = []
    labels: str | None = None
    kept: list[dict[str, Any]] = []
    for place, record in records:
        if not texts:
            text, labels = wanted.columns(list(record), where, may_lack=wanted.fields)
        missing = [name for name in text if name not in record]
        if len(missing) == len(text):
            raise FormatError(f"{place}: has no {missing[0]!r}; its keys are {_shown(list(record))}")
        values = [_as_text(record[name], place) if name in record else None for name in text]
        texts.append(wanted.text_of(text, values))
        if labels is not None:
            cells.append(record.get(labels))
        if wanted.keep_table:
            kept.append(record)
    names = dict.fromkeys(name for record in kept for name in record)
    table = {name: [record.get(name) for record in kept] for name in names} if wanted.keep_table else None
    marked = None if labels is None else split_labels(cells, wanted.sep, where)
    return Documents(texts, marked, table, _has_strings(cells))


def _has_strings(cells: Iterable[Any]) -> bool:
    return any(isinstance(cell, str) for cell in cells)


def split_labels(cells: Sequence[Any], sep: str | None, where: str) -> list[list[str]]:
    """Convert cells to lists of names; strings are split at ``sep``, by default at the first separator that occurs."""
    words = [cell for cell in cells if isinstance(cell, str)]
    uris = sep is None and any(words) and all(_URIS.fullmatch(cell) for cell in words if cell.strip())
    if sep is None and not uris:
        sep = next((mark for mark in _SEPARATORS if any(mark in cell for cell in words)), None)
    elif sep is not None and not any(sep in cell for cell in words):
        _warn_of_other_marks(words, sep, where)
    rows = []
    for number, cell in enumerate(cells, start=1):
        if cell is None:
            names = []
        elif isinstance(cell, str):
            names = split_uris(cell) if uris else cell.split(sep) if sep else [cell]
        elif isinstance(cell, list) and all(isinstance(name, str | int) for name in cell):
            names = [str(name) for name in cell]
        elif isinstance(cell, int) and not isinstance(cell, bool):
            names = [str(cell)]
        else:
            raise FormatError(f"{where}, row {number}: labels must be a list of names or a string; got {_short(cell)}")
        rows.append([name.strip() for name in names if name.strip()])
    return rows


def _warn_of_other_marks(cells: Sequence[str], sep: str, where: str) -> None:
    """Warn if cells look as if another separator than ``sep`` divided their labels; names may contain commas."""
    found = next(((mark, cell) for mark in _SEPARATORS if mark != "," for cell in cells if mark in cell), None)
    if found is not None:
        warnings.warn(
            f"{where}: no cell of labels has the separator {sep!r}, but some have {found[0]!r}: {_short(found[1])} is "
            "read as one label",
            LabelwoodWarning,
            stacklevel=2,
        )


def split_uris(cell: str) -> list[str]:
    """Split ``<uri> <uri>`` into URIs without brackets."""
    names = (uri.removeprefix("<").removesuffix(">") for uri in cell.split())
    return [name for name in names if name]


def _as_text(value: Any, place: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return _joined(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise FormatError(
        f"{place}: the text must be a string; got {_short(value)}. Choose another column with --text NAME."
    )


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else "\n".join(part for part in parts if part)


def _known(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the names that are in ``known``, in the order of ``known``."""
    return sorted((n for n in names if n.lower() in known), key=lambda name: known.index(name.lower()))


def _shown(names: Sequence[str]) -> str:
    if not names:
        return "no columns"
    shown = ", ".join(_short(name) for name in names[:_SHOWN_COLUMNS])
    return shown + (f" and {len(names) - _SHOWN_COLUMNS} more" if len(names) > _SHOWN_COLUMNS else "")


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _NAME_LIMIT else shown[:_NAME_LIMIT] + "..."
