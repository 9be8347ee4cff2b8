"""What all experiments share: flags, data sets, one measured run, and stored runs. report.py writes the results.

    python -m experiments.PAPER.NAME [--quick] [--data FOLDER] [--sets NAME,...] [--seeds N] [--out FOLDER]

Run them from the root of the checkout. Data sets are folders below --data (else LABELWOOD_DATA, else ../shared/data),
in any layout that the extreme classification repository uses. A table beside published figures has only sets that are
there. A figure replaces a paper's data set that is missing by a small generated one of its shape, and says so.

Results are out/experiments/PAPER/NAME.json, .md and .png; JSON holds the figure of every seed, Markdown their mean and
standard deviation. Trainings are stored in out/experiments/runs, one seed at a time; --again repeats those that are
there.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelwood import TreeEstimator, metrics
from labelwood.data import Dataset, load
from labelwood.data.synth import Shape, synth
from labelwood.sparse import TopK

ROOT = Path(__file__).resolve().parents[1]
KS = (1, 3, 5)
QUALITY = tuple(f"P@{k}" for k in KS)
NDCG = tuple(f"nDCG@{k}" for k in KS)
PSP = tuple(f"PSP@{k}" for k in KS)
AT_HAND = ("bibtex/xmc_split0", "delicious/xmc_split0", "eurlex57k", "yso_finna_en")
GENERATED = " (generated stand-in: not reproduced)"
QUICK_ROWS, QUICK_TREES, STAND_IN_ROWS = 2000, 4, 1200

# The papers' data sets: training rows, features, labels, labels of a row.
SHAPES = {
    "Mediamill": (30_993, 120, 101, 4.4),
    "Bibtex": (4_880, 1_836, 159, 2.4),
    "Delicious": (12_920, 500, 983, 19.0),
    "EURLex-4K": (15_539, 5_000, 3_993, 5.3),
    "AmazonCat-13K": (1_186_239, 203_882, 13_330, 5.0),
    "Wiki10-31K": (14_146, 101_938, 30_938, 18.6),
    "Delicious-200K": (196_606, 782_585, 205_443, 75.5),
    "WikiLSHTC-325K": (1_778_351, 1_617_899, 325_056, 3.2),
    "Wiki-500K": (1_779_881, 2_381_304, 501_070, 4.8),
    "Amazon-670K": (490_449, 135_909, 670_091, 5.5),
    "Amazon-3M": (1_717_899, 337_067, 2_812_281, 36.0),
}


@dataclass(frozen=True)
class Split:
    """Training and test rows of a data set; ``generated`` if it only has the shape of the named set."""

    name: str
    train: Dataset
    test: Dataset
    generated: bool = False

    @property
    def title(self) -> str:
        """The name, with a warning where the rows are not the named ones."""
        return f"{self.name}{GENERATED}" if self.generated else self.name


@dataclass
class Options:
    """The values of the shared flags."""

    data: Path
    out: Path
    sets: tuple[str, ...]
    seeds: range
    quick: bool
    again: bool
    threads: int
    extra: argparse.Namespace

    def trees(self, full: int) -> int:
        """``full`` trees, or a few in a quick run."""
        return min(full, QUICK_TREES) if self.quick else full

    def sets_at_hand(self) -> list[str]:
        """The data sets that are below --data."""
        return [name for name in self.sets if find(self.data, name) is not None]

    def published(self, of_sets: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The rows of a table of published figures, of the sets that are not below --data."""
        return [{"data": name, **row} for name, row in of_sets.items() if find(self.data, name) is None]

    def load(self, name: str) -> Split:
        """A data set: some of its rows in a quick run, a stand-in if a set of a paper is missing."""
        folder = find(self.data, name)
        if folder is None and name in SHAPES:
            return stand_in(name)
        if folder is None:
            raise SystemExit(f"{name}: no such folder below {self.data}; --data names another place")
        split = read(folder, name)
        return thinned(split, QUICK_ROWS) if self.quick else split


