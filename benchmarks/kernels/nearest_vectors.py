"""The training rows of the nearest vectors: the exact search of the core, a NumPy product, and an index of usearch.

    python benchmarks/kernels/nearest_vectors.py [--rows 100000] [--queries 256] [--usearch PYTHON]

PYTHON is the interpreter of an environment with usearch. Every measurement is a process of its own with one thread, on
the same made vectors of 384 numbers in half precision. Times are CPU seconds. The share is that of the 50 nearest rows
of the product that a contender finds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

WIDTH, N_NEAREST, N_CENTRES = 384, 50, 2000


def made(n_rows: int, n_queries: int) -> tuple[Any, Any]:
    """Vectors of unit length around centres."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((N_CENTRES, WIDTH), np.float32)

    def drawn(count: int) -> Any:
        rows = np.empty((count, WIDTH), np.float16)
        for start in range(0, count, 10_000):
            n = min(10_000, count - start)
            part = centres[random.integers(N_CENTRES, size=n)] + random.standard_normal((n, WIDTH), np.float32)
            rows[start : start + n] = part / np.linalg.norm(part, axis=1, keepdims=True)
        return rows

    return drawn(n_rows), drawn(n_queries)


def product(rows: Any, queries: Any) -> tuple[float, Any]:
    """All products, and the best of them."""
    wide = rows.astype(np.float32)
    return 0.0, lambda given: np.argpartition(-(given.astype(np.float32) @ wide.T), N_NEAREST, axis=1)[:, :N_NEAREST]


def exact(rows: Any, queries: Any) -> tuple[float, Any]:
    """The kernel of the votes; every row has a label of its own, so the nearest labels are the nearest rows."""
    from labelwood import _core
    from labelwood.sparse import CSR

    ids = np.arange(len(rows) + 1)
    labels = CSR(ids.astype(np.int64), ids[:-1].astype(np.int32), np.ones(len(rows), np.float32), len(rows))

    def search(given: Any) -> Any:
        wide, bits = given.astype(np.float32), rows.view(np.uint16)
        return _core.vote_of_similar_vectors(wide, bits, labels, N_NEAREST, N_NEAREST, 1, None)[2]

    return 0.0, search


def usearch(rows: Any, queries: Any) -> tuple[float, Any]:
    """A graph with the defaults of usearch."""
    from usearch.index import Index

    index = Index(ndim=WIDTH, metric="ip", dtype="f16")
    start = time.process_time()
    index.add(np.arange(len(rows)), rows, threads=1)
    built = time.process_time() - start
    return built, lambda given: np.atleast_2d(index.search(given, N_NEAREST, threads=1).keys)


CONTENDERS = {"product": product, "exact": exact, "usearch": usearch}


def measured(name: str, n_rows: int, n_queries: int) -> dict[str, Any]:
    """Seconds of building, milliseconds of a row in a batch and alone, and what was found."""
    rows, queries = made(n_rows, n_queries)
    built, search = CONTENDERS[name](rows, queries)
    search(queries[:2])
    start = time.process_time()
    found = search(queries)
    batch = time.process_time() - start
    start = time.process_time()
    for row in range(20):
        search(queries[row : row + 1])
    alone = time.process_time() - start
    return {"build": built, "batch": 1e3 * batch / n_queries, "alone": 50 * alone, "found": found.tolist()}


def main() -> None:
    """Run the contenders one after the other and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--usearch", help="interpreter with usearch")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(measured(options.run, options.rows, options.queries)))
        return
    own = ["--rows", str(options.rows), "--queries", str(options.queries)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    nearest: list[set[int]] = []
    for name, python in {"product": sys.executable, "exact": sys.executable, "usearch": options.usearch}.items():
        if python is None:
            continue
        command = [python, __file__, *own, "--run", name]
        ran = subprocess.run(command, check=True, capture_output=True, text=True, env=one_thread)
        facts = json.loads(ran.stdout.splitlines()[-1])
        found = [set(row) for row in facts["found"]]
        nearest = nearest or found
        share = np.mean([len(one & best) / N_NEAREST for one, best in zip(found, nearest, strict=True)])
        print(f"{name}: build {facts['build']:.1f} s, a row of a batch {facts['batch']:.3f} ms, "
              f"a row alone {facts['alone']:.3f} ms, share found {share:.4f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
