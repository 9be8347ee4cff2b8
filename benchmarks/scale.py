"""Train and predict at the sizes of public data sets, on generated rows, beside other tools.

    python -m benchmarks.scale amazon-670k --scale 0.1 --runs linear-tree,online-tree,omikuji,pecos --threads 1
    python -m benchmarks.scale amazon-3m --runs linear-tree --threads 2 --from directory --max-memory 8GB
    python -m benchmarks.scale amazon-670k --runs craft-forest --options '{"n_trees": 10}'
    python -m benchmarks.scale --table

The rows are those of ``labelwood data synth --shape``, written once below --folder: a directory for Labelwood, and the
files of benchmarks/versus for all tools. A run is a method of Labelwood, or omikuji or pecos with the defaults of
benchmarks/versus and one tree. It trains in one process and predicts --test-rows rows in another. A run that takes more
than --limit-memory or --limit-seconds is ended, and its record says so. Each run writes a record to
experiments/records/scale; --table writes the table of all records into notebook/scale.md.

"memory" means that the rows are read into memory before the clock starts; the peak of memory contains them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.versus.measure import Configuration, measure
from benchmarks.versus.scoring import Scorer
from benchmarks.versus.venvs import python_of
from labelwood import METHODS
from labelwood.data import Dataset, load, save
from labelwood.data.load_save import save_parts
from labelwood.data.synth import PUBLISHED, published, synth_parts
from labelwood.resources.memory import parse_bytes
from labelwood.sparse import CSR

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "experiments" / "records" / "scale"
PAGE = ROOT / "notebook" / "scale.md"
BEGIN, END = "<!-- table of benchmarks.scale -->", "<!-- end of the table -->"
PEERS: dict[str, dict[str, Any]] = {"omikuji": {"n_trees": 1}, "pecos": {}}
FIELDS = ("train_seconds", "train_cpu_seconds", "train_peak_bytes", "model_bytes", "load_seconds", "batch_ms",
          "one_ms_p50", "predict_peak_bytes")  # fmt: skip
SCORES = ("P@1", "P@3", "P@5")


def made(name: str, scale: float, test_rows: int, folder: Path) -> Path:
    """The folder with the rows of a shape; they are generated if they are not there."""
    place = folder / f"{name}-{scale:g}"
    done = place / "facts.json"
    if done.exists() and json.loads(done.read_text())["test_rows"] == test_rows:
        return place
    place.mkdir(parents=True, exist_ok=True)
    shape, most = published(name, scale=scale)
    train = save_parts(place / "train.lw", synth_parts(shape))
    test = save_parts(place / "test.lw", synth_parts(shape, test_rows=min(test_rows, most)))
    write_arrays(place, "test", test)
    facts = {"test_rows": test_rows, "rows": train.n_rows, "features": train.X.n_cols, "labels": train.Y.n_cols,
             "row_words": train.X.nnz / train.n_rows, "row_labels": train.Y.nnz / train.n_rows}  # fmt: skip
    done.write_text(json.dumps(facts))
    return place


def write_arrays(place: Path, split: str, dataset: Dataset) -> None:
    """The rows as the drivers of benchmarks/versus read them."""
    for side, matrix in (("X", dataset.X.unit_rows()), ("Y", dataset.Y)):
        sp.save_npz(place / f"{split}_{side}.npz", matrix.to_scipy(), compressed=False)


def with_files(place: Path, *, text: bool) -> None:
    """Write what a run from memory reads, unless it is there."""
    train = None
    if not (place / "train_Y.npz").exists():
        train = load(place / "train.lw")
        write_arrays(place, "train", train)
    if text and not (place / "train.txt").exists():
        rows = train or load(place / "train.lw")
        save(place / "train.txt", Dataset(rows.X.unit_rows(), rows.Y))


def configuration(run: str, options: argparse.Namespace, place: Path) -> Configuration:
    if run in PEERS:
        return Configuration(run, run, PEERS[run])
    settings: dict[str, Any] = {"method": run, **options.options}
    name = run + "".join(f" {key}={value}" for key, value in options.options.items())
    if options.source == "directory":
        settings["directory"] = str(place / "train.lw")
        name += " directory"
    if options.max_memory is not None:
        settings["max_memory"] = options.max_memory
        name += f" {options.max_memory}"
    return Configuration(name, "labelwood", settings)


def scorer(place: Path) -> Scorer:
    """Scores of the test rows; of the training labels only their counts are needed."""
    labels = load(place / "train.lw").Y
    counts = np.bincount(labels.indices, minlength=labels.n_cols)
    used = np.flatnonzero(counts)
    totals = CSR(np.array([0, len(used)]), used.astype(np.int32), counts[used].astype(np.float32), labels.n_cols)
    return Scorer(totals.to_scipy(), sp.load_npz(place / "test_Y.npz"))


def run_all(options: argparse.Namespace) -> None:
    place = made(options.shape, options.scale, options.test_rows, options.folder.resolve())
    facts = json.loads((place / "facts.json").read_text())
    declared = tomllib.loads((ROOT / "benchmarks/versus/configurations.toml").read_text())["peers"]
    memory = parse_bytes(options.limit_memory, owner="scale", name="--limit-memory")
    for run in options.runs.split(","):
        peer = run if run in PEERS else "labelwood"
        if peer == "labelwood" and run not in METHODS:
            raise SystemExit(f"scale: --runs must be among {', '.join([*METHODS, *PEERS])}; got {run}")
        if peer != "labelwood" or options.source == "memory":
            with_files(place, text=run == "omikuji")
        chosen = configuration(run, options, place)
        python = python_of(peer, declared[peer]["requirements"], ROOT / "build" / "peers")
        found = measure(chosen, python, place, options.threads, options.limit_seconds, memory)
        record = {
            "shape": options.shape, "scale": options.scale, **facts, "run": chosen.name, "threads": options.threads,
            "source": options.source if peer == "labelwood" else "memory", "max_memory": options.max_memory,
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(), "load_average": os.getloadavg()[0],
        }  # fmt: skip
        if "failure" in found:
            record["failure"] = found["failure"]
        else:
            record |= {name: found[name] for name in FIELDS}
            scores = scorer(place).scores(Path(found["predictions"]))
            record |= {name: scores[name] for name in SCORES}
        options.records.mkdir(parents=True, exist_ok=True)
        path = options.records / f"{options.shape}-{options.scale:g}-{chosen.slug}-{options.threads}.json"
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(json.dumps(record), flush=True)


def table(records: Iterable[dict[str, Any]]) -> str:
    """The records as a Markdown table, by shape, scale, run and threads."""
    order = list(PUBLISHED)
    ordered = sorted(records, key=lambda r: (order.index(r["shape"]), r["scale"], r["run"], r["threads"]))
    head = ("shape", "scale", "run", "threads", "s", "CPU s", "peak GB", "model MB", "batch ms", "one ms", "P@1", "P@5")
    lines = ["| " + " | ".join(head) + " |", "|---|---|---|" + "---:|" * (len(head) - 3)]
    for r in ordered:
        cells = [r["shape"], f"{r['scale']:g}", r["run"], str(r["threads"])]
        if "failure" in r:
            cells += [r["failure"], *[""] * (len(head) - 5)]
        else:
            cells += [
                f"{r['train_seconds']:.1f}", f"{r['train_cpu_seconds']:.1f}", f"{r['train_peak_bytes'] / 1e9:.2f}",
                f"{r['model_bytes'] / 1e6:.1f}", f"{r['batch_ms']:.3f}", f"{r['one_ms_p50']:.2f}",
                f"{100 * r['P@1']:.1f}", f"{100 * r['P@5']:.1f}",
            ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_table(records: Path, page: Path) -> None:
    """Put the table between the two marks of the page."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    read = [json.loads(path.read_text()) for path in sorted(records.glob("*.json"))]
    page.write_text(f"{before}{BEGIN}\n\n{table(read)}\n\n{END}{after}", encoding="utf-8")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", nargs="?", choices=PUBLISHED)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", default="linear-tree", help="methods and peers, comma-separated")
    parser.add_argument("--options", type=json.loads, default={}, help="parameters of the methods, as JSON")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--from", dest="source", choices=("memory", "directory"), default="memory")
    parser.add_argument("--max-memory", help="passed to fit")
    parser.add_argument("--test-rows", type=int, default=10_000)
    parser.add_argument("--limit-memory", default="22GB")
    parser.add_argument("--limit-seconds", type=float, default=7200.0)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "scale")
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--table", action="store_true", help="write the table of all records into the page")
    options = parser.parse_args(argv)
    if options.shape is not None:
        run_all(options)
    elif not options.table:
        parser.error("a shape, or --table")
    if options.table:
        write_table(options.records, options.page)


if __name__ == "__main__":
    main()
