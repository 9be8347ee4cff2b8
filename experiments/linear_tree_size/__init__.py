"""Exploring space efficiency in a tree-based linear model: Lin, Liu and Lin, 2024."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from experiments.common import ROOT, Options, Split, parse
from experiments.report import Report
from labelwood.data import save

SETS = ("bibtex", "delicious", "eurlex57k", "yso_finna_en")


def apart(script: str, *job: Any) -> dict[str, Any]:
    """What the script's ``one`` returns for a job, in a process of its own: peak memory is the process's."""
    command = [sys.executable, "-m", f"{__name__}.{script}", "--one", json.dumps(job, default=str)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return json.loads(done.stdout)


def saved(options: Options, folder: Path) -> Iterator[tuple[Split, Path]]:
    """Every set, and a file with its training rows for other processes to read."""
    for name in options.sets:
        split = options.load(name)
        path = folder / "train.npz"
        save(path, split.train)
        yield split, path


def main(
    script: str,
    doc: str | None,
    titles: tuple[str, str],
    *,
    one: Callable[..., dict[str, Any]],
    table: Callable[[Options, Path], list[dict[str, Any]]],
    extra: Callable[[Any], None],
    **given: Any,
) -> None:
    """Run a script of jobs apart: one of them if it is asked for, else all, into a report with one table."""

    def flags(parser: Any) -> None:
        extra(parser)
        parser.add_argument("--one", help="one run as JSON: what this script calls itself with")

    options = parse(doc, sets=SETS, extra=flags, **given)
    if options.extra.one:
        print(json.dumps(one(*json.loads(options.extra.one))))
        return
    report = Report("linear_tree_size", script, titles[0], options)
    with tempfile.TemporaryDirectory() as folder:
        report.table(titles[1], table(options, Path(folder)))
    report.write()
