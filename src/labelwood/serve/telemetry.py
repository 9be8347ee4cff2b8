"""Counts, latencies and gauges of all processes of a service, for Prometheus and the page.

Every process writes to its own row of a table in a mapped file; any process can add up all rows.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROUTES = ("suggest", "suggest-batch", "learn", "labels", "explain", "model", "annif", "other")
_STATUSES = ("2xx", "3xx", "4xx", "5xx")
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_RECENT = 1024
_PREFIX = "labelwood_"
_COUNTERS = frozenset(
    {"examples_learned", "snapshots_failed", "clock_went_back", "connections_shed", "connections_refused",
     "connections_timed_out", "refits_taken", "refits_not_taken"}
)  # fmt: skip
GAUGES = {
    "examples_learned": "examples learned since the state began",
    "labels": "labels known to the model",
    "log_bytes": "size of the log on disk",
    "log_sequence": "number of the last record in the log",
    "queue_length": "records waiting to be learned",
    "learning_refused": "1 while learning is refused, for example because the disk is full",
    "learning_recoveries": "times that the state was rebuilt because a record could not be applied",
    "records_skipped": "records of the log that cannot be applied and are skipped",
    "reload_failed": "1 while the model directory holds a model that could not be taken up",
    "snapshots_failed": "snapshots that could not be written",
    "clock_went_back": "frames written while the clock was behind the time of an earlier frame",
    "drift_examples": "number of examples that the drift figures cover",
    "drift_precision_at_1": "progressive P@1 over the last examples learned",
    "drift_new_label_rate": "new labels per example over the last examples learned",
    "refits_taken": "refits that were taken up since the start",
    "refits_not_taken": "refits that failed or did worse on the last examples, since the start",
    "refit_running": "1 while the batch model of a living model is trained again",
    "batch_rows": "examples that the batch model was trained on",
    "batch_age_rows": "examples learned since those of the batch model",
    "refit_quality_before": "quality of the last examples before the last refit: mean of P@1, P@3 and P@5",
    "refit_quality_after": "quality of the last examples with the model of the last refit",
    "drift_alarm": "1 while drift_precision_at_1 is below the alarm threshold",
}

ADDED = {
    "connections_open": "connections that are open",
    "connections_shed": "connections without a token that were closed to make room",
    "connections_refused": "connections that found no room",
    "connections_timed_out": "connections closed because a request did not arrive in time",
}

_ROUTE_WIDTH = len(_STATUSES) + len(_BUCKETS) + 2
_N_COUNTS = len(ROUTES) * _ROUTE_WIDTH
_BASE = {route: number * _ROUTE_WIDTH for number, route in enumerate(ROUTES)}
_CURSOR = _N_COUNTS + len(GAUGES)
_WIDTH = _N_COUNTS + len(GAUGES) + 1 + _RECENT + len(ADDED)
_ADDED_AT = {name: position - len(ADDED) for position, name in enumerate(ADDED)}


class Metrics:
    """The row of one process in the table at ``path``; without a path, a table in memory."""

    def __init__(self, path: Path | None = None, *, row: int = 0, n_rows: int = 1) -> None:
        if path is None:
            self._table: npt.NDArray[np.float64] = np.zeros((n_rows, _WIDTH))
        else:
            if not path.exists():
                np.zeros((n_rows, _WIDTH)).tofile(path)
            self._table = np.memmap(path, np.float64, "r+", shape=(n_rows, _WIDTH))
        self._table[row] = 0
        # a cell of an array takes several times as long to change
        self._row: memoryview[float] = memoryview(self._table[row]).cast("B").cast("d")

    def note(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        row, base = self._row, _BASE[route]
        row[base + status // 100 - 2] += 1
        row[base + len(_STATUSES) + bisect.bisect_left(_BUCKETS, seconds)] += 1
        row[base + _ROUTE_WIDTH - 1] += seconds
        if route == "suggest":
            row[_CURSOR + 1 + int(row[_CURSOR]) % _RECENT] = seconds
            row[_CURSOR] += 1

    def set_gauges(self, values: Mapping[str, float]) -> None:
        """Set the gauges. Only one process of a service may do so: the rows are added up."""
        for position, name in enumerate(GAUGES):
            self._row[_N_COUNTS + position] = values.get(name, 0.0)

    def add(self, name: str, amount: int) -> None:
        """Add to one of the values that every process counts."""
        self._row[_ADDED_AT[name]] += amount

    def added(self, name: str) -> float:
        """What this process has added to a value."""
        return self._row[_ADDED_AT[name]]

    def gauges(self) -> dict[str, float]:
        """The gauges, and the median and 99th percentile of recent suggestions in seconds."""
        values = self._table[:, _N_COUNTS : _N_COUNTS + len(GAUGES)].sum(axis=0).tolist()
        recent = self._table[:, _N_COUNTS + len(GAUGES) + 1 : -len(ADDED)]
        recent = recent[recent > 0]
        p50, p99 = np.percentile(recent, [50, 99]).tolist() if len(recent) else (0.0, 0.0)
        return {**dict(zip(GAUGES, values, strict=True)), "suggest_p50_seconds": p50, "suggest_p99_seconds": p99}

    def render(self, information: Mapping[str, Mapping[str, object]]) -> str:
        """All counts, latencies and gauges in the text format of Prometheus.

        ``information`` has the labels of metrics whose value is always 1, by the name of the metric.
        """
        parts = [*self._render_requests(), *self._render_values(), *_render_information(information)]
        return "\n".join(parts) + "\n"

    def _render_values(self) -> Iterable[str]:
        values = self.gauges() | {name: self._table[:, place].sum() for name, place in _ADDED_AT.items()}
        for name, text in (GAUGES | ADDED).items():
            yield f"# HELP {_PREFIX}{name} {text}"
            yield f"# TYPE {_PREFIX}{name} {'counter' if name in _COUNTERS else 'gauge'}"
            yield f"{_PREFIX}{name} {values[name]:.10g}"

    def _render_requests(self) -> Iterable[str]:
        counts = self._table[:, :_N_COUNTS].sum(axis=0).reshape(len(ROUTES), -1)
        name = _PREFIX + "requests_total"
        yield f"# HELP {name} requests by route and status"
        yield f"# TYPE {name} counter"
        for route, row in zip(ROUTES, counts, strict=True):
            for status, count in zip(_STATUSES, row.tolist(), strict=False):
                yield f'{name}{{route="{route}",status="{status}"}} {count:.0f}'
        name = _PREFIX + "request_seconds"
        yield f"# HELP {name} time to answer, by route"
        yield f"# TYPE {name} histogram"
        for route, row in zip(ROUTES, counts, strict=True):
            steps = np.cumsum(row[len(_STATUSES) : -1]).tolist()
            for bound, count in zip([*map(str, _BUCKETS), "+Inf"], steps, strict=True):
                yield f'{name}_bucket{{route="{route}",le="{bound}"}} {count:.0f}'
            yield f'{name}_sum{{route="{route}"}} {row[-1]:.9g}'
            yield f'{name}_count{{route="{route}"}} {steps[-1]:.0f}'


def _render_information(information: Mapping[str, Mapping[str, object]]) -> Iterable[str]:
    for name, labels in information.items():
        shown = ",".join(f'{label}="{_escaped(str(value))}"' for label, value in labels.items())
        yield f"# HELP {_PREFIX}{name}_info facts about the {name}; the value is always 1"
        yield f"# TYPE {_PREFIX}{name}_info gauge"
        yield f"{_PREFIX}{name}_info{{{shown}}} 1"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
