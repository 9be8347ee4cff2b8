"""What Prometheus reads."""

from __future__ import annotations

import platform
import re

from labelwood import __version__
from labelwood.serve.telemetry import Metrics


def test_types_and_information(serving, model):
    service = serving(model)
    service.learn(1, 2)
    text = service.http.get("/metrics").text
    kinds = dict(re.findall(r"^# TYPE labelwood_(\w+) (\w+)$", text, re.MULTILINE))
    counters = {name for name, kind in kinds.items() if kind == "counter"}
    assert counters == {
        "requests_total", "examples_learned", "snapshots_failed", "clock_went_back",
        "connections_shed", "connections_refused", "connections_timed_out",
        "refits_taken", "refits_not_taken",
    }  # fmt: skip
    assert kinds["queue_length"] == kinds["connections_open"] == "gauge"
    assert kinds["request_seconds"] == "histogram"
    assert f'labelwood_build_info{{version="{__version__}",python="{platform.python_version()}"}} 1' in text
    found = re.search(r'^labelwood_model_info\{method="online-tree",takes="text",trained_at="2[^"]+",learns="yes"\} 1$',
                      text, re.MULTILINE)  # fmt: skip
    assert found
    assert service.metric("connections_open") == 1


def test_values_that_every_process_adds_to(tmp_path):
    writer, reader = (Metrics(tmp_path / "metrics", row=row, n_rows=2) for row in range(2))
    writer.add("connections_open", 2)
    reader.add("connections_open", 3)
    reader.add("connections_open", -1)
    reader.note("suggest", 200, 0.25)
    assert "labelwood_connections_open 4\n" in writer.render({})
    assert (reader.added("connections_open"), writer.gauges()["suggest_p99_seconds"]) == (2, 0.25)


def test_labels_are_escaped():
    assert 'labelwood_model_info{name="a\\"b\\\\c\\nd"} 1\n' in Metrics().render({"model": {"name": 'a"b\\c\nd'}})
