"""benchmarks/scale: a small shape is made, trained and scored for real; limits end a run; records become a table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "benchmarks" / "scale.py").is_file():
    pytest.skip("benchmarks/scale.py is not part of this checkout", allow_module_level=True)


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def run(tmp_path, *words):
    from benchmarks import scale

    places = ["--folder", str(tmp_path / "made"), "--records", str(tmp_path / "records")]
    scale.main(["amazon-670k", "--scale", "0.01", "--test-rows", "500", *places, *words])
    return [json.loads(path.read_text()) for path in sorted((tmp_path / "records").glob("*.json"))]


def test_runs_from_memory_and_from_the_directory_agree(tmp_path):
    run(tmp_path, "--runs", "linear-tree")
    records = run(tmp_path, "--runs", "linear-tree", "--from", "directory", "--max-memory", "300MB")
    assert [record["source"] for record in records] == ["memory", "directory"]
    other, one = records
    assert one["rows"] == 4904
    assert one["P@1"] == other["P@1"] > 0.4
    assert one["model_bytes"] == pytest.approx(other["model_bytes"], rel=0.01)
    assert one["train_cpu_seconds"] > 0
    assert one["train_peak_bytes"] < 300e6


def test_a_run_that_takes_too_much_is_ended_and_said(tmp_path):
    (record,) = run(tmp_path, "--runs", "linear-tree", "--limit-memory", "20MB")
    assert "took more than 0 GB" in record["failure"]
    assert "P@1" not in record


def test_watched_returns_the_code_or_the_reason(tmp_path):
    from benchmarks.versus.measure import OverMemory, watched

    with (tmp_path / "log").open("w") as log:
        assert watched([sys.executable, "-c", "raise SystemExit(3)"], log, {}, 60, None) == 3
        assert watched([sys.executable, "-c", "import time; time.sleep(60)"], log, {}, 0.3, None) is None
        over = watched([sys.executable, "-c", "import time; x = b'1' * 10**8; time.sleep(60)"], log, {}, 60, 10**7)
    assert isinstance(over, OverMemory)


def test_the_table_replaces_what_is_between_the_marks(tmp_path):
    from benchmarks import scale

    page = tmp_path / "page.md"
    page.write_text(f"before\n{scale.BEGIN}\nold\n{scale.END}\nafter\n")
    (tmp_path / "one.json").write_text(
        json.dumps({"shape": "amazon-3m", "scale": 1, "run": "omikuji", "threads": 2, "failure": "too large"})
    )
    scale.write_table(tmp_path, page)
    text = page.read_text()
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| amazon-3m | 1 | omikuji | 2 | too large |" in text


def test_an_unknown_run(tmp_path):
    with pytest.raises(SystemExit, match="--runs must be among linear-tree"):
        run(tmp_path, "--runs", "nothing")
