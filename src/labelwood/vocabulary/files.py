"""Vocabulary files: the format follows from the suffix."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from labelwood.data._files import COMPRESSIONS, writing
from labelwood.errors import LabelwoodError
from labelwood.vocabulary.concept import check_language
from labelwood.vocabulary.drafts import Reading
from labelwood.vocabulary.skos import read_skos, write_skos
from labelwood.vocabulary.tables import read_table, write_table
from labelwood.vocabulary.vocabulary import Vocabulary

FORMATS = ("csv", "tsv", "turtle", "xml", "json-ld", "nt")
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "tsv",
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".rdf": "xml",
    ".owl": "xml",
    ".xml": "xml",
    ".jsonld": "json-ld",
    ".json": "json-ld",
    ".nt": "nt",
}


def load_vocabulary(
    path: str | os.PathLike[str], *, language: str = "", columns: Sequence[str] | None = None
) -> Vocabulary:
    """Read a vocabulary: SKOS (.ttl, .rdf, .jsonld, .nt) or a table (.csv, .tsv), plain or compressed.

    ``language`` is that of names whose file does not tell it, as in Annif's TSV. ``columns`` names the columns of a
    table without a header, such as ``["uri", "label_fi", "alt_fi", "label_en"]``.
    """
    return read_vocabulary(path, language=language, columns=columns).vocabulary


def read_vocabulary(
    path: str | os.PathLike[str],
    *,
    language: str = "",
    columns: Sequence[str] | None = None,
    max_memory: int | None = None,
) -> Reading:
    """What :func:`load_vocabulary` reads, with remarks about what is odd in the file."""
    file = Path(path)
    tag, kind = check_language(language, "vocabulary"), _format_of(file)
    if kind in ("csv", "tsv"):
        return read_table(file, language=tag, columns=columns, max_memory=max_memory)
    if columns is not None:
        raise LabelwoodError(f"{path}: only a table has columns to name")
    return read_skos(file, kind, max_memory=max_memory)


def save_vocabulary(vocabulary: Vocabulary, path: str | os.PathLike[str]) -> None:
    """Write a vocabulary in the format of the suffix; tables and SKOS hold the same."""
    file = Path(path)
    kind = _format_of(file)
    is_table = kind in ("csv", "tsv")
    content = write_table(vocabulary, as_csv=kind == "csv") if is_table else write_skos(vocabulary, kind)
    with writing(file) as stream:
        stream.write(content)


def _format_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _SUFFIXES:
        raise LabelwoodError(f"{path}: the format of a vocabulary must be told by one of {', '.join(_SUFFIXES)}")
    return _SUFFIXES[suffixes[-1]]
