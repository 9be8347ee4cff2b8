"""The measured tables of the pages for users, made from the records alone.

A table stands between two marks, which say what it shows:

    <!-- records: methods linear-tree one-vs-rest -->    a line per method and data set
    <!-- records: data eurlex57k -->                     a line per method and peer
    <!-- records: P@5 -->                                a line per method, a column per data set
    <!-- records: annif -->                              a line per backend of Annif
    <!-- end of records -->

``python -m experiments.publish`` writes the tables.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import AT_HAND, QUALITY, ROOT, Options, Runs
from experiments.grand_table import Row, kept_rows, of_peers
from experiments.report import shown

RECORDS = ROOT / "experiments" / "records"
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "develop")
MARKED = re.compile(r"(<!-- records: ([^>]+) -->\n)(.*?)(<!-- end of records -->)", re.DOTALL)
NAMES = {name: name.partition("/")[0] for name in AT_HAND}
METHOD_PAGES = {
    "linear-tree": "linear_tree",
    "one-vs-rest": "linear_tree",
    "online-tree": "online_tree",
    "craft-forest": "craft_forest",
    "graph-forest": "graph_forest",
    "ldsm-forest": "ldsm_forest",
    "blend": "blend",
    "ranker": "ranker",
}
COSTS = {"training, CPU s": "train, CPU s", "prediction, ms": "predict, ms", "model, MB": "MB"}


def options_of(folder: Path) -> Options:
    """Options for three seeds of full runs on the data sets at hand, stored in a folder."""
    return Options(Path(), folder, AT_HAND, range(3), False, False, 1, argparse.Namespace())


@cache
def rows() -> tuple[Row, ...]:
    """The recorded figures of methods and peers on the data sets at hand."""
    found = kept_rows(options_of(RECORDS), tuple(METHOD_PAGES))
    return (*found, *(row for name in AT_HAND for row in of_peers(name, RECORDS)))


def number(values: Sequence[float]) -> str:
    """A time or a size: the mean, to about three digits."""
    mean = float(np.mean(values))
    digits = 3 if mean < 0.095 else 2 if mean < 1 else 1 if mean < 100 else 0
    return f"{mean:.{digits}f}"


def _cells(runs: Runs, scores: Sequence[str], costs: Sequence[str]) -> list[str]:
    return [shown(runs[score]) for score in scores] + [number(runs[COSTS[cost]]) for cost in costs]


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Markdown; costs and columns of data sets are aligned to the right."""
    rule = ["---:" if name in COSTS or name in NAMES.values() else "---" for name in head]
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *lines))


def of_methods(*methods: str) -> str:
    """A line per method and data set; the method is not named if it is the only one."""
    costs = ("training, CPU s", "model, MB")
    named = len(methods) > 1
    lines = [
        [*([f"`{method}`"] if named else []), NAMES[row.data], *_cells(row.runs, QUALITY, costs)]
        for method in methods
        for row in rows()
        if row.method == method
    ]
    return _table([*(["method"] if named else []), "data", *QUALITY, *costs], lines)


def of_data(name: str) -> str:
    """A line per method and peer."""
    scores = (*QUALITY, "PSP@5")
    lines = [
        [
            f"[`{row.method}`](methods/{METHOD_PAGES[row.method]}.md)" if row.method in METHOD_PAGES else row.method,
            *_cells(row.runs, scores, tuple(COSTS)),
        ]
        for row in rows()
        if NAMES[row.data] == name
    ]
    return _table(["", *scores, *COSTS], lines)


def of_score(score: str) -> str:
    """The shape of each data set, and one score of every method."""
    facts = json.loads((RECORDS / "tables" / "linear_tree_size" / "table5.json").read_text())
    shapes = {row["data"]: row for row in facts["tables"][0]["rows"]}
    lines = [
        ["training rows", *(f"{shapes[name]['training rows']:,}" for name in AT_HAND)],
        ["labels", *(f"{shapes[name]['labels']:,}" for name in AT_HAND)],
        ["labels per row", *(f"{shapes[name]['labels a row']:.1f}" for name in AT_HAND)],
    ]
    for method, page in METHOD_PAGES.items():
        means = {row.data: float(np.mean(row.runs[score])) for row in rows() if row.method == method}
        lines.append([f"[`{method}`](methods/{page}.md)", *(f"{means[name]:.2f}" for name in AT_HAND)])
    return _table(["", *NAMES.values()], lines)


def of_annif() -> str:
    """A line per backend of Annif, from the record of ``experiments.annif.measure``."""
    record = json.loads((RECORDS / "annif.json").read_text())
    scores = ("F1@5", "NDCG", "NDCG@5")
    lines = [
        [f"`{name}`", *(f"{row[score]:.3f}" for score in scores), number([row["train"]]), number([row["evaluate"]])]
        for name, row in record["rows"].items()
    ]
    return _table(["backend", *scores, "training, CPU s", "evaluation, CPU s"], lines)


def made(asked: str) -> str:
    """The table that a mark asks for."""
    kind, *words = asked.split()
    makers: dict[str, Callable[..., str]] = {"methods": of_methods, "data": of_data, "annif": of_annif}
    return makers[kind](*words) if kind in makers else of_score(kind)


def filled(text: str) -> str:
    """A page with fresh tables between its marks."""

    def fill(found: Any) -> str:
        return f"{found[1]}\n{made(found[2])}\n{found[4]}"

    return MARKED.sub(fill, text)
