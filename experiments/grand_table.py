"""One table of all methods, one-vs-rest, the blend and the peers on all data sets, and the plot of the frontier.

    python -m experiments.grand_table [--quick] [--sets bibtex/xmc_split0,...] [--methods linear-tree,...]

Our methods run with the parameters of settings.py, on one thread. Their runs are stored in out/experiments/runs, so the
table can be made in parts. The peers' figures are read from out/versus-DATA.json, which
`make versus DATA=... ARGS="--name NAME"` writes. CPU seconds are of training; predictions are of whole batches, CPU
milliseconds per row for ours and wall milliseconds for peers.
`python -m experiments.publish --from out/experiments` puts the runs into the records and the tables into the pages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import AT_HAND, NDCG, PSP, QUALITY, ROOT, Options, Runs, parse, recorded
from experiments.report import Report
from experiments.settings import CHOSEN, is_forest, key_of, parameters, runs

COSTS = ("train, CPU s", "predict, ms", "MB")
OF_PEERS = {"train, CPU s": ("train_cpu_seconds", 1.0), "predict, ms": ("batch_ms", 1.0), "MB": ("model_bytes", 1e6)}


@dataclass(frozen=True)
class Row:
    """A method or a peer on a data set: the figures of every seed or round, by name."""

    data: str
    method: str
    runs: Runs


def changes_of(method: str, name: str, options: Options) -> dict[str, Any]:
    """The number of trees of a forest, which is small in a quick run."""
    return {"n_trees": options.trees(parameters(method, name)["n_trees"])} if is_forest(method) else {}


def key(method: str, name: str, options: Options) -> dict[str, Any]:
    """The key under which the runs of a method on a data set are stored."""
    return key_of(method, name, options, **changes_of(method, name, options))


def kept_rows(options: Options, methods: Sequence[str]) -> list[Row]:
    """The stored rows of our methods."""
    pairs = [(name, method) for name in options.sets for method in methods]
    found = [Row(name, method, recorded(options, key(method, name, options))) for name, method in pairs]
    return [row for row in found if row.runs]


def run_missing(options: Options, methods: Sequence[str]) -> None:
    """Run every method on every data set, unless its runs are stored."""
    for name in options.sets:
        split = options.load(name)
        for method in methods:
            figures = runs(method, split, options, **changes_of(method, name, options))
            means = {score: round(float(np.mean(seeds)), 3) for score, seeds in figures.items()}
            print(name, method, means, flush=True)


def of_peers(name: str, folder: Path) -> list[Row]:
    """The peers' rows of one data set, at the smallest number of threads measured."""
    path = folder / f"versus-{name.partition('/')[0]}.json"
    if not path.exists():
        return []
    records = [record for record in json.loads(path.read_text())["records"] if "failure" not in record]
    threads = min((record["threads"] for record in records), default=1)
    rows: dict[str, Runs] = {}
    for record in records:
        if record["threads"] != threads or record["configuration"].startswith("labelwood"):
            continue
        row = rows.setdefault(record["configuration"], {})
        for score in (*QUALITY, *NDCG, *PSP):
            row.setdefault(score, []).append(100 * record["scores"][score])
        for cost, (field, unit) in OF_PEERS.items():
            row.setdefault(cost, []).append(record[field] / unit)
    return [Row(name, peer, figures) for peer, figures in rows.items()]


def frontier(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other point beats at lower cost, by increasing cost."""
    best, kept = -np.inf, []
    for cost, quality in sorted(points, key=lambda point: (point[0], -point[1])):
        if quality > best:
            best = quality
            kept.append((cost, quality))
    return kept


def draw(report: Report, rows: Sequence[Row], sets: Sequence[str]) -> None:
    """P@5 against training time and bytes, a line of plots per data set; the line joins the frontier."""
    from matplotlib import colormaps

    shown = [name for name in sets if any(row.data == name for row in rows)]
    axes = iter(report.axes(2, len(shown), width=6.2, height=3.6))
    methods = list(dict.fromkeys(row.method for row in rows))
    colors = {method: colormaps["tab20"](place % 20) for place, method in enumerate(methods)}
    for name in shown:
        for cost in ("train, CPU s", "MB"):
            axis, points = next(axes), []
            for row in (row for row in rows if row.data == name):
                point = tuple(float(np.mean(row.runs[part])) for part in (cost, "P@5"))
                points.append(point)
                mark = "s" if row.method in CHOSEN else "o"
                axis.plot(*point, mark, color=colors[row.method], label=row.method, markersize=8)
            axis.plot(*zip(*frontier(points), strict=True), color="grey", linewidth=0.8, zorder=0)
            axis.set(xscale="log", xlabel=cost, ylabel="P@5", title=name)
            axis.grid(alpha=0.25)
    handles = {
        label: handle
        for axis in report.figure.axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    report.figure.legend(handles.values(), handles.keys(), loc="outside right center", frameon=False)


def report_of(rows: Sequence[Row], options: Options) -> Report:
    """All figures as tables, a table per data set, and the plot of the frontier."""
    report = Report("grand", "grand_table", "All methods and peers on all data sets", options)
    report.notes.append(
        "Labelwood: CPU seconds and milliseconds of one thread. Other tools: measured by `make versus`, over as many "
        "rounds as the column `seeds` says; a single round has no spread."
    )
    columns = (*QUALITY, *NDCG, *PSP, *COSTS)
    for name in options.sets:
        table = [
            {"": row.method, "seeds": len(row.runs["P@1"]), **{part: row.runs[part] for part in columns}}
            for row in rows
            if row.data == name
        ]
        report.table(name, table)
    draw(report, rows, options.sets)
    return report


def main() -> None:
    """Run what is missing, then write the tables."""

    def extra(parser: Any) -> None:
        parser.add_argument("--methods", default=",".join(CHOSEN))
        parser.add_argument("--versus", type=Path, default=ROOT / "out", help="folder of versus-DATA.json")

    options = parse(__doc__, sets=AT_HAND, extra=extra)
    methods = options.extra.methods.split(",")
    run_missing(options, methods)
    rows = kept_rows(options, methods)
    if not options.quick:
        rows += [row for name in options.sets for row in of_peers(name, options.extra.versus)]
    report_of(rows, options).write()


if __name__ == "__main__":
    main()