def parse(
    doc: str | None, *, sets: Sequence[str], seeds: int = 3, extra: Callable[[Any], None] | None = None
) -> Options:
    """Read the command line: the shared flags, and those that ``extra`` adds to the parser."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = ROOT.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LABELWOOD_DATA", beside)))
    parser.add_argument("--sets", default=",".join(sets), help="data sets, folders below --data")
    parser.add_argument("--seeds", type=int, default=seeds, help="number of seeds, 0, 1, ...")
    parser.add_argument("--quick", action="store_true", help="few rows and trees: shows that it runs")
    parser.add_argument("--again", action="store_true", help="repeat trainings that are stored")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "experiments")
    if extra is not None:
        extra(parser)
    given = parser.parse_args()
    names = tuple(name for name in given.sets.split(",") if name)
    return Options(given.data, given.out, names, range(given.seeds), given.quick, given.again, given.threads, given)


def find(data: Path, name: str) -> Path | None:
    """The folder of a data set: the same name, up to case and punctuation."""
    if (data / name).is_dir():
        return data / name
    folders = [path for path in data.iterdir() if path.is_dir()] if data.is_dir() else []
    return next((path for path in sorted(folders) if _plain(path.name) == _plain(name)), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def read(folder: Path, name: str) -> Split:
    """A folder of the repository: two files, or features and labels apart, or one file and its splits."""
    files = sorted(path for path in folder.iterdir() if ".raw." not in path.name)

    def the(pattern: str) -> Path | None:
        return next((path for path in files if re.fullmatch(pattern, path.name, re.IGNORECASE)), None)

    suffix = r"\.(txt|npz|svm)(\.(xz|gz|bz2))?"
    train, test = (the(rf"(.+_)?{part}{suffix}") for part in ("train", "test"))
    if train and test:
        parts = [load(path, label_names=False) for path in (train, test)]
        n_features, n_labels = (max(getattr(p, at).n_cols for p in parts) for at in ("X", "Y"))
        if any((p.X.n_cols, p.Y.n_cols) != (n_features, n_labels) for p in parts):
            counts = {"n_features": n_features, "n_labels": n_labels}
            parts = [load(path, label_names=False, **counts) for path in (train, test)]
        return Split(name, *parts)
    pairs = [(the(rf"{part}_X_Xf{suffix}"), the(rf"{part}_X_Y{suffix}")) for part in ("trn", "tst")]
    if all(x and y for x, y in pairs):
        return Split(name, *(_apart(x, y) for x, y in pairs if x and y))
    whole, *splits = the(rf".+_data{suffix}"), the(rf".+_trSplit{suffix}"), the(rf".+_tstSplit{suffix}")
    if whole and all(splits):
        rows = load(whole, label_names=False)
        chosen = [np.loadtxt(path, dtype=np.int64, ndmin=2)[:, 0] - 1 for path in splits if path]
        return Split(name, *(taken(rows, np.sort(part)) for part in chosen))
    raise SystemExit(f"{folder}: holds no training and test part in a shape that is known")


def _apart(features: Path, labels: Path) -> Dataset:
    """Features and labels in separate files: ``rows columns``, then ``column:value ...`` for each row."""
    with tempfile.TemporaryDirectory() as folder, open(features) as x, open(labels) as y:
        joined = Path(folder, "rows.txt")
        with joined.open("w") as out:
            n_rows, n_features = next(x).split()
            out.write(f"{n_rows} {n_features} {next(y).split()[1]}\n")
            for row, own in zip(x, y, strict=True):
                out.write(",".join(pair.partition(":")[0] for pair in own.split()) + " " + row.strip() + "\n")
        return load(joined)


def taken(rows: Dataset, which: np.ndarray) -> Dataset:
    """Some rows, in the order given."""
    return Dataset(rows.X.take(which), rows.Y.take(which))


def thinned(split: Split, n_rows: int) -> Split:
    """At most ``n_rows`` training rows and half as many test rows, the same every time."""
    random = np.random.default_rng(0)

    def part(rows: Dataset, most: int) -> Dataset:
        if rows.n_rows <= most:
            return rows
        return taken(rows, np.sort(random.choice(rows.n_rows, most, replace=False)))

    return Split(split.name, part(split.train, n_rows), part(split.test, n_rows // 2), split.generated)


def held_out(split: Split, seed: int, share: float = 0.2) -> Split:
    """A part of the training rows as test rows: parameters are chosen on these."""
    order = np.random.default_rng(seed).permutation(split.train.n_rows)
    cut = split.train.n_rows - round(split.train.n_rows * share)
    parts = (taken(split.train, np.sort(rows)) for rows in (order[:cut], order[cut:]))
    return Split(split.name, *parts, split.generated)


def stand_in(name: str, n_rows: int = STAND_IN_ROWS) -> Split:
    """A small generated set with the proportions of one of the papers' data sets."""
    rows, features, labels, per_row = SHAPES[name]
    scale = min(1.0, n_rows / rows)
    n_labels = max(40, round(labels * scale))
    made = synth(
        Shape(
            n_rows + n_rows // 2, n_labels, max(300, round(features * scale)),
            labels_per_row=min(per_row, n_labels / 8), branching=4, levels=2,
        )
    )  # fmt: skip
    return Split(name, *(taken(made, np.arange(*ends)) for ends in ((n_rows,), (n_rows, made.n_rows))), True)


