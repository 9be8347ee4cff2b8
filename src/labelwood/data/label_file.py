"""Label names in a text file, one name per line, in the order of the label ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labelwood.data._files import read_text, writing
from labelwood.errors import FormatError, LabelwoodError

NAMES_FILE = "labels.txt"


def read_names(path: Path) -> tuple[str, ...]:
    """Read the names in a UTF-8 file, one per line; names need not be distinct."""
    text, _ = read_text(path)
    lines = text.tobytes().split(b"\n")[:-1]
    names = []
    for number, line in enumerate(lines, start=1):
        try:
            names.append(line.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}, line {number}: not UTF-8 text ({error.reason})") from None
    if not names:
        raise FormatError(f"{path}: the file is empty; it must hold one label name per line")
    return tuple(names)


def encode_names(names: Sequence[str]) -> bytes:
    """Return the content of a names file."""
    for name in names:
        if "\n" in name or name.endswith("\r"):
            raise LabelwoodError(f"data: a label name must be a single line; got {name!r}")
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
