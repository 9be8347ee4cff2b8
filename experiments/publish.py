"""Make every measured table of the pages from the records: pages for users, the papers, all methods.

    python -m experiments.publish [--from out/experiments]

With --from, the tables, pictures and runs of that folder first replace those of the records. Results of quick runs
are ignored.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from experiments import user_tables
from experiments.common import AT_HAND, ROOT, kept_file
from experiments.grand_table import draw, key, report_of
from experiments.report import Report, page_lines
from experiments.user_tables import RECORDS

TABLES, PAGES = RECORDS / "tables", ROOT / "notebook" / "papers"
RESULTS, FRONTIER = ROOT / "notebook" / "results.md", ROOT / "docs" / "frontier.png"
START, START_SET = ROOT / "docs" / "start.png", "eurlex57k"  # the picture of the start page
PAPERS = {
    "ldsm": "LdSM (Majzoubi and Choromanska 2020)",
    "oplt": "OPLT (Jasinska-Kobus and others 2021)",
    "craftml": "CRAFTML (Siblini, Kuntz and Meyer 2018)",
    "linear_tree_size": "Linear tree size (Lin, Liu and Lin 2024)",
    "gpt": "GPT (Tagami 2017)",
    "fastxml": "FastXML (Prabhu and Varma 2014) and PfastreXML (Jain, Prabhu and Varma 2016)",
    "blend": "The blend",
}
INTRODUCTION = (
    "Full runs on the data at hand, and on generated rows where a heading says so. [The papers' tables](../papers.md) "
    "say which table or figure of the paper each part stands for, and what is not reproduced. Every seed's figures are "
    "in `experiments/records/tables`."
)
MARKS = ("<!-- all figures -->\n", "<!-- end of all figures -->")


def take_over(made: Path) -> list[str]:
    """Copy the tables, pictures and runs of a full run into the records; return the names of the tables."""
    found = []
    from_there = user_tables.options_of(made)
    for name, method in ((name, method) for name in AT_HAND for method in user_tables.METHOD_PAGES):
        path = kept_file(from_there, key(method, name, from_there))
        if path.exists():
            shutil.copy(path, RECORDS / "runs")
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
    """Name and facts of every recorded part of a paper: tables, then figures, then the rest."""

    def place(path: Path) -> tuple[bool, bool, str]:
        return not path.stem.startswith("table"), not path.stem.startswith("figure"), path.stem

    return [(path.stem, json.loads(path.read_text())) for path in sorted((TABLES / paper).glob("*.json"), key=place)]


def page(paper: str) -> str:
    """The page of a paper."""
    lines = [f"# {PAPERS[paper]}: full runs", "", INTRODUCTION, ""]
    for name, facts in reports(paper):
        picture = f"{paper}/{name}.png" if (PAGES / paper / f"{name}.png").exists() else None
        lines += page_lines(facts, picture, level=2)
    return "\n".join(lines)


def start_picture() -> Any:
    """The frontier of one data set."""
    report = Report("start", "publish", "The frontier of one data set", user_tables.options_of(RECORDS))
    rows = [row for row in user_tables.rows() if row.data == START_SET]
    draw(report, rows, [START_SET])
    return report.figure


def all_figures(text: str) -> tuple[str, Any]:
    """The page of all figures with fresh tables between its marks, and the picture of the frontier."""
    report = report_of(user_tables.rows(), user_tables.options_of(RECORDS))
    lines = page_lines(report.facts | {"command": "python -m experiments.publish"}, None, level=2)
    (before, _, rest), after = text.partition(MARKS[0]), text.partition(MARKS[1])[2]
    assert rest, f"the page has no mark {MARKS[0]}"
    return before + MARKS[0] + "\n" + "\n".join(lines[2:]) + "\n" + MARKS[1] + after, report.figure


def main() -> None:
    """Copy a run into the records if asked, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="made", type=Path, help="folder of a full run")
    given = parser.parse_args()
    if given.made:
        print("taken over:", *take_over(given.made))
    pages = {PAGES / f"{paper}.md": page(paper) for paper in PAPERS}
    pages |= {path: user_tables.filled(path.read_text(encoding="utf-8")) for path in user_tables.PAGES}
    pages[RESULTS], frontier = all_figures(RESULTS.read_text(encoding="utf-8"))
    frontier.savefig(FRONTIER, dpi=70)
    start_picture().savefig(START, dpi=90)
    for path, text in pages.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print("wrote", path.relative_to(ROOT))


if __name__ == "__main__":
    main()
