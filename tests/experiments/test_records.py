"""The runs that are kept in the repository are those that the pages tell of."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "experiments" / "records"
if not RECORDS.is_dir():
    pytest.skip("experiments are not part of this checkout", allow_module_level=True)


def test_the_table_of_all_methods_is_made_of_the_records(tmp_path):
    pytest.importorskip("matplotlib")
    shutil.copytree(RECORDS / "runs", tmp_path / "runs")
    page = Path(shutil.copy(ROOT / "docs" / "results.md", tmp_path))
    command = [sys.executable, "-m", "experiments.grand_table", "--kept", "--out", str(tmp_path)]
    subprocess.run(
        [*command, "--versus", str(RECORDS), "--into", str(page)], cwd=ROOT, check=True, capture_output=True
    )
    assert page.read_text(encoding="utf-8") == (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def publish():
    sys.path.insert(0, str(ROOT))
    import experiments.publish

    return experiments.publish


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
