"""How results look: tables, numbers, JSON, files that are whole or absent."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from labelwood.progress import SHOWN
from labelwood.storage.atomic import atomic_file

_PLAIN_LABEL = re.compile(r'[^\s":]+')


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    print(to_json(value))


def to_json(value: Any) -> str:
    """JSON on one line; NumPy values become plain, text stays readable."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)


def remark(text: str) -> None:
    """Tell people something on stderr, unless they asked for quiet."""
    if SHOWN.bars:
        print(text, file=sys.stderr, flush=True)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        print("  ".join(cells).rstrip())


def print_facts(facts: Mapping[str, Any], *, indent: str = "") -> None:
    """Print names and values in two columns; nested mappings are indented below their name."""
    width = max((len(name) for name, value in facts.items() if not isinstance(value, Mapping)), default=0)
    for name, value in facts.items():
        if isinstance(value, Mapping):
            print(f"{indent}{name}")
            print_facts(value, indent=indent + "  ")
        else:
            print(f"{indent}{name:<{width}}  {shown(value)}")


def shown(value: Any) -> str:
    """A value for people: thousands set apart, four digits of a fraction.

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
    """Phases with their seconds on one line, the total first."""
    phases = ", ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    return f"{sum(seconds.values()):.2f} s ({phases})"


def shown_label(label: Any) -> str:
    """A label as one word: itself, or a JSON string when it holds blanks, quotes or colons.

    >>> shown_label("tax"), shown_label("tax law")
    ('tax', '"tax law"')
    """
    text = str(label)
    return text if _PLAIN_LABEL.fullmatch(text) else json.dumps(text, ensure_ascii=False)


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[TextIO]:
    """A text file that is written atomically; stdout if there is no path."""
    if path is None:
        yield sys.stdout
        return
    with atomic_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8")
        yield text
        text.detach()  # flushes the text; atomic_file closes the file
