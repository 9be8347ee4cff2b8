"""Label names in a text file, one name per line, in the order of the label ids."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path

from labelwood.data._files import read_text, writing
from labelwood.errors import FormatError, LabelwoodError
from labelwood.label_names import name_problem

NAMES_FILE = "labels.txt"


def read_names(path: Path, max_memory: int | None = None) -> tuple[str, ...]:
    """Read the names in a UTF-8 file, one per line; names need not be distinct."""
    text, _ = read_text(path, max_memory)
    names = decode_names(text.tobytes(), str(path))
    if not names:
        raise FormatError(f"{path}: the file is empty; it must hold one label name per line")
    return names


def decode_names(content: bytes, where: str) -> tuple[str, ...]:
    """Return the names in the content of a names file, and check each of them."""
    names = []
    for number, name in numbered_lines(content, where):
        problem = name_problem(name)
        if problem is not None:
            raise FormatError(f"{where}, line {number}: {problem}")
        names.append(name)
    return tuple(names)


def numbered_lines(content: bytes, where: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 text, without their ends, and their numbers from 1."""
    lines = content.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").split(b"\n") if content else []
    for number, line in enumerate(lines, start=1):
        try:
            yield number, line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(f"{where}, line {number}: not UTF-8 text ({error.reason})") from None


def encode_names(names: Sequence[str]) -> bytes:
    """Return the content of a names file; the data set that the names belong to has checked them."""
    return "".join(f"{name}\n" for name in names).encode("utf-8")


def write_names_beside(path: Path, names: Sequence[str]) -> None:
    """Write ``labels.txt`` to the directory of a data file.

    An existing file with the same names is kept. An existing file with other names belongs to another data set, which
    is an error.
    """
    target = path.with_name(NAMES_FILE)
    content = encode_names(names)
    if target.exists():
        if read_names(target) != tuple(names):
            raise LabelwoodError(f"{target}: holds the label names of another data set; save to another directory")
        return
    with writing(target) as stream:
        stream.write(content)
