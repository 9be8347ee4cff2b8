"""The guard against slower code: what it reads from callgrind's files, and what it refuses."""

import importlib.util
import json
from pathlib import Path

HERE = Path(__file__).resolve().parents[2] / "benchmarks" / "instructions"
spec = importlib.util.spec_from_file_location("count_instructions", HERE / "count.py")
counting = importlib.util.module_from_spec(spec)
spec.loader.exec_module(counting)

DUMP = """version: 1
desc: Trigger: Client Request: batch
events: Ir
summary: 7

fn=(1)
1 1234
totals: 1234
"""


def test_counts_are_read():
    assert counting.parse([DUMP, "desc: Trigger: Program termination\ntotals: 9\n"]) == {"batch": 1234}


def test_three_percent_more_is_refused():
    base = {"batch": 1000, "load": 1000}
    assert counting.judge({"batch": 1030, "load": 500}, base) == []
    assert counting.judge({"batch": 1031, "load": 1000}, base) == ["batch"]
    assert counting.judge({"batch": 1000}, base) == ["load"]


def test_the_budget_has_every_task():
    budget = json.loads((HERE / "budget.json").read_text())
    assert set(budget["instructions"]) == {"train", "batch", "single", "load", "encode", "learn"}
    assert min(budget["instructions"].values()) > 100_000
