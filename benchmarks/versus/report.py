"""Write the rows as Markdown tables and as a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aggregate import Row, is_dominated

SCORES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5")
MEGABYTE = 1e6


def number(value: float | None) -> str:
    """Format a number with three significant digits, without an exponent."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}g}" if abs(value) < 1 else f"{value:.{digits if abs(value) < 10 else 1}f}"


def ratio(row: Row, field: str) -> str:
    """Format a ratio as ``8.1x``, or as a dash if there is no baseline."""
    return f"{number(row.ratio[field])}x" if field in row.ratio else "-"


def best_and_median(row: Row, field: str) -> str:
    """Format best and median as ``5.61 (5.90)``; without the median if there is only one round."""
    best = number(row.best[field])
    return best if row.rounds < 2 else f"{best} ({number(row.median[field])})"


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table; all but the first column are right-aligned."""
    marks = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *lines)) + "\n"


def training_table(rows: Sequence[Row]) -> str:
    """The table of training time, memory, model size and metrics."""
    header = ["", "rounds", "train s", "ratio", "CPU s", "ratio", "peak MB", "model MB", "ratio", *SCORES]
    lines = []
    for row in rows:
        name = row.configuration + (" †" if row.earlier_run else "")
        if not row.best:
            lines.append([name, f"0/{row.of}", "failed", *["-"] * (len(header) - 3)])
            continue
        lines.append(
            [
                name,
                f"{row.rounds}/{row.of}",
                best_and_median(row, "train_seconds"),
                ratio(row, "train_seconds"),
                number(row.best["train_cpu_seconds"]),
                ratio(row, "train_cpu_seconds"),
                number(row.best["train_peak_bytes"] / MEGABYTE),
                number(row.best["model_bytes"] / MEGABYTE),
                ratio(row, "model_bytes"),
                *(f"{100 * row.scores[key]:.2f}" for key in SCORES),
            ]
        )
    return table(header, lines)


def prediction_table(rows: Sequence[Row]) -> str:
    """The table of prediction time, load time and memory."""
    header = ["", "batch ms/example", "ratio", "one p50 ms", "ratio", "one p99 ms", "load s", "ratio", "peak MB"]
    lines = [
        [
            row.configuration + (" †" if row.earlier_run else ""),
            best_and_median(row, "batch_ms"),
            ratio(row, "batch_ms"),
            best_and_median(row, "one_ms_p50"),
            ratio(row, "one_ms_p50"),
            number(row.best["one_ms_p99"]),
            number(row.best["load_seconds"]),
            ratio(row, "load_seconds"),
            number(row.best["predict_peak_bytes"] / MEGABYTE),
        ]
        for row in rows
        if row.best
    ]
    return table(header, lines)


def markdown(rows: Sequence[Row], facts: Mapping[str, Any], machine: Mapping[str, Any], against: str) -> str:
    """The whole report: the data and the machine, then two tables per thread count."""
    parts = [
        f"# {facts['name']}: Labelwood and its peers\n",
        f"{facts['train_rows']:,} training rows ({facts['left_out']} rows without features left out), "
        f"{facts['test_rows']:,} test rows, {facts['features']:,} features, {facts['labels']:,} labels. "
        f"{machine['processor']}, {machine['cores']} cores, load {machine['load']:.1f} at the start, "
        f"{machine['run']}.\n",
        f"Best of the rounds (median). A ratio is the best of the row divided by the best of `{against}`.\n",
    ]
    if any(row.earlier_run for row in rows):
        parts.append("† measured in an earlier run, not interleaved with the other rows.\n")
    for threads in sorted({row.threads for row in rows}):
        part = [row for row in rows if row.threads == threads]
        parts += [f"## {threads} thread{'s' * (threads > 1)}\n", training_table(part), prediction_table(part)]
        parts += [f"- {row.configuration}, {row.rounds}/{row.of}: {row.failure}" for row in part if row.failure]
    return "\n".join(parts).rstrip() + "\n"


def plot(rows: Sequence[Row], path: Path, title: str) -> None:
    """Plot P@1 and P@5 against training time and model size, at the smallest thread count; log x.

    Squares are Labelwood. A hollow mark is dominated: another row is as good in both and better in one.
    """
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator

    threads = min((row.threads for row in rows if row.best), default=1)
    shown = [row for row in rows if row.best and row.threads == threads]
    if not shown:
        return
    figure, axes = plt.subplots(2, 2, figsize=(13, 8), layout="constrained")
    figure.suptitle(f"{title}, {threads} thread{'s' * (threads > 1)}")
    measures = (("train_seconds", "training, seconds", 1.0), ("model_bytes", "model, MB", MEGABYTE))
    for line, score in zip(axes, ("P@1", "P@5"), strict=True):
        for axis, (measure, label, unit) in zip(line, measures, strict=True):
            for i, row in enumerate(shown):
                color = plt.get_cmap("tab20")(i % 20)
                axis.plot(
                    row.best[measure] / unit,
                    100 * row.scores[score],
                    "s" if row.configuration.startswith("labelwood") else "o",
                    color=color,
                    markerfacecolor="none" if is_dominated(row, shown, measure, score) else color,
                    markersize=9,
                    label=row.configuration,
                )
            axis.set(xscale="log", xlabel=label, ylabel=score)
            axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.xaxis.set_minor_formatter("")
            axis.margins(x=0.1, y=0.1)
            axis.grid(which="both", alpha=0.25)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