def model_bytes(model: TreeEstimator, *, whole: bool = False) -> int:
    """Bytes on disk of a model that only predicts, or with ``whole`` of one that can go on learning."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        if hasattr(model, "partial_fit") and not whole:
            model.save(path, inference_only=True)  # type: ignore[call-arg]  # of those that learn on
        else:
            model.save(path)
        return sum(file.stat().st_size for file in path.iterdir())


def judged(split: Split, top: TopK) -> dict[str, float]:
    """P, nDCG and PSP at 1, 3, 5 in percent."""
    weights = metrics.inverse_propensities(metrics.label_counts(split.train.Y), split.train.n_rows)
    found = metrics.evaluate(split.test.Y, top, KS, inv_propensity=weights)
    return {name: 100 * found[name] for name in (*QUALITY, *NDCG, *PSP)}


def measured(
    model: TreeEstimator, split: Split, learn: Callable[[TreeEstimator, Dataset], Any] | None = None
) -> dict[str, float]:
    """Train and evaluate: quality, CPU seconds of training, milliseconds per predicted row, MB, depth."""
    start = time.process_time()
    if learn is None:
        model.fit(split.train.X, split.train.Y.to_scipy())
    else:
        learn(model, split.train)
    fitted = time.process_time()
    top = model.topk_ids(split.test.X, min(max(KS), model.n_labels_))
    predicted = time.process_time()
    return {
        **judged(split, top),
        "train, CPU s": fitted - start,
        "predict, ms": 1e3 * (predicted - fitted) / split.test.n_rows,
        "MB": model_bytes(model) / 1e6,
        "depth": float(model.describe().get("depth", 0)),
    }


Runs = dict[str, list[float]]


def repeated(seeds: Iterable[int], one: Callable[[int], Mapping[str, float]]) -> Runs:
    """The figures of one run per seed, by name."""
    runs = [one(seed) for seed in seeds]
    return {name: [run[name] for run in runs] for name in runs[0]}


def kept(options: Options, key: Mapping[str, Any], one: Callable[[int], Mapping[str, float]]) -> Runs:
    """The figures of one run per seed; a seed that is stored under the same key is read instead."""
    path, found = kept_file(options, key), {} if options.again else _kept_seeds(options, key)
    for seed in options.seeds:
        if seed not in found:
            found[seed] = dict(one(seed))
            facts = {"key": key, "seeds": {str(number): found[number] for number in sorted(found)}}
            path.parent.mkdir(parents=True, exist_ok=True)
            whole = path.with_suffix(f".{os.getpid()}")
            whole.write_text(json.dumps(facts, indent=1) + "\n")
            whole.replace(path)
    return repeated(options.seeds, found.__getitem__)


def recorded(options: Options, key: Mapping[str, Any]) -> Runs:
    """The stored figures of the seeds; empty if there are none."""
    found = _kept_seeds(options, key)
    seeds = [seed for seed in options.seeds if seed in found]
    return repeated(seeds, found.__getitem__) if seeds else {}


def kept_file(options: Options, key: Mapping[str, Any]) -> Path:
    """The file in which the runs of a key are stored."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:12]
    return options.out / "runs" / f"{_plain(key['data'])}-{key['method']}-{digest}.json"


def _kept_seeds(options: Options, key: Mapping[str, Any]) -> dict[int, dict[str, float]]:
    path = kept_file(options, key)
    seeds = json.loads(path.read_text())["seeds"] if path.exists() else {}
    return {int(seed): figures for seed, figures in seeds.items()}


def chosen(runs: Runs, names: Iterable[str]) -> Runs:
    """Some of the figures, in this order."""
    return {name: runs[name] for name in names}


def literal(text: str) -> tuple[str, Any]:
    """``name=value`` of a command line; a value that is not a Python literal is a string."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
