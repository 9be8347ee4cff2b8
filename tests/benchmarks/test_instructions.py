"""The guard against slower code: what it reads from callgrind's files, and what it refuses."""

import importlib.util
import json
import os
import shutil
from pathlib import Path

import pytest

import labelwood

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


SLOWED = """
from labelwood.methods.label_tree.linear_tree import LinearTree as _slowed

_once = _slowed.predict_topk
_slowed.predict_topk = lambda *given, **named: (_once(*given, **named), _once(*given, **named))[1]
"""


@pytest.mark.skipif("LABELWOOD_GUARD" not in os.environ, reason="takes minutes; run it with make test-guard")
@pytest.mark.timeout(1800)
def test_the_guard_fails_on_a_search_done_twice(tmp_path):
    slowed = tmp_path / "labelwood"
    shutil.copytree(Path(labelwood.__file__).parent, slowed, ignore=shutil.ignore_patterns("__pycache__"))
    with (slowed / "__init__.py").open("a") as module:
        module.write(SLOWED)
    base, counts = counting.count(), counting.count(str(tmp_path))
    print({name: round(counts[name] / most, 3) for name, most in base.items()})
    assert counting.judge(base, base) == []
    assert {"batch", "single"} <= set(counting.judge(counts, base)) <= {"batch", "single", "load"}
