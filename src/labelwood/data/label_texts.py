"""Names and descriptions of labels in a text file: a label, then its texts, separated by TAB."""

from __future__ import annotations

import os

from labelwood.data.texts import content_of
from labelwood.errors import FormatError
from labelwood.label_names import name_problem


def load_label_texts(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Read a UTF-8 file of labels and their texts, one label per line; a label without texts describes itself.

    Texts of a label that stands on several lines are put together. Empty cells are left out.
    """
    found: dict[str, list[str]] = {}
    for number, line in enumerate(content_of(path).split("\n"), start=1):
        label, *texts = (cell.strip() for cell in line.split("\t"))
        if not label:
            if not any(texts):
                continue
            raise FormatError(f"{path}, line {number}: the first cell must be a label; got {line[:40]!r}")
        if (problem := name_problem(label)) is not None:
            raise FormatError(f"{path}, line {number}: {problem}")
        found.setdefault(label, []).extend([text for text in texts if text] or ([] if texts else [label]))
    return found
