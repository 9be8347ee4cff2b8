"""omikuji and PECOS on the tf-idf vectors of the ranker's experiment, in the metrics of ``annif eval``.

    python -m benchmarks.versus.texts
    python -m benchmarks.versus.texts --quick     # few rows: shows that it runs

The vectors are those that experiments/ranker/texts.py gives to its models, encoder and words of label names alike;
the peers run as in versus.py, with the configurations below, and predict ten labels. F1@5 and NDCG count every true
label, of training or not. The report is out/experiments/ranker/peers.json and .md.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.versus.convert import convert, write_xmc
from benchmarks.versus.measure import Configuration, measure
from benchmarks.versus.venvs import python_of
from experiments.common import QUICK_ROWS, ROOT, parse
from experiments.ranker.texts import ENCODERS, Texts, load_texts
from experiments.report import Report
from labelwood import TfidfEncoder, metrics
from labelwood.sparse import CSR, TopK
from labelwood.validation.label_texts import read_label_texts

TABLE = Path(__file__).with_name("configurations.toml")
CONFIGURATIONS = ("omikuji 3 trees", "PECOS XR-Linear")


def written(texts: Texts, name: str, folder: Path) -> CSR:
    """Write the vectors and labels as XMC text files; return the labels of the test rows."""
    names = read_label_texts(texts.names, owner="texts.py").texts
    encoder = TfidfEncoder(**{"min_df": 2, **ENCODERS.get(name, {})}, n_jobs=1)
    train = encoder.fit_encode([*texts.train, *names]).rows(0, len(texts.train))
    index: dict[str, int] = {}
    for row in (*texts.train_labels, *texts.test_labels):
        for label in row:
            index.setdefault(label, len(index))
    folder.mkdir(parents=True, exist_ok=True)
    parts = (("train", train, texts.train_labels), ("test", encoder.encode(texts.test), texts.test_labels))
    for part, X, rows in parts:
        Y = label_matrix(rows, index)
        write_xmc(folder / f"{part}.txt", X.to_scipy(), Y.to_scipy())
    return Y


def label_matrix(rows: list[list[str]], index: dict[str, int]) -> CSR:
    """The labels of rows as a matrix."""
    ids = [sorted({index[label] for label in row}) for row in rows]
    indptr = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    indices = np.array([label for row in ids for label in row], np.int32)
    return CSR(indptr, indices, np.ones(len(indices), np.float32), len(index))


def scores(truth: CSR, predictions: Path) -> dict[str, float]:
    """P@k in percent, and the metrics of ``annif eval``."""
    with np.load(predictions) as stored:
        labels = stored["labels"].astype(np.int32)
    falling = np.broadcast_to(np.arange(labels.shape[1], 0, -1, dtype=np.float32), labels.shape)
    top = TopK(labels, np.where(labels >= 0, falling, np.float32(0)))
    found = metrics.evaluate(truth, top, (1, 3, 5))
    own = {"F1@5": metrics.f1_at_k(truth, top, 5), "NDCG": metrics.ndcg_of_all_at_k(truth, top, 10)}
    return {**{f"P@{k}": 100 * found[f"P@{k}"] for k in (1, 3, 5)}, **own}


def main() -> None:
    """Write the vectors, run the peers, report."""

    def extra(parser: Any) -> None:
        parser.add_argument("--build", type=Path, default=ROOT / "build", help="folder of environments and vectors")

    options = parse(__doc__, sets=("tibkat",), seeds=1, extra=extra)
    declared = tomllib.loads(TABLE.read_text())
    configurations = [Configuration(**one) for one in declared["configurations"] if one["name"] in CONFIGURATIONS]
    os.environ["VERSUS_K"] = "10"
    report = Report("ranker", "peers", "Peers on the vectors of the ranker", options)
    for name in options.sets:
        texts = load_texts(options.data, name, QUICK_ROWS if options.quick else None)
        vectors = options.extra.build / "versus" / f"{name}-texts"
        truth = written(texts, name, vectors / "xmc")
        convert(vectors / "xmc", vectors / "rows")
        rows = []
        for one in configurations:
            python = python_of(one.peer, declared["peers"][one.peer]["requirements"], options.extra.build / "peers")
            found = measure(one, python, vectors / "rows", options.threads, 7200)
            if "failure" in found:
                raise SystemExit(f"{one.name}: {found['failure']}")
            cost = {"train, CPU s": found["train_cpu_seconds"], "predict, ms": found["batch_ms"]}
            cost["MB"] = found["model_bytes"] / 1e6
            rows.append({"model": one.name, **scores(truth, Path(found["predictions"])), **cost})
        report.table(name, rows)
    report.write()


if __name__ == "__main__":
    main()
