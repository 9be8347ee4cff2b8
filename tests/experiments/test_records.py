"""The runs that are kept in the repository are those that the pages tell of."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "experiments" / "records"
if not RECORDS.is_dir():
    pytest.skip("experiments are not part of this checkout", allow_module_level=True)


@pytest.fixture(scope="module")
def publish():
    sys.path.insert(0, str(ROOT))
    import experiments.publish

    return experiments.publish


USERS = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "methods").glob("*.md"), ROOT / "README.md"])
FIGURE = re.compile(r"[\d,]*\d\.\d+( ?(±|to|/) ?[\d.]+)*( ?(s|ms|us|MB|GB|%|x))?")
MARKED = re.compile(r"<!-- records: ([^>]+) -->\n.*?<!-- end of records -->", re.DOTALL)


@pytest.fixture
def user_tables(publish):
    import experiments.user_tables

    return experiments.user_tables


@pytest.mark.parametrize("page", USERS, ids=lambda page: page.stem)
def test_the_tables_of_users_are_made_of_the_records(page, user_tables):
    text = page.read_text(encoding="utf-8")
    assert user_tables.filled(text) == text, "python -m experiments.publish makes the tables anew"


@pytest.mark.parametrize("page", USERS, ids=lambda page: page.stem)
def test_a_page_for_users_has_no_other_measured_table(page):
    """A line of a table outside of the marks with two figures or more."""
    rest = MARKED.sub("", page.read_text(encoding="utf-8"))
    cells = [[cell.strip() for cell in line.split("|")] for line in rest.splitlines() if line.startswith("|")]
    measured = [row for row in cells if sum(FIGURE.fullmatch(cell) is not None for cell in row) > 1]
    assert measured == []


def test_a_changed_figure_is_noticed(user_tables):
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    shown = re.search(r"\| (\d+\.\d+) ±", text)
    assert user_tables.filled(text.replace(shown[1], "12.34")) == text


def test_the_page_on_figures_lists_every_page_with_a_table():
    listed = (ROOT / "docs" / "develop" / "figures.md").read_text(encoding="utf-8")
    for page in USERS:
        if MARKED.search(page.read_text(encoding="utf-8")):
            assert f"](../{page.relative_to(ROOT / 'docs').as_posix()})" in listed, page.name


def test_all_figures_are_made_of_the_records(publish):
    pytest.importorskip("matplotlib")
    text = publish.RESULTS.read_text(encoding="utf-8")
    assert publish.all_figures(text)[0] == text, "python -m experiments.publish makes the tables anew"


def test_every_method_and_data_set_is_kept(user_tables):
    from experiments.common import AT_HAND
    from experiments.settings import CHOSEN

    kept = {(row.data, row.method) for row in user_tables.rows()}
    assert {(name, method) for name in AT_HAND for method in CHOSEN} <= kept
    assert set(CHOSEN) == set(user_tables.METHOD_PAGES)


def test_results_are_short():
    assert len((ROOT / "docs" / "results.md").read_text(encoding="utf-8").splitlines()) <= 100


KEPT = sorted(path.relative_to(RECORDS / "tables").as_posix() for path in RECORDS.glob("tables/*/*.json"))


def test_the_pages_of_the_papers_are_made_of_the_records(publish):
    for paper in publish.PAPERS:
        assert publish.reports(paper), paper
        written = (ROOT / "notebook" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
        assert written == publish.page(paper), f"python -m experiments.publish writes {paper}.md anew"


@pytest.mark.parametrize("name", KEPT)
def test_kept_tables_are_of_full_runs_over_several_seeds(name):
    facts = json.loads((RECORDS / "tables" / name).read_text())
    assert not facts["quick"]
    assert facts["command"].startswith("python -m experiments.")
    assert "--out" not in facts["command"]
    # Without figures of seeds nothing is drawn; later rows may be levels that only some of the seeds' trees reach.
    firsts = [list(table["rows"][0].values()) for table in facts["tables"]]
    of_seeds = [cell for row in firsts for cell in row if isinstance(cell, list)]
    assert len(facts["seeds"]) >= 3 or not of_seeds
    assert all(len(cell) >= len(facts["seeds"]) for cell in of_seeds)


def test_the_table_of_all_methods_is_of_several_seeds():
    kept = sorted(RECORDS.glob("runs/*.json"))
    assert kept
    assert [path.name for path in kept if len(json.loads(path.read_text())["seeds"]) < 3] == []


def test_every_part_is_kept_as_its_plain_command_makes_it():
    """On all of its data sets; the table of all methods has records of its own."""
    from experiments.run import PARTS

    commands = {json.loads((RECORDS / "tables" / name).read_text())["command"] for name in KEPT}
    assert commands == {f"python -m experiments.{part}" for part in PARTS if part != "grand_table"}


def test_a_quick_run_is_not_taken_over(publish, tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "TABLES", tmp_path / "tables")
    monkeypatch.setattr(publish, "PAGES", tmp_path / "pages")
    made = tmp_path / "made" / "ldsm"
    made.mkdir(parents=True)
    facts = {"title": "T", "command": "c", "quick": True, "seeds": [0, 1, 2], "notes": [], "tables": []}
    (made / "figure4.json").write_text(json.dumps(facts))
    assert publish.take_over(tmp_path / "made") == []
    (made / "figure4.json").write_text(json.dumps(facts | {"quick": False}))
    (made / "figure4.png").write_bytes(b"picture")
    assert publish.take_over(tmp_path / "made") == ["ldsm/figure4"]
    assert "![T](ldsm/figure4.png)" in publish.page("ldsm")


def test_a_figure_comes_out_again_within_its_spread(publish):
    from experiments.compare import outside

    def report(**cells):
        return {"tables": [{"title": "T", "rows": [{"data": "bibtex", **cells}]}]}

    kept = report(**{"P@1": [60.0, 62.0], "P@5": [30.0, 30.0], "train, CPU s": [1.0, 1.0]})
    assert outside(kept, kept) == (2, [])
    other = report(**{"P@1": [61.0, 63.0], "P@5": [30.004, 30.0], "train, CPU s": [9.0, 9.0]})
    assert outside(kept, other) == (2, [])
    count, found = outside(kept, report(**{"P@1": [61.0, 63.2]}))
    assert count == 2
    assert [line.partition(":")[0] for line in found] == ["T, row 1 (bibtex), P@1", "T, row 1 (bibtex), P@5"]
