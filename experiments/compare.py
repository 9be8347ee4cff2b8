"""Compare the tables of a run with the recorded ones, figure by figure.

    python -m experiments.compare out/experiments

A figure is a mean over seeds. It is reproduced if the two means differ by no more than the standard deviation of the
recorded seeds, or by half a unit of the last digit shown, whichever is larger. Times are not compared. Figures that
are not reproduced are listed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.publish import PAPERS, TABLES
from experiments.report import digits

TIMED = re.compile(r"\b(s|ms|us|seconds?|time|cost|added|threads?)\b")


def figures(facts: Mapping[str, Any]) -> Iterator[tuple[str, list[float]]]:
    """The place of each figure of a report and its seeds (one if nothing is random), without times."""
    for table in facts["tables"]:
        for place, row in enumerate(table["rows"]):
            first = next(iter(row.values()))
            said = f"{table['title']}, row {place + 1}{'' if isinstance(first, list) else f' ({first})'}"
            for name, cell in row.items():
                if isinstance(cell, list | float) and not TIMED.search(name):
                    yield f"{said}, {name}", cell if isinstance(cell, list) else [cell]


def outside(kept: Mapping[str, Any], made: Mapping[str, Any]) -> tuple[int, list[str]]:
    """The number of recorded figures of a report, and those that are not reproduced."""
    again, kept_figures, found = dict(figures(made)), dict(figures(kept)), []
    for where, seeds in kept_figures.items():
        old, new = float(np.mean(seeds)), float(np.mean(again.get(where, np.nan)))
        room = max(float(np.std(seeds)), 0.5 * 10.0 ** -digits(old))
        if not abs(new - old) <= room * (1 + 1e-9):  # one that is missing is not a number
            found.append(f"{where}: {old:.4f} ± {np.std(seeds):.4f}, now {new:.4f}")
    return len(kept_figures), found


def main() -> int:
    """Compare everything that both folders have."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("made", type=Path, help="folder of a full run")
    given, failed, compared = parser.parse_args(), 0, 0
    for paper in PAPERS:
        for path in sorted((TABLES / paper).glob("*.json")):
            other = given.made / paper / path.name
            made = json.loads(other.read_text()) if other.exists() else {"quick": True}
            if made["quick"]:
                continue
            count, found = outside(json.loads(path.read_text()), made)
            print(f"{paper}/{path.stem}: {count - len(found)} of {count} within the spread")
            for line in found:
                print(f"    {line}")
            failed, compared = failed + len(found), compared + count
    print(f"{compared - failed} of {compared} figures have come out again")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    raise SystemExit(main())
