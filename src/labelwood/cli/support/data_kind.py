"""What DATA is: texts or vectors, a file, standard input or a literal text; flags for another kind are refused."""

from __future__ import annotations

from pathlib import Path

from labelwood import data
from labelwood.cli.support.method_flags import ENCODER
from labelwood.cli.support.parser import Options, UsageError
from labelwood.data._files import guess_format
from labelwood.errors import LabelwoodError

# Flags that matter only for some data.
_FOR_TEXTS, _FOR_VECTORS, _FOR_FILES = (
    ("--vectors", "--text", "--labels", "--sep", "--encoder"),
    ("--label-names",),
    ("--max-memory",),
)
DATA_FLAGS = ("--format", *_FOR_TEXTS, *_FOR_VECTORS, *_FOR_FILES)


def has_texts(options: Options) -> bool:
    """True if DATA holds texts, False if it holds vectors; flags for the other kind are refused."""
    is_text = _holds_texts(options)
    if is_text:
        options.refuse(_FOR_VECTORS, f"it is for vectors, but {named_data(options)} holds texts")
    else:
        encoding = [name for name in vars(options) if name.startswith(ENCODER)]
        why = f"it is for texts, but {named_data(options)} holds vectors; if not, say so by --format"
        options.refuse((*_FOR_TEXTS, *encoding), why)
    return is_text


def _holds_texts(options: Options) -> bool:
    """The flags decide, else the files."""
    if options.format is not None:
        return options.format in data.TEXT_FORMATS
    if any((options.text, options.labels, options.sep)):
        return not all(map(_holds_vectors, options.data))
    found = {data.holds_text(path): path for path in options.data}
    if len(found) > 1:
        raise UsageError(
            f"labelwood: {found[True]} holds texts, but {found[False]} holds vectors; pass one kind of data"
        )
    return found.popitem()[0]


def _holds_vectors(path: str) -> bool:
    """True if a file certainly holds vectors: by its suffix, and if it is plain text by its first line."""
    if path == data.STANDARD_INPUT or not Path(path).exists() or data.holds_text(path):
        return False
    try:
        guess_format(Path(path), None)
    except LabelwoodError:
        return False
    return True


def refuse_columns(options: Options, path: str) -> None:
    """Refuse the names of columns for a file that has none."""
    if path == data.STANDARD_INPUT:
        refuse_for_pipe(options)
        return
    kind = data.text_format(path, options.format)
    if kind in ("annif", "fasttext"):
        options.refuse(("--text", "--labels", "--sep"), f"{path} is in {kind} format, which has no columns")
    elif kind == "lines":
        options.refuse(["--text"], f"{path} has one text per line and no columns")
        if options.labels is None or not data.holds_text(options.labels):
            options.refuse(["--sep"], "no file with names of labels is read")


def refuse_for_pipe(options: Options) -> None:
    """Refuse what does not matter for standard input."""
    options.refuse(_FOR_FILES, "it is for data files, not for standard input")


def is_a_text(options: Options) -> bool:
    """True if DATA is literal text rather than a path; flags for files are refused then."""
    word = options.data[0]
    if not all(options.data):
        raise UsageError("labelwood: DATA is empty; it takes a text or a data file")
    if word == "-" or options.format is not None or any(map(_exists, options.data)):
        return False
    if len(options.data) > 1 and not any(Path(path).suffix for path in options.data):
        raise UsageError(f"labelwood: there is no file {word}; put a text in quotes: {' '.join(options.data)!r}")
    is_text = len(options.data) == 1 and (" " in word.strip() or not Path(word).suffix)
    if is_text:
        for_files = [flag for flag in DATA_FLAGS if flag != "--vectors"]
        options.refuse(for_files, f"it is for data files, but there is no file {word!r:.60}, so it is read as a text")
    return is_text


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):  # too long for a path
        return False


def named_data(options: Options) -> str:
    """DATA as it was given."""
    return " ".join(options.data)
