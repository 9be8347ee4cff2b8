"""The table of docs/moving.md has the figures that benchmarks/imported/compare.py wrote."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ROOT / "benchmarks" / "imported" / "eurlex57k.json"
NAMES = {
    "omikuji": "omikuji 0.5.2, 3 trees",
    "pecos": "PECOS 1.2.8 XR-Linear",
    "napkinxc": "napkinXC 0.7.2 PLT",
    "libmultilabel": "LibMultiLabel 0.10.0, a tree",
    "sklearn": "scikit-learn's one-vs-rest",
}
if not MEASURED.exists():
    pytest.skip("benchmarks is not part of this checkout", allow_module_level=True)
ROWS = json.loads(MEASURED.read_text())["rows"]


@pytest.mark.parametrize("row", ROWS, ids=[row["tool"] for row in ROWS])
def test_a_line_of_the_table(row):
    cells = [
        NAMES[row["tool"]],
        f"{row['train_rows']:,}",
        f"{row['same_rows']:,}",
        f"{row['tied_rows']:,}",
        f"{row['largest_score_difference']:.0e}",
        f"{row['times_as_fast']:.1f}",
    ]
    assert f"| {' | '.join(cells)} |" in (ROOT / "docs" / "moving.md").read_text()
    assert row["same_rows"] + row["tied_rows"] == row["rows"]
    assert row["rows_that_differ"] == 0
