"""The size of a large model against its precision, on held-out training rows of a shape.

    python -m benchmarks.scale_settings amazon-3m --scale 0.1 --max-leaf 400,200,100 --threads 2

The rows are those of benchmarks/scale; the last --held-out training rows are not trained on. Each tree is trained once
and shrunk by ``shrink_curve``. Prints a JSON line per setting: CPU seconds of the training, model bytes, and P@k.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from benchmarks.scale import ROOT, made
from labelwood import LinearTree
from labelwood.data import load
from labelwood.data.synth import PUBLISHED
from labelwood.methods.label_tree.shrinkable import DTYPES


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=PUBLISHED)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--max-leaf", type=numbers, default=[400, 100])
    parser.add_argument("--thresholds", type=numbers, default=[0.2, 0.3])
    parser.add_argument("--held-out", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--test-rows", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "scale")
    options = parser.parse_args(argv)
    place = made(options.shape, options.scale, options.test_rows, options.folder.resolve())
    rows = load(place / "train.lw")
    n_kept = rows.n_rows - options.held_out
    X, Y = rows.X.rows(0, n_kept), rows.Y.rows(0, n_kept)
    held_X, held_Y = rows.X.rows(n_kept, rows.n_rows), rows.Y.rows(n_kept, rows.n_rows)
    for max_leaf in options.max_leaf:
        started = time.process_time()
        model = LinearTree(max_leaf=int(max_leaf), n_jobs=options.threads, random_state=0).fit(X, Y.to_scipy())
        seconds = time.process_time() - started
        for dtype in DTYPES[1:]:
            model.quantize(dtype)
            for point in model.shrink_curve(held_X, held_Y.to_scipy(), thresholds=options.thresholds, dtypes=()):
                found = {
                    "max_leaf": int(max_leaf), "dtype": dtype, "setting": point.setting,
                    "cpu_seconds": round(seconds, 1), "model_mb": round(point.model_bytes / 1e6, 1),
                    **{f"P@{k}": round(100 * value, 2) for k, value in point.precision.items()},
                }  # fmt: skip
                print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
