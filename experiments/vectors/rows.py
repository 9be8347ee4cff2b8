"""The rows of the experiment: a part of each data set, the same for the encoder and for the models."""

from __future__ import annotations

import json
import lzma
import random
from pathlib import Path
from typing import Any, NamedTuple

SETS = {"yso_finna_en": (40_000, 6_000), "tibkat": (12_000, 2_500)}  # rows of training and of testing
LONGEST = 120  # characters of a text that the encoder of vectors reads: a title, or the begin of a longer text


class Texts(NamedTuple):
    """Texts and the labels of each."""

    texts: list[str]
    labels: list[list[str]]


def read(data: Path, name: str) -> dict[str, Texts]:
    """The training and the test rows of a data set, drawn by a fixed seed."""
    counts = zip(("train", "test"), SETS[name], strict=True)
    return {part: _drawn(_PARSERS[name](data / name, part), count) for part, count in counts}


def _drawn(rows: list[tuple[str, list[str]]], count: int) -> Texts:
    chosen = sorted(random.Random(0).sample(range(len(rows)), min(count, len(rows))))  # noqa: S311 - a fixed draw
    return Texts([rows[row][0] for row in chosen], [rows[row][1] for row in chosen])


def _yso(folder: Path, part: str) -> list[tuple[str, list[str]]]:
    names = (folder / "labels.txt").read_text(encoding="utf-8").splitlines()
    texts = lzma.open(folder / f"{part}.raw.txt.xz", "rt", encoding="utf-8").read().split("\n")
    rows = []
    with lzma.open(folder / f"{part}.txt.xz", "rt", encoding="utf-8") as lines:
        next(lines)
        for text, line in zip(texts, lines, strict=False):
            ids = line.split(" ", 1)[0]
            rows.append((text, [names[int(label)] for label in ids.split(",")] if ids else []))
    return rows


def _tibkat(folder: Path, part: str) -> list[tuple[str, list[str]]]:
    with lzma.open(folder / f"{part}.jsonl.xz", "rt", encoding="utf-8") as lines:
        found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [(f"{row['title']}. {row['abstract'] or ''}", row["labels"]) for row in found]


_PARSERS = {"yso_finna_en": _yso, "tibkat": _tibkat}
