"""A few seconds of fuzzing with a fixed seed; ``make fuzz`` runs for longer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "fuzz" / "run.py"
COUNTS = {"parsers": 1500, "models": 300, "logs": 400, "arguments": 100, "bodies": 200}


@pytest.mark.parametrize("target", list(COUNTS))
def test_a_bounded_run_has_no_findings(target, tmp_path):
    if target == "bodies":
        pytest.importorskip("fastapi")
    out = tmp_path / "report.json"
    words = [target, "--seed", "0", "--count", COUNTS[target], "--out", out]
    done = subprocess.run([sys.executable, RUN, *map(str, words)], check=False, capture_output=True, text=True)
    report = json.loads(out.read_text()) if out.exists() else {}
    assert done.returncode == 0, json.dumps(report.get("findings"), indent=1) + done.stderr
    assert report["inputs"] == COUNTS[target]
    assert report["accepted"] > 0, "all inputs are refused, so the later checks are not reached"
    assert report["refused"] > 0


def test_crashes_and_exceptions_are_findings(tmp_path):
    """A target that raises and dies: both are reported, and the run continues."""
    (tmp_path / "run.py").write_text(RUN.read_text())
    (tmp_path / "parsers.py").write_text(
        "import os\nn = 0\n"
        "def make(folder):\n"
        "    def run(random):\n"
        "        roll = random.randrange(10)\n"
        "        if roll == 0: os.abort()\n"
        "        if roll == 1: raise KeyError('found')\n"
        "        return roll > 5\n"
        "    return run\n"
    )
    words = [sys.executable, str(tmp_path / "run.py"), "parsers", "--count", "40", "--seed", "3"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert done.returncode == 1
    died = [one for one in report["findings"] if one.get("died") == -6]
    raised = [one for one in report["findings"] if "KeyError('found')" in one.get("error", "")]
    assert died
    assert raised
    again = subprocess.run([*words[:3], "--seed", "3", "--only", str(died[0]["number"])], check=False)
    assert again.returncode == -6
