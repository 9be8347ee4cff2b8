"""The pages of promises name tests that exist, and metrics that the service has."""

import ast
import re

import pytest
from pages import ROOT

PROMISED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (ROOT / "docs/develop/threat-model.md").read_text("utf-8"))


def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(("path", "name"), PROMISED, ids=lambda part: part)
def test_the_test_of_a_promise_exists(path, name):
    found = {one for one in functions(path) if one.startswith("test_")}
    assert found
    assert not name or name in found


def test_promises_are_found():
    assert len(PROMISED) > 25


def test_the_alarms_are_metrics_of_the_service():
    pytest.importorskip("fastapi", reason="the service needs labelwood[serve]")
    source = (ROOT / "src/labelwood/serve/telemetry.py").read_text(encoding="utf-8")
    alarms = re.findall(r"^\| `labelwood_(\w+)`", (ROOT / "docs/runbook.md").read_text("utf-8"), flags=re.MULTILINE)
    assert len(alarms) > 5
    assert [name for name in alarms if f'"{name}"' not in source] == []
