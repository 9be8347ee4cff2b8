"""From measurements to rows: best and median over the rounds, and ratios against one of the rows.

A record is what one run of one configuration gave: the fields of the driver's two result files, ``scores``,
and which ``configuration``, ``threads``, ``round`` (``of`` how many) and ``run`` it was; or, instead of the
figures, a ``failure`` with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

Record = Mapping[str, Any]

# Best of the rounds is the smallest for all of these; other load on the machine only ever adds.
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
    """One configuration at one thread count; ``best``, ``median``, ``ratio`` (of the best) are by field."""

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
    """One row per (threads, configuration) that has records, by threads, then in the order of ``names``."""
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
        # Trees drawn from another seed each round differ a little; the middle one stands for them.
        keys = measured[0]["scores"]
        row.scores = {key: median(float(record["scores"][key]) for record in measured) for key in keys}
    return row


def add_ratios(rows: Sequence[Row], against: str) -> None:
    """Fill ``ratio``: a row's best over the best of the row named ``against`` at the same threads."""
    for row in rows:
        base = next((b for b in rows if (b.configuration, b.threads) == (against, row.threads)), None)
        if base is None or not base.best:
            continue
        row.ratio = {name: value / base.best[name] for name, value in row.best.items() if base.best[name] > 0}


def is_dominated(row: Row, rows: Iterable[Row], measure: str, score: str) -> bool:
    """Whether another row of the same threads is at least as good in both and better in one."""
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
