"""One-example partial_fit through Python: percentiles of a call's time, on a tree that has seen a data set.

python -m experiments.oplt.latency --sets yso_finna_en --seeds 1
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.common import Split, parse, repeated
from experiments.report import Report
from experiments.settings import model


def one(split: Split, seed: int, kind: str, calls: int) -> dict[str, float]:
    """Microseconds of a call, wall and processor, at three percentiles."""
    learner = model("online-tree", split.name, n_jobs=1, random_state=seed).fit(split.train.X, split.train.Y.to_scipy())
    wall, cpu = [], []
    for row in range(min(calls, split.test.n_rows)):
        X: Any = split.test.X.rows(row, row + 1)
        Y: Any = split.test.Y.rows(row, row + 1)
        if kind == "dict":
            X = [dict(zip(X.indices.tolist(), X.data.tolist(), strict=True))]
            Y = [Y.indices.tolist()]
        start, busy = time.perf_counter(), time.thread_time()
        learner.partial_fit(X, Y)
        wall.append(time.perf_counter() - start)
        cpu.append(time.thread_time() - busy)
    return {
        f"{clock}, p{level}, us": 1e6 * float(np.percentile(seconds, level))
        for clock, seconds in (("wall", wall), ("CPU", cpu))
        for level in (50, 90, 99)
    }


def main() -> None:
    """Time every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--calls", type=int, default=3000)

    options = parse(__doc__, sets=("yso_finna_en",), extra=extra)
    report = Report("oplt", "latency", "OPLT: one example at a time", options)
    for name in options.sets:
        split = options.load(name)
        report.table(
            split.title,
            [
                {
                    "rows as": kind,
                    **repeated(options.seeds, lambda seed, s=split, k=kind: one(s, seed, k, options.extra.calls)),
                }
                for kind in ("CSR", "dict")
            ],
        )
    report.write()


if __name__ == "__main__":
    main()
