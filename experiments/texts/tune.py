"""`labelwood tune` on texts against the default model, both judged on test rows that neither has seen.

    python -m experiments.texts.tune --sets yso_finna_fi_full [--rows 100000] [--budget 10m]

The first rows of the training file are tuned on and trained on. The commands are those of a user.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from experiments.common import KS, Options, find, parse
from experiments.report import Report

MAIN = "from labelwood.cli import main; raise SystemExit(main())"


def first_lines(source: Path, target: Path, n_lines: int) -> Path:
    """Copy the first lines of a compressed file."""
    with lzma.open(source, "rt", encoding="utf-8") as lines, target.open("w", encoding="utf-8") as out:
        out.writelines(islice(lines, n_lines))
    return target


def labelwood(*words: object) -> dict[str, Any]:
    """The JSON that a command prints."""
    command = [sys.executable, "-c", MAIN, *map(str, words), "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compared(folder: Path, options: Options) -> list[dict[str, Any]]:
    """The default model and the tuned one: the winner's flags, and P@k on the test rows."""
    n_rows = 2000 if options.quick else options.extra.rows
    with tempfile.TemporaryDirectory() as place:
        train = first_lines(folder / "train.jsonl.xz", Path(place, "train.jsonl"), n_rows)
        threads = ("--n-jobs", options.threads)
        labelwood("train", train, "-o", Path(place, "default"), *threads)
        begin = time.monotonic()
        budget = "20s" if options.quick else options.extra.budget
        tuned = labelwood("tune", train, "--metric", "P@1", "--budget", budget, *threads, "-o", Path(place, "tuned"))
        seconds = time.monotonic() - begin
        rows = []
        for name, chosen in (("default", "linear-tree"), ("tuned", tuned["why"].partition(" has the highest")[0])):
            found = labelwood("eval", Path(place, name), folder / "test.jsonl.xz", *threads)
            quality = {f"P@{k}": [found[f"P@{k}"]] for k in KS}
            rows.append({"model": name, "flags": chosen, **quality, "seconds": [seconds] if name == "tuned" else None})
    return rows


def main() -> None:
    """Run every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--rows", type=int, default=100_000)
        parser.add_argument("--budget", default="10m")

    options = parse(__doc__, sets=("yso_finna_fi_full",), seeds=1, extra=extra)
    report = Report("texts", "tune", "Tuned texts", options)
    for name in options.sets:
        folder = find(options.data, name)
        if folder is None:
            raise SystemExit(f"{name}: no such folder below {options.data}; --data names another place")
        report.table(f"{name}, the first {options.extra.rows:,} rows", compared(folder, options))
    report.write()


if __name__ == "__main__":
    main()
