"""The pages of the site that tell what full runs gave: one for each paper, made of the tables kept in the repository.

    python -m experiments.publish [--from out/experiments]

With --from, the tables and pictures of that run are taken over first, in place of those kept of the same parts; what
a quick run made is left where it is.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from experiments.common import ROOT
from experiments.report import page_lines

TABLES, PAGES = ROOT / "experiments" / "records" / "tables", ROOT / "notebook" / "papers"
PAPERS = {
    "ldsm": "LdSM (Majzoubi and Choromanska 2020)",
    "oplt": "OPLT (Jasinska-Kobus and others 2021)",
    "craftml": "CRAFTML (Siblini, Kuntz and Meyer 2018)",
    "linear_tree_size": "Linear tree size (Lin, Liu and Lin 2024)",
    "gpt": "GPT (Tagami 2017)",
    "blend": "The blend",
}
INTRODUCTION = (
    "What full runs gave on the data at hand, and on generated rows where a heading says so. Which table and figure "
    "of the paper each part stands for, and what is not reproduced, is told in [the papers' tables](../papers.md). "
    "Every seed's figures are in `experiments/records/tables`."
)


def take_over(made: Path) -> list[str]:
    """Copy the tables and pictures of a full run to where they are kept; returns their names."""
    found = []
    for paper in PAPERS:
        for path in sorted((made / paper).glob("*.json")):
            if json.loads(path.read_text())["quick"]:
                continue
            for source, folder in ((path, TABLES), (path.with_suffix(".png"), PAGES)):
                if source.exists():
                    (folder / paper).mkdir(parents=True, exist_ok=True)
                    shutil.copy(source, folder / paper)
            found.append(f"{paper}/{path.stem}")
    return found


def reports(paper: str) -> list[tuple[str, dict[str, Any]]]:
    """Name and facts of what is kept of a paper: tables, then figures, then the rest."""

    def place(path: Path) -> tuple[bool, bool, str]:
        return not path.stem.startswith("table"), not path.stem.startswith("figure"), path.stem

    return [
        (path.stem, json.loads(path.read_text()))
        for path in sorted((TABLES / paper).glob("*.json"), key=place)
    ]


def page(paper: str) -> str:
    """The page of a paper."""
    lines = [f"# {PAPERS[paper]}: full runs", "", INTRODUCTION, ""]
    for name, facts in reports(paper):
        picture = f"{paper}/{name}.png" if (PAGES / paper / f"{name}.png").exists() else None
        lines += page_lines(facts, picture, level=2)
    return "\n".join(lines)


def main() -> None:
    """Take over, and write the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="made", type=Path, help="folder of a full run")
    given = parser.parse_args()
    if given.made:
        print("taken over:", *take_over(given.made))
    for paper in PAPERS:
        if reports(paper):
            (PAGES / f"{paper}.md").write_text(page(paper), encoding="utf-8")
            print("wrote", (PAGES / f"{paper}.md").relative_to(ROOT))


if __name__ == "__main__":
    main()
