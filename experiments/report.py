"""The results of an experiment: tables as JSON and Markdown, and a picture.

JSON holds the figure of every seed. Markdown is made from the JSON alone, so a recorded JSON gives the same page again.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.common import GENERATED, Options

NOT_AT_HAND = "Published figures of sets that are not at hand"


def _generated(row: Mapping[str, Any]) -> bool:
    return str(row.get("data", "")).endswith(GENERATED)


def _without_paper(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: cell for name, cell in row.items() if not name.startswith("paper")}


def shown(value: Any) -> str:
    """The text of a cell: mean and standard deviation of a list of figures, otherwise the value."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return _number(value, value)
    if not isinstance(value, list):
        return str(value)
    mean, spread = float(np.mean(value)), float(np.std(value))
    if len(value) == 1:
        return _number(mean, mean)
    return f"{_number(mean, mean)} ± {_number(spread, mean)}"


def digits(value: float) -> int:
    """The number of digits after the point with which a figure is shown."""
    return 2 if abs(value) >= 1 else 3 if abs(value) >= 0.1 else 4


def _number(value: float, like: float) -> str:
    return f"{value:.{digits(like)}f}"


@dataclass
class Report:
    """Tables and one picture, named after the table or figure that they reproduce."""

    paper: str
    name: str
    title: str
    options: Options
    notes: list[str] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    figure: Any = None

    def table(self, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add a table, if it has rows. The first row gives the columns; a list of figures has one figure per seed.

        Generated stand-ins go into a table of their own, without the columns of a paper's figures.
        """
        real = [dict(row) for row in rows if not _generated(row)]
        made = [_without_paper(row) for row in rows if _generated(row)]
        for name, part in ((title, real), (f"{title}: generated rows, not the sets that they are named after", made)):
            if part:
                self.tables.append({"title": name, "rows": part})

    def axes(self, n_columns: int, n_rows: int = 1, *, width: float = 4.2, height: float = 3.4) -> list[Any]:
        """Axes to draw in, row by row."""
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
        return list(self.figure.subplots(n_rows, n_columns, squeeze=False).ravel())

    def grid(self, count: int, *, across: int = 3) -> list[Any]:
        """``count`` axes, at most ``across`` in a row."""
        axes = self.axes(min(count, across), math.ceil(count / across))
        for axis in axes[count:]:
            axis.remove()
        return axes[:count]

    def markdown(self) -> str:
        """The page."""
        return "\n".join(page_lines(self.facts, self.figure and f"{self.name}.png"))

    @property
    def facts(self) -> dict[str, Any]:
        """The content of the JSON file."""
        return {
            "title": self.title, "command": self.command, "quick": self.options.quick,
            "seeds": list(self.options.seeds), "notes": self.notes, "tables": self.tables,
        }  # fmt: skip

    @property
    def command(self) -> str:
        """The command that made the report, without the folder it was written to."""
        spec, flags = sys.modules["__main__"].__spec__, list(sys.argv[1:])
        while "--out" in flags:
            at = flags.index("--out")
            del flags[at : at + 2]
        return " ".join(["python", "-m", spec.name if spec else self.name, *flags])

    def write(self) -> None:
        """Write JSON, Markdown and the picture, and print the Markdown."""
        folder = self.options.out / self.paper
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.json").write_text(json.dumps(self.facts, indent=1) + "\n")
        (folder / f"{self.name}.md").write_text(self.markdown())
        if self.figure is not None:
            self.figure.savefig(folder / f"{self.name}.png", dpi=100)
        print(self.markdown(), flush=True)
        kinds = ("json", "md") if self.figure is None else ("json", "md", "png")
        print("wrote", *(f"{self.paper}/{self.name}.{kind}" for kind in kinds), file=sys.stderr, flush=True)


def page_lines(facts: Mapping[str, Any], picture: str | None, level: int = 1) -> list[str]:
    """A report's JSON as lines of Markdown; its title is a heading of this level."""
    quick = ["**A quick run: few rows and trees. It shows that it runs, not what it gives.**", ""]
    lines = [f"{'#' * level} {facts['title']}", "", *(quick if facts["quick"] else [])]
    several = f", mean ± standard deviation of {len(facts['seeds'])} seeds." if len(facts["seeds"]) > 1 else "."
    lines += [f"`{facts['command']}`{several}", ""]
    lines += [line for note in facts["notes"] for line in (note, "")]
    for table in facts["tables"]:
        lines += [f"{'#' * (level + 1)} {table['title']}", "", *markdown_table(table["rows"]), ""]
    if picture:
        lines += [f"![{facts['title']}]({picture})", ""]
    return lines


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of a Markdown table."""
    if not rows:
        return ["(nothing)"]
    head = list(rows[0])
    cells = [head, ["---"] * len(head), *([shown(row.get(name)) for name in head] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in cells]


def draw(axes: Any, x: Sequence[float], runs: Sequence[Sequence[float]], label: str = "", **style: Any) -> None:
    """A line through the means with the seeds' standard deviation."""
    mean, spread = [np.mean(row) for row in runs], [np.std(row) for row in runs]
    axes.errorbar(x, mean, spread, label=label or None, **{"marker": "o", "capsize": 3, **style})
