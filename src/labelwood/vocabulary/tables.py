"""Vocabularies as tables: our CSV and TSV, which contain those of Annif, and lines of a label and its texts.

A table has a header. The column ``uri`` has the URI or another key. ``label_fi`` is the preferred name in Finnish,
``label`` one without a language; ``alt_fi``, ``hidden_fi`` and ``definition_fi`` are like it. ``notation``,
``broader``, ``related``, ``replaced_by`` and ``deprecated`` (1 or 0) stand for themselves; other columns are ignored.
Except in ``label``, several values of a cell are separated by ``|``; a ``|`` within a value is written ``\\|``.

A TSV file without a header is Annif's ``<uri> TAB name TAB notation``, or else a key and its names.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from labelwood.data._files import read_text
from labelwood.data.label_file import numbered_lines
from labelwood.errors import FormatError, LabelwoodError
from labelwood.vocabulary.concept import (
    ALTERNATIVE,
    DEFINITION,
    HIDDEN,
    LINK_KINDS,
    NOTATION,
    PREFERRED,
    Concept,
    check_language,
)
from labelwood.vocabulary.drafts import Drafts, Reading
from labelwood.vocabulary.vocabulary import Vocabulary

_KEYS = ("uri", "id")
_WORDS = {"label": PREFERRED, "alt": ALTERNATIVE, "hidden": HIDDEN, "definition": DEFINITION}
_COLUMN = re.compile(r"(label|alt|hidden|definition)(?:_(.+))?")
_TRUE, _FALSE = ("1", "true", "yes"), ("", "0", "false", "no")
_SEVERAL = re.compile(r"(?:[^|\\]|\\.|\\$)+")
_LONGEST_CELL = 1 << 20


class _Column(NamedTuple):
    """What a column holds: ``text`` or ``link`` with a kind, ``uri``, ``deprecated``, or nothing (``ignored``)."""

    what: str
    kind: int = 0
    language: str = ""


Row = tuple[int, list[str]]  # the number of its line, and its cells


def read_table(path: Path, *, language: str, columns: Sequence[str] | None, max_memory: int | None) -> Reading:
    """Read a vocabulary from a CSV or TSV file; ``columns`` names the columns of a file without a header."""
    content = read_text(path, max_memory)[0].tobytes()
    is_csv = ".csv" in [suffix.lower() for suffix in path.suffixes]
    rows = _csv_rows(content, path) if is_csv else _tsv_rows(content, path)
    first = next(rows, None)
    if first is None:
        raise FormatError(f"{path}: the file is empty; it must hold one concept per line")
    has_header = first[1][0].strip().lower() in _KEYS
    drafts = Drafts()
    if columns is not None or has_header:
        header = first[1] if columns is None else list(columns)
        where = f"{path}, line {first[0]}" if columns is None else f"{path}: --columns"
        kinds = [_column(name.strip(), where, language) for name in header]
        if not any(kind.what == "uri" for kind in kinds):
            raise FormatError(f"{where}: a column must be named uri; got {', '.join(header)[:60]}")
        for row in [*([] if has_header else [first]), *rows]:
            _read_row(drafts, row, kinds, path)
        if not any(kind.what == "deprecated" for kind in kinds):
            drafts.deprecate_nameless()
    elif is_csv:
        raise FormatError(f"{path}, line {first[0]}: a CSV file must begin with the names of its columns, such as "
                          f"uri,label_en; got {','.join(first[1])[:60]!r}")  # fmt: skip
    else:
        for row in [first, *rows]:
            _read_names(drafts, row, language, path)
    return drafts.finish()


def _csv_rows(content: bytes, path: Path) -> Iterator[Row]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise FormatError(f"{path}, line {line}: not UTF-8 text ({error.reason})") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        for cells in reader:
            if any(cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise FormatError(f"{path}, line {reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(before)


def _tsv_rows(content: bytes, path: Path) -> Iterator[Row]:
    for number, line in numbered_lines(content, str(path)):
        if line.strip():
            yield number, line.split("\t")


def _column(name: str, where: str, language: str) -> _Column:
    lower = name.lower()
    if lower in _KEYS:
        return _Column("uri")
    if lower == "deprecated":
        return _Column("deprecated")
    if lower in LINK_KINDS:
        return _Column("link", LINK_KINDS.index(lower))
    if lower == "notation":
        return _Column("text", NOTATION)
    if (match := _COLUMN.fullmatch(name)) is not None:
        own = language if match[2] is None else check_language(match[2], f"{where}, column {name}")
        return _Column("text", _WORDS[match[1]], own)
    return _Column("ignored")


def _read_row(drafts: Drafts, row: Row, columns: Sequence[_Column], path: Path) -> None:
    number, cells = row
    where = f"{path}, line {number}"
    if len(cells) > len(columns):
        raise FormatError(f"{where}: {len(cells)} cells, but {len(columns)} columns")
    filled = [(column, cell) for column, cell in zip(columns, cells, strict=False) if cell.strip()]
    uri = next((_plain_uri(cell) for column, cell in filled if column.what == "uri"), "")
    drafts.add(uri, where)
    for column, cell in filled:
        if column.what == "text" and column.kind == PREFERRED:
            drafts.add_text(uri, PREFERRED, column.language, cell, where)
        elif column.what == "text":
            for value in _several(cell):
                drafts.add_text(uri, column.kind, column.language, value, where)
        elif column.what == "link":
            for value in _several(cell):
                drafts.add_link(uri, column.kind, _plain_uri(value), where)
        elif column.what == "deprecated":
            if cell.strip().lower() not in (*_TRUE, *_FALSE):
                raise FormatError(f"{where}: deprecated must be 1 or 0; got {cell[:40]!r}")
            if cell.strip().lower() in _TRUE:
                drafts.deprecate(uri)


def _read_names(drafts: Drafts, row: Row, language: str, path: Path) -> None:
    """A line without a header: ``<uri>``, name and notation of Annif, or a key, its name and its other names."""
    number, (key, *names) = row
    where = f"{path}, line {number}"
    is_annif = key.strip().startswith("<")
    if is_annif and not key.strip().endswith(">"):
        raise FormatError(f"{where}: a URI must end with >; got {key[:60]!r}")
    uri = _plain_uri(key)
    drafts.add(uri, where)
    for place, name in enumerate(names):
        kind = PREFERRED if place == 0 else NOTATION if is_annif else ALTERNATIVE
        drafts.add_text(uri, kind, "" if kind == NOTATION else language, name, where)
    if is_annif and not any(name.strip() for name in names[:1]):
        drafts.deprecate(uri)


def _plain_uri(cell: str) -> str:
    uri = cell.strip()
    return uri[1:-1] if _in_brackets(uri) else uri


def _written_uri(uri: str) -> str:
    """A URI as a cell. A key that has brackets of its own gets another pair, because the reader removes one."""
    return f"<{uri}>" if _in_brackets(uri) else uri


def _in_brackets(uri: str) -> bool:
    return uri.startswith("<") and uri.endswith(">")


def _several(cell: str) -> list[str]:
    r"""The values of a cell.

    >>> _several(r"a|b \| c|d\\")
    ['a', 'b | c', 'd\\']
    """
    return [re.sub(r"\\(.)", r"\1", part).strip() for part in _SEVERAL.findall(cell) if part.strip()]


def _joined(values: Sequence[str]) -> str:
    return "|".join(re.sub(r"([|\\])", r"\\\1", value) for value in values)


def write_table(vocabulary: Vocabulary, *, as_csv: bool) -> bytes:
    """A vocabulary as CSV or TSV with a header; only CSV takes keys with tabs."""
    columns = ["uri", *_header(vocabulary)]
    with io.StringIO(newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for row in [columns, *(_row(concept, columns) for concept in vocabulary)]:
            if as_csv:
                writer.writerow(row)
            elif any("\t" in cell for cell in row):
                raise LabelwoodError(f"vocabulary: a key with a tab needs CSV; got {row[0][:60]!r}")
            else:
                file.write("\t".join(row) + "\n")
        return file.getvalue().encode("utf-8")


def _header(vocabulary: Vocabulary) -> list[str]:
    """The columns that the texts and links of a vocabulary need, and always ``notation`` and ``deprecated``."""
    used = sorted(set(zip(vocabulary.text_kind.tolist(), vocabulary.text_language.tolist(), strict=True)))
    word = {kind: name for name, kind in _WORDS.items()}
    texts = [
        word[kind] + (f"_{tag}" if (tag := vocabulary.languages[place]) else "") for kind, place in used if kind in word
    ]
    links = [LINK_KINDS[kind] for kind in sorted(set(vocabulary.link_kind.tolist()))]
    return ["notation", *texts, *links, "deprecated"]


def _row(concept: Concept, columns: Sequence[str]) -> list[str]:
    cells: dict[str, list[str]] = {
        "uri": [_written_uri(concept.uri)],
        "deprecated": ["1"] if concept.deprecated else [],
    }
    word = {kind: name for name, kind in _WORDS.items()}
    for text in concept.texts:
        named = (
            "notation" if text.kind == NOTATION else word[text.kind] + (f"_{text.language}" if text.language else "")
        )
        cells.setdefault(named, []).append(text.text)
    for link in concept.links:
        cells.setdefault(LINK_KINDS[link.kind], []).append(_written_uri(link.uri))
    return [
        "".join(cells.get(column, [])) if column.startswith(("uri", "label")) else _joined(cells.get(column, []))
        for column in columns
    ]
