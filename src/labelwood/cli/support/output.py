"""Output of the commands: tables, numbers, JSON, files that are written atomically."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from labelwood.cli.support.safe_output import remark
from labelwood.data import Dataset
from labelwood.resources.memory import shown_bytes
from labelwood.storage.atomic import atomic_file

_PLAIN_LABEL = re.compile(r'[^\s":]+')


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    print(to_json(value))


def to_json(value: Any) -> str:
    """Convert a value to one line of JSON; NumPy values become plain, text is not escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: the first column aligned left, the others right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells).rstrip())


def print_facts(facts: Mapping[str, Any], *, indent: str = "") -> None:
    """Print names and values in two columns; a nested mapping is indented below its name."""
    width = max((len(name) for name, value in facts.items() if not isinstance(value, Mapping)), default=0)
    for name, value in facts.items():
        if isinstance(value, Mapping):
            print(f"{indent}{name}")
            print_facts(value, indent=indent + "  ")
        else:
            print(f"{indent}{name:<{width}}  {shown(value)}")


def print_dataset(path: Path, dataset: Dataset, seconds: Mapping[str, float], *, as_json: bool) -> None:
    """Print the counts and the size of a data set that was written to ``path``."""
    size = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))
    facts = {
        "file": str(path),
        "rows": dataset.X.n_rows,
        "features": dataset.X.n_cols,
        "labels": dataset.Y.n_cols,
        "feature_entries": dataset.X.nnz,
        "label_entries": dataset.Y.nnz,
    }
    if as_json:
        rounded = {name: round(value, 4) for name, value in seconds.items()}
        print_json({**facts, "bytes": size, "seconds": rounded})
    else:
        print_facts({**facts, "size": shown_bytes(size), "time": shown_seconds(seconds)})


def print_next(model: Path, *, takes: str, with_vectors: bool = False) -> None:
    """Print on stderr what can be done with a new model, unless -q is given."""
    name = shlex.quote(str(model))
    row = '"a text"' if takes == "text" else "rows.txt"
    held_out = "held-out.csv" if takes == "text" else "held-out.txt"
    if with_vectors:
        row, held_out = "more.csv --vectors more.npy", "held-out.csv --vectors held-out.npy"
    remark(f"next: labelwood eval {name} {held_out}")
    remark(f"      labelwood predict {name} {row}")
    remark(f"      labelwood explain {name} {row}")


def shown(value: Any) -> str:
    """Format a value for people: thousands separated, fractions with four digits.

    >>> shown(1234567), shown(0.123456), shown(None)
    ('1,234,567', '0.1235', 'none')
    """
    if isinstance(value, bool | np.bool_) or value is None:
        return str(value).lower()
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        return f"{value:,.1f}" if abs(float(value)) >= 1000 else f"{value:.4g}"
    return str(value) if isinstance(value, str) else to_json(value)


def shown_seconds(seconds: Mapping[str, float]) -> str:
    """Format the seconds of phases on one line, the total first."""
    phases = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    return f"{sum(seconds.values()):.2f} s ({phases})"


def shown_label(label: Any) -> str:
    """Format a label as one word: a JSON string if it contains blanks, quotes or colons, else the label itself.

    >>> shown_label("tax"), shown_label("tax law")
    ('tax', '"tax law"')
    """
    text = str(label)
    return text if _PLAIN_LABEL.fullmatch(text) else json.dumps(text, ensure_ascii=False)


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """Open a text file that is written atomically, or stdout if there is no path."""
    if path is None:
        yield sys.stdout
        return
    with atomic_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace")
        yield text
        text.detach()  # flushes the text; atomic_file closes the file
