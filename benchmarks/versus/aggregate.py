"""Turn measurements into table rows: best and median over the rounds, and ratios against a baseline row.

A record is the result of one run of one configuration. It has the keys ``configuration``, ``threads``,
``round``, ``of`` (the number of rounds planned) and ``run``, and either the fields of the driver's two result
files and ``scores``, or a ``failure`` with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

Record = Mapping[str, Any]

# For each of these fields the best round has the smallest value; other load on the machine can only add.
MEASURED = (
    "train_seconds",
    "train_cpu_seconds",
    "load_seconds",
    "batch_ms",
    "one_ms_p50",
    "one_ms_p99",
    "model_bytes",
    "train_peak_bytes",
    "predict_peak_bytes",
)


@dataclass
class Row:
    """One configuration at one thread count; ``best``, ``median`` and ``ratio`` map a field to its value."""

    configuration: str
    threads: int
    rounds: int = 0
    of: int = 0
    best: dict[str, float] = field(default_factory=dict)
    median: dict[str, float] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    ratio: dict[str, float] = field(default_factory=dict)
    failure: str | None = None
    earlier_run: bool = False


def summarise(records: Iterable[Record], names: Sequence[str]) -> list[Row]:
    """One row per (threads, configuration) with records, by threads, then in the order of ``names``."""
    groups: dict[tuple[int, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["threads"], record["configuration"]), []).append(record)
    last_run = max((record["run"] for group in groups.values() for record in group), default="")
    rank = {name: i for i, name in enumerate(names)}
    order = sorted(groups, key=lambda key: (key[0], rank.get(key[1], len(rank)), key[1]))
    return [_row(name, threads, groups[threads, name], last_run) for threads, name in order]


def _row(name: str, threads: int, group: Sequence[Record], last_run: str) -> Row:
    row = Row(name, threads, earlier_run=all(record["run"] != last_run for record in group))
    measured = [record for record in group if "failure" not in record]
    row.rounds, row.of = len(measured), max(record["of"] for record in group)
    row.failure = next((str(record["failure"]) for record in group if "failure" in record), None)
    if measured:
        for field_name in MEASURED:
            values = [float(record[field_name]) for record in measured]
            row.best[field_name], row.median[field_name] = min(values), median(values)
        # A peer may draw other trees in each round, so the scores differ a little; report the median.
        keys = measured[0]["scores"]
        row.scores = {key: median(float(record["scores"][key]) for record in measured) for key in keys}
    return row


def add_ratios(rows: Sequence[Row], against: str) -> None:
    """Set ``ratio``: a row's best divided by the best of the row ``against`` at the same thread count."""
    for row in rows:
        base = next((b for b in rows if (b.configuration, b.threads) == (against, row.threads)), None)
        if base is None or not base.best:
            continue
        row.ratio = {name: value / base.best[name] for name, value in row.best.items() if base.best[name] > 0}


def is_dominated(row: Row, rows: Iterable[Row], measure: str, score: str) -> bool:
    """True if another row of the same thread count is as good in both and better in at least one."""
    if not row.best:
        return True
    mine = row.best[measure], row.scores[score]
    return any(
        other.best[measure] <= mine[0]
        and other.scores[score] >= mine[1]
        and (other.best[measure], other.scores[score]) != mine
        for other in rows
        if other is not row and other.best and other.threads == row.threads
    )
