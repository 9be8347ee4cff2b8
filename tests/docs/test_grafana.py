"""The board for Grafana asks for metrics that the service has."""

import json
import re

import pytest
from pages import ROOT

pytest.importorskip("fastapi", reason="the service needs labelwood[serve]")

from labelwood.serve.telemetry import Metrics

BOARD = json.loads((ROOT / "docs" / "grafana.json").read_text(encoding="utf-8"))


def expressions():
    panels = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    return [*panels, *(one["query"] for one in BOARD["templating"]["list"] if one["type"] == "query")]


def test_every_metric_exists():
    rendered = Metrics().render({"model": {}, "build": {}})
    known = set(re.findall(r"^(labelwood_\w+)", rendered, flags=re.MULTILINE))
    asked = {name for text in expressions() for name in re.findall(r"labelwood_\w+", text)}
    assert len(asked) > 10
    assert asked - known == set()


def test_every_label_of_a_metric_exists():
    rendered = Metrics().render({})
    for text in expressions():
        for name, labels in re.findall(r"(labelwood_\w+)\{([^}]*)\}", text):
            for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
                assert re.search(rf'^{name}\{{[^}}]*{label}="{value}"', rendered, flags=re.MULTILINE), text


def test_panels_do_not_overlap():
    places = [tuple(panel["gridPos"][side] for side in "xywh") for panel in BOARD["panels"]]
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(places)
    cells = [(x + dx, y + dy) for x, y, w, h in places for dx in range(w) for dy in range(h)]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
