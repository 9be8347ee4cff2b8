"""A short soak test; ``make soak MINUTES=60`` runs a long one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "tools" / "soak.py"


def test_predictions_stay_right_and_memory_stays_flat():
    pytest.importorskip("fastapi")
    done = subprocess.run([sys.executable, SOAK, "--minutes", "0.15"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert min(report[name] for name in ("learned", "suggested", "saved", "loaded", "swapped", "served")) > 0
