"""Label names: a text file with one name a line, in the order of the label ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labelwood.data._files import read_text, writing
from labelwood.errors import FormatError, LabelwoodError

NAMES_FILE = "labels.txt"


def read_names(path: Path) -> tuple[str, ...]:
    """The names in a file, UTF-8, one a line; names need not be distinct."""
    text, _ = read_text(path)
    lines = text.tobytes().split(b"\n")[:-1]
    names = []
    for number, line in enumerate(lines, start=1):
        try:
            names.append(line.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            raise FormatError(f"{path}, line {number}: not UTF-8 text ({error.reason})") from None
    if not names:
        raise FormatError(f"{path}: the file is empty; it must hold one label name a line")
    return tuple(names)


def encode_names(names: Sequence[str]) -> bytes:
    """The content of a names file."""
    for name in names:
        if "\n" in name or name.endswith("\r"):
            raise LabelwoodError(f"data: a label name must be one line; got {name!r}")
    return "".join(f"{name}\n" for name in names).encode("utf-8")


def write_names_beside(path: Path, names: Sequence[str]) -> None:
    """Write ``labels.txt`` into the directory of a data file.

    One that is there with the same names is left alone; one with others belongs to another data set and is an
    error.
    """
    target = path.with_name(NAMES_FILE)
    content = encode_names(names)
    if target.exists():
        if read_names(target) != tuple(names):
            raise LabelwoodError(
                f"{target}: holds other label names than the data set to be saved beside it; "
                "save into another directory"
            )
        return
    with writing(target) as stream:
        stream.write(content)
