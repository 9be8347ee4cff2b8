"""One table of all methods, one-vs-rest, the blend and the peers on all data sets, and the plot of the frontier.

    python -m experiments.grand_table [--quick] [--sets bibtex/xmc_split0,...] [--methods linear-tree,...] [--kept]

Ours are run with the parameters of settings.py, on one thread, and kept below out/experiments/runs, so that the table
can be made in parts and other tables find them there. The peers are read from out/versus-DATA.json, which
`make versus DATA=... ARGS="--name NAME"` writes; theirs are means over the rounds. CPU seconds are of training;
predictions are of whole batches, CPU milliseconds a row for ours and wall milliseconds for peers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import AT_HAND, NDCG, PSP, QUALITY, ROOT, Options, parse, recorded
from experiments.report import Report, markdown_table
from experiments.settings import CHOSEN, TREES, key_of, parameters, runs

COSTS = ("train, CPU s", "predict, ms", "MB")
OF_PEERS = {
    "train, CPU s": ("train_cpu_seconds", 1.0),
    "predict, ms": ("batch_ms", 1.0),
    "MB": ("model_bytes", 1e6),
}
MARKS = ("<!-- grand table -->", "<!-- end of the grand table -->")


def run_ours(options: Options) -> list[dict[str, Any]]:
    """Our rows: what is kept, and unless only that is wanted, what is missing."""
    rows = []
    for name in options.sets:
        split = None
        for method in options.extra.methods.split(","):
            changes = (
                {"n_trees": options.trees(parameters(method, name)["n_trees"])} if method in TREES else {}
            )
            figures = recorded(options, key_of(method, name, options, **changes))
            if not options.extra.kept:
                complete = len(figures.get("P@1", ())) == len(options.seeds) and not options.again
                if not complete:
                    split = split or options.load(name)
                    figures = runs(method, split, options, **changes)
            if figures:
                rows.append({"data": name, "method": method, "runs": figures})
                means = {score: round(float(np.mean(seeds)), 3) for score, seeds in figures.items()}
                print(name, method, means, flush=True)
    return rows


def of_peers(name: str, folder: Path) -> list[dict[str, Any]]:
    """The peers' rows of one data set, at the smallest number of threads measured."""
    path = folder / f"versus-{name.partition('/')[0]}.json"
    if not path.exists():
        return []
    records = [record for record in json.loads(path.read_text())["records"] if "failure" not in record]
    threads = min((record["threads"] for record in records), default=1)
    rows: dict[str, dict[str, list[float]]] = {}
    for record in records:
        if record["threads"] != threads or record["configuration"].startswith("labelwood"):
            continue
        row = rows.setdefault(record["configuration"], {})
        for score in (*QUALITY, *NDCG, *PSP):
            row.setdefault(score, []).append(100 * record["scores"][score])
        for cost, (field, unit) in OF_PEERS.items():
            row.setdefault(cost, []).append(record[field] / unit)
    return [{"data": name, "method": peer, "runs": figures} for peer, figures in rows.items()]


def frontier(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those that no other point beats at lower cost, by growing cost."""
    best, kept = -np.inf, []
    for cost, quality in sorted(points, key=lambda point: (point[0], -point[1])):
        if quality > best:
            best = quality
            kept.append((cost, quality))
    return kept


def draw(report: Report, rows: list[dict[str, Any]], sets: tuple[str, ...]) -> None:
    """P@5 against training time and bytes, a row of plots per data set; the line joins the frontier."""
    from matplotlib import colormaps

    shown = [name for name in sets if any(row["data"] == name for row in rows)]
    axes = iter(report.axes(2, len(shown), width=6.2, height=3.6))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    colors = {method: colormaps["tab20"](place % 20) for place, method in enumerate(methods)}
    for name in shown:
        for cost in ("train, CPU s", "MB"):
            axis, points = next(axes), []
            for row in (row for row in rows if row["data"] == name):
                point = tuple(float(np.mean(row["runs"][part])) for part in (cost, "P@5"))
                points.append(point)
                mark = "s" if row["method"] in CHOSEN else "o"
                axis.plot(*point, mark, color=colors[row["method"]], label=row["method"], markersize=8)
            axis.plot(*zip(*frontier(points), strict=True), color="grey", linewidth=0.8, zorder=0)
            axis.set(xscale="log", xlabel=cost, ylabel="P@5", title=name)
            axis.grid(alpha=0.25)
    handles = {
        label: handle
        for axis in report.figure.axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    report.figure.legend(handles.values(), handles.keys(), loc="outside right center", frameon=False)


def into_page(report: Report, page: Path) -> None:
    """Replace what stands between the marks of a page by the tables, and the picture beside it."""
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    lines = [
        line
        for table in report.tables
        for line in (f"### {table['title']}", "", *markdown_table(table["rows"]), "")
    ]
    lines.append("![P@5 against training time and size; the line joins what nothing beats](frontier.png)")
    page.write_text(f"{before}{MARKS[0]}\n\n" + "\n".join(lines) + f"\n\n{MARKS[1]}{after}", encoding="utf-8")
    report.figure.savefig(page.with_name("frontier.png"), dpi=70)


def main() -> None:
    """Run what is missing, then write the table."""

    def extra(parser: Any) -> None:
        parser.add_argument("--methods", default=",".join(CHOSEN))
        parser.add_argument(
            "--kept", action="store_true", help="run nothing: make the table of what is there"
        )
        parser.add_argument(
            "--into", type=Path, help="also put the tables and the plot into this page, between its marks"
        )
        parser.add_argument("--versus", type=Path, default=ROOT / "out", help="folder of versus-DATA.json")

    options = parse(__doc__, sets=AT_HAND, extra=extra)
    rows = run_ours(options)
    if not options.quick:
        rows += [row for name in options.sets for row in of_peers(name, options.extra.versus)]
    report = Report("grand", "grand_table", "All methods and peers on all data sets", options)
    report.notes.append(
        "Ours: CPU seconds and milliseconds of one thread. Peers: as `make versus` measured them, each over as many "
        "rounds as the list has figures; a single round has no spread."
    )
    for name in options.sets:
        of_set = [row for row in rows if row["data"] == name]
        report.table(name, [{"": row["method"], "seeds": len(row["runs"]["P@1"]),
                             **{part: row["runs"][part] for part in (*QUALITY, *NDCG, *PSP, *COSTS)}}
                            for row in of_set])  # fmt: skip
    draw(report, rows, options.sets)
    report.write()
    if options.extra.into:
        into_page(report, options.extra.into)


if __name__ == "__main__":
    main()
