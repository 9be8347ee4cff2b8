"""The runs that are kept in the repository are those that the results page tells of."""

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
