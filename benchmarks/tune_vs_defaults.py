"""Compare the model that ``tune`` finds within a time budget with the defaults of every method.

    python benchmarks/tune_vs_defaults.py --data ../shared/data/bibtex/xmc_split0 --budget 300

``tune`` sees training rows only. Its winner and the default of every method are then trained on all training
rows and measured on the test rows.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from labelwood import METHODS, data
from labelwood.metrics import evaluate
from labelwood.tuning import tune


def read(folder: Path, side: str) -> data.Dataset:
    return data.load(next(folder.glob(f"{side}.txt*")), label_names=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=300)
    parser.add_argument("--metric", default="P@5")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    train, test = read(options.data, "train"), read(options.data, "test")
    begin = time.monotonic()
    found = tune(
        train.X, train.Y, budget=options.budget, metric=options.metric, n_jobs=options.n_jobs,
        report=lambda trial, used: print(f"{used:4.0%}  {100 * trial.score:6.2f}  {trial.share:4.0%}  {trial.name}"
                                         f"  {trial.stopped}", flush=True),
    )  # fmt: skip
    print(f"\ntune took {time.monotonic() - begin:.0f} s of {options.budget:.0f} s\n{found.why}\n")
    models = {f"tuned: {found.best.name}": found.estimator(n_jobs=options.n_jobs)}
    models |= {f"default {name}": METHODS[name](n_jobs=options.n_jobs) for name in METHODS}
    print("| | P@1 | P@3 | P@5 | training s |\n|---|---:|---:|---:|---:|")
    for name, model in models.items():
        begin = time.monotonic()
        model.fit(train.X, train.Y)
        seconds = time.monotonic() - begin
        figures = evaluate(model.encode_labels(test.Y), model.topk_ids(test.X, 5))
        cells = " | ".join(f"{100 * figures[f'P@{k}']:.2f}" for k in (1, 3, 5))
        print(f"| {name} | {cells} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
