"""How LinearTree scales: seconds and peak memory at n, 2n, 4n rows and L, 2L, 4L labels of generated data.

    python benchmarks/growth.py [--rows 125000,250000,500000] [--labels 125000,250000,500000] [--threads 1]
    python benchmarks/growth.py --diagonal          # only the sizes where rows and labels grow together

Each size is generated, trained and scored in its own process, so that its peak memory is its own. P@1 and P@5
are measured on held-out rows of the same generator. Writes out/growth.json and out/growth.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from labelwood import LinearTree
from labelwood.data.synth import Shape, synth
from labelwood.metrics import precision_at_k
from labelwood.sparse import from_scipy

N_FEATURES, N_TEST, WORDS_PER_ROW = 500_000, 10_000, 40
COLUMNS = {
    "rows": "{:,}", "labels": "{:,}", "nonzeros": "{:,}", "depth": "{}", "nodes": "{:,}", "train_s": "{:.1f}",
    "train_cpu_s": "{:.1f}", "us_per_nonzero": "{:.2f}", "data_mb": "{:.0f}", "peak_mb": "{:.0f}", "model_mb": "{:.0f}",
    "predict_ms": "{:.3f}", "p1": "{:.1f}", "p5": "{:.1f}",
}  # fmt: skip


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def measure(n_rows: int, n_labels: int, threads: int) -> dict[str, float]:
    data = synth(Shape(n_rows=n_rows + N_TEST, n_labels=n_labels, n_features=N_FEATURES, words_per_row=WORDS_PER_ROW))
    # The generator draws rows independently, so the last rows are a fair test set.
    X, Y = data.X.to_scipy(), data.Y.to_scipy()
    train_X, train_Y, test_X, test_Y = X[:n_rows], Y[:n_rows], X[n_rows:], from_scipy(Y[n_rows:])
    del data, X, Y
    before = peak_mb()
    wall, cpu = time.perf_counter(), time.process_time()
    model = LinearTree(n_jobs=threads).fit(train_X, train_Y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_mb()
    start = time.perf_counter()
    top = model.predict_topk(test_X, k=5)
    predict = time.perf_counter() - start
    facts = model.describe()
    _, arrays = model._state()
    return {
        "rows": n_rows, "labels": n_labels, "nonzeros": int(train_X.nnz), "depth": facts["depth"],
        "nodes": facts["nodes"], "train_s": wall, "train_cpu_s": cpu, "us_per_nonzero": 1e6 * cpu / train_X.nnz,
        "data_mb": before, "peak_mb": peak, "model_mb": sum(a.nbytes for a in arrays.values()) / 1e6,
        "predict_ms": 1e3 * predict / N_TEST,
        "p1": 100 * precision_at_k(test_Y, top, 1), "p5": 100 * precision_at_k(test_Y, top, 5),
    }  # fmt: skip


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=numbers, default=[125_000, 250_000, 500_000])
    parser.add_argument("--labels", type=numbers, default=[125_000, 250_000, 500_000])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--diagonal", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--one", type=numbers, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, options.threads)))
        return
    sizes = [(n, m) for n in options.rows for m in options.labels]
    if options.diagonal:
        sizes = list(zip(options.rows, options.labels, strict=True))
    results = []
    for n_rows, n_labels in sizes:
        command = [sys.executable, __file__, "--one", f"{n_rows},{n_labels}", "--threads", str(options.threads)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        results.append(json.loads(done.stdout))
        print({name: COLUMNS[name].format(value) for name, value in results[-1].items()}, flush=True)
    options.out.mkdir(exist_ok=True)
    (options.out / "growth.json").write_text(json.dumps(results, indent=1))
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---:|" * len(COLUMNS)]
    lines += ["| " + " | ".join(COLUMNS[name].format(row[name]) for name in COLUMNS) + " |" for row in results]
    (options.out / "growth.md").write_text("\n".join(lines) + "\n")
    slope = np.polyfit(
        np.log([row["nonzeros"] for row in results]), np.log([row["train_cpu_s"] for row in results]), 1
    )[0]
    print(f"CPU seconds grow as (number of non-zeros)^{slope:.2f} over all sizes")


if __name__ == "__main__":
    main()
