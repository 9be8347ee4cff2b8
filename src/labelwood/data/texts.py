"""Read texts with label names from common files: tables, JSON lines, Annif, fastText, one text per line.

:func:`load_text` recognizes the columns of the text and of the labels by their names. If it cannot, the error says
which columns there are and how to choose.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy.typing as npt

from labelwood.data import text_tables
from labelwood.data._files import COMPRESSIONS, read_start, read_text
from labelwood.data.load_save import PathLike, load
from labelwood.errors import FormatError, LabelwoodError
from labelwood.label_names import name_problem
from labelwood.validation.embedded import Embedded

TextFormat = Literal["jsonl", "csv", "tsv", "parquet", "annif", "fasttext", "lines"]
TEXT_FORMATS: tuple[str, ...] = get_args(TextFormat)
STANDARD_INPUT = "-"
STANDARD_INPUT_NAME = "standard input"  # in messages

_SUFFIXES: dict[str, TextFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".fasttext": "fasttext",
    ".ft": "fasttext",
}
_LOOK_AT_BYTES = 1 << 16
_NUMBERS = re.compile(rb"[-+\d\s,:.eE]*")
_ANNIF = re.compile(r"[^\t]*\t\s*<[^<>\s]+>(\s+<[^<>\s]+>)*\s*")
_FASTTEXT_LABEL = "__label__"


@dataclass(frozen=True)
class TextDataset:
    """Texts and the label names of each text; ``labels`` is None if the source has no labels.

    A text is a string, or a dict of strings if :func:`load_text` was asked for fields. ``table`` holds the cells of all
    columns of the source, by column, if :func:`load_text` was asked to keep them. ``splits`` says that labels of the
    source are strings, which a separator divides, and not lists. ``vectors`` has one row per text, if the texts have
    vectors.
    """

    texts: list[text_tables.Text]
    labels: list[list[str]] | None
    table: dict[str, list[Any]] | None = field(default=None, repr=False)
    splits: bool = field(default=False, repr=False, compare=False)
    vectors: npt.NDArray[Any] | None = field(default=None, repr=False)

    @property
    def inputs(self) -> list[text_tables.Text] | Embedded:
        """What a model of texts takes: the texts, with their vectors if they have any."""
        return self.texts if self.vectors is None else Embedded(self.texts, self.vectors)

    def check(self) -> TextDataset:
        """Check that there is one list of labels per text, and return self."""
        if self.labels is not None and len(self.labels) != len(self.texts):
            raise LabelwoodError(
                f"TextDataset: there must be one list of labels per text; got {len(self.labels)} lists "
                f"for {len(self.texts)} texts"
            )
        return self

    @classmethod
    def joined(cls, parts: Sequence[TextDataset]) -> TextDataset:
        """The texts of several files, one file after the other; a column that a file lacks is None there."""
        found = [text_tables.Documents(part.texts, part.labels, part.table, part.splits) for part in parts]
        return cls(*text_tables.joined(found))


def load_text(
    path: PathLike,
    *,
    format: TextFormat | None = None,
    text: str | Sequence[str] | None = None,
    labels: str | None = None,
    sep: str | None = None,
    needs_labels: bool = True,
    max_memory: int | None = None,
    keep_table: bool = False,
    fields: bool = False,
) -> TextDataset:
    """Read texts and their labels; without ``format``, the suffix or the first line of the file decides.

    ``text`` names one or more columns of the text, ``labels`` the column of the labels, ``sep`` the separator between
    two labels of a cell. By default, the columns are recognized by their names, and the separator by the cells. Several
    columns of the text are joined to one string; with ``fields=True`` each text is a dict of them. With
    ``format="lines"``, one text per line, ``labels`` is a file with the labels of each line: an XMC or svmlight file of
    the same rows, or a text file with names. ``path`` may be ``-`` for standard input. ``needs_labels=False`` does not
    read labels: use it for texts to predict. ``keep_table=True`` keeps the cells of all columns. A file that
    decompresses to more than ``max_memory`` bytes is refused; by default, to more than a gigabyte and than 100 times
    its size.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "docs.csv")
    >>> _ = path.write_text("title,tags\\nCats and dogs,pets;animals\\nTax law,law\\n")
    >>> load_text(path)
    TextDataset(texts=['Cats and dogs', 'Tax law'], labels=[['pets', 'animals'], ['law']])
    """
    where = STANDARD_INPUT_NAME if os.fspath(path) == STANDARD_INPUT else os.fspath(path)
    columns = [text] if isinstance(text, str) else text
    wanted = text_tables.Wanted(columns, labels, sep, needs_labels, max_memory, keep_table, fields)
    kind = named_format(path, format)
    if kind == "parquet":
        return _checked(text_tables.read_parquet(Path(path), wanted), where)
    found = read_content(content_of(path, max_memory), kind, where, wanted, is_named=format is not None)
    if not found.texts:
        raise FormatError(f"{where}: the file contains no texts")
    return _checked(found, where)


def read_content(
    content: str, kind: TextFormat | None, where: str, wanted: text_tables.Wanted, *, is_named: bool
) -> text_tables.Documents:
    """Read texts from the content of a file; ``is_named`` says that the caller named the format ``kind``."""
    kind = recognized_format(content.partition("\n")[0], kind, is_named=is_named)
    if kind == "jsonl":
        return text_tables.read_json(content, where, wanted)
    if kind in ("csv", "tsv"):
        return text_tables.read_delimited(content, where, wanted, delimiter="\t" if kind == "tsv" else None)
    lines = content.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return read_lines(lines, kind, where, wanted)


def read_lines(
    lines: list[str], kind: TextFormat, where: str, wanted: text_tables.Wanted, *, first_line: int = 1
) -> text_tables.Documents:
    """Read texts from lines of Annif, fastText, JSON or plain text; ``first_line`` is the number of the first line."""
    if kind == "jsonl":
        return text_tables.read_json("\n".join(lines), where, wanted, first_line=first_line)
    labels: list[list[str]] | None
    if kind == "annif":
        texts, labels = _read_annif(lines, where, first_line)
    elif kind == "fasttext":
        texts, labels = _read_fasttext(lines)
    else:
        texts, labels = _with_label_file([line.removesuffix("\r") for line in lines], where, wanted)
    table: text_tables.Table | None = {"text": list(texts)} if wanted.keep_table else None
    return text_tables.Documents([*texts], labels if wanted.needs_labels else None, table, kind == "lines")


def named_format(path: PathLike, format: TextFormat | None) -> TextFormat | None:
    """The format that the caller or the suffix names; None if neither does."""
    if format is not None and format not in TEXT_FORMATS:
        raise LabelwoodError(f"load_text: format must be one of {', '.join(map(repr, TEXT_FORMATS))}; got {format!r}")
    return format or (None if os.fspath(path) == STANDARD_INPUT else _format_of_suffix(Path(path)))


def recognized_format(first_line: str, kind: TextFormat | None, *, is_named: bool) -> TextFormat:
    """The format of a file: the one that was named, else the one of its suffix unless the first line says otherwise."""
    if kind is None or (kind == "tsv" and not is_named and _ANNIF.fullmatch(first_line)):
        return _format_of_line(first_line)
    return kind


def text_format(path: PathLike, format: TextFormat | None = None) -> TextFormat:
    """The format in which :func:`load_text` reads a file."""
    kind = named_format(path, format)
    if kind == "parquet" or not Path(path).is_file():
        return kind or "lines"
    first = read_start(Path(path), _LOOK_AT_BYTES).partition(b"\n")[0].decode("utf-8-sig", "replace")
    return recognized_format(first, kind, is_named=format is not None)


def holds_text(path: PathLike) -> bool:
    """True if a file holds texts, for :func:`load_text`, and not vectors; the suffix decides, else the first line."""
    if os.fspath(path) == STANDARD_INPUT or _format_of_suffix(Path(path)) is not None:
        return True
    suffixes = [suffix for suffix in Path(path).suffixes if suffix.lower() not in COMPRESSIONS]
    if not suffixes or suffixes[-1].lower() != ".txt" or not Path(path).is_file():
        return False
    start = read_start(Path(path), _LOOK_AT_BYTES)
    return not _NUMBERS.fullmatch(start.lstrip().partition(b"\n")[0])


def _checked(found: text_tables.Documents, where: str) -> TextDataset:
    """The texts and their labels, after every label name was checked."""
    good: set[str] = set()
    for row, names in enumerate(found.labels or (), start=1):
        for name in names:
            if name not in good:
                problem = name_problem(name)
                if problem is not None:
                    raise FormatError(f"{where}, row {row}: {problem}")
                good.add(name)
    return TextDataset(*found).check()


def _format_of_suffix(path: Path) -> TextFormat | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def _format_of_line(line: str) -> TextFormat:
    """Recognize the format by the first line."""
    if line.startswith(("{", "[")):
        return "jsonl"
    if _FASTTEXT_LABEL in line:
        return "fasttext"
    if _ANNIF.fullmatch(line):
        return "annif"
    for kind, delimiter in (("tsv", "\t"), ("csv", ","), ("csv", ";")):
        if text_tables.looks_like_header(line, delimiter):
            return cast(TextFormat, kind)
    return "lines"


def content_of(path: PathLike, max_memory: int | None = None) -> str:
    """The decoded content of a file, or of standard input; ``max_memory`` is that of :func:`load_text`."""
    if os.fspath(path) == STANDARD_INPUT:
        return decoded(sys.stdin.buffer.read(), STANDARD_INPUT_NAME)
    return decoded(read_text(Path(path), max_memory)[0].tobytes(), os.fspath(path))


def decoded(content: bytes, where: str, *, first_line: int = 1) -> str:
    """Decode UTF-8; ``first_line`` is the number of the first line in messages."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + first_line
        encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "latin1"
        raise FormatError(
            f"{where}, line {line}: byte 0x{content[error.start]:02X} is not UTF-8; "
            f"save the file as UTF-8, or convert it: iconv -f {encoding} -t utf-8"
        ) from None


def _read_annif(lines: list[str], where: str, first_line: int) -> tuple[list[str], list[list[str]]]:
    texts, labels = [], []
    for number, line in enumerate(lines, start=first_line):
        text, tab, uris = line.partition("\t")
        if not tab:
            raise FormatError(
                f"{where}, line {number}: no TAB between text and subjects; an Annif line is text<TAB><uri> <uri>"
            )
        texts.append(text)
        labels.append(text_tables.split_uris(uris))
    return texts, labels


def _read_fasttext(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    texts, labels = [], []
    for line in lines:
        words = line.split()
        names = (word.removeprefix(_FASTTEXT_LABEL) for word in words if word.startswith(_FASTTEXT_LABEL))
        labels.append([name for name in names if name])
        texts.append(" ".join(word for word in words if not word.startswith(_FASTTEXT_LABEL)))
    return texts, labels


def _with_label_file(
    texts: list[str], where: str, wanted: text_tables.Wanted
) -> tuple[list[str], list[list[str]] | None]:
    if not wanted.needs_labels:
        return texts, None
    if wanted.labels is None:
        shown = texts[0][:60] + "..." * (len(texts[0]) > 60) if texts else ""
        raise FormatError(
            f"{where}: the first line {shown!r} is plain text without labels; pass --labels FILE, a file with the "
            "labels of each line, or --format csv, tsv, jsonl, annif or fasttext"
        )
    source = Path(wanted.labels)
    if not source.is_file():
        raise FormatError(
            f"{where}: plain text, one text per line, needs a file of labels; --labels {wanted.labels} is not a file"
        )
    if holds_text(source):
        content = content_of(source, wanted.max_memory)
        names = text_tables.split_labels(content.split("\n")[:-1], wanted.sep, str(source))
    else:
        dataset = load(source, max_memory=wanted.max_memory)
        known, used = dataset.label_names, dataset.Y.indices.tolist()
        ids = [str(label) if known is None else known[label] for label in used]
        names = [ids[start:stop] for start, stop in pairwise(dataset.Y.indptr.tolist())]
    if len(names) != len(texts):
        raise FormatError(f"{source}: has labels for {len(names)} rows, but {where} has {len(texts)} lines")
    return texts, names
