"""P@k of LinearTree on the real data sets, beside what omikuji 0.5.2 with three trees gives on the same files.

    python experiments/linear_tree_size/quality.py [--data ../shared/data] [--seeds 0,1,2] [--sets bibtex]

C = 0.5 on the two small sets was chosen on a held-out part of their training rows: benchmarks/linear_tree_defaults.py.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import labelwood
from labelwood.metrics import precision_at_k

RUNS = {
    "bibtex": ({"n_trees": 3, "C": 0.5}, (64.0, 39.0, 28.2)),
    "delicious": ({"n_trees": 3, "C": 0.5, "score_power": 2}, (66.9, 60.3, 55.8)),
    "eurlex57k": ({"n_trees": 3}, (91.85, 82.0, 68.9)),
    "yso_finna_en": ({"n_trees": 3}, (42.3, 32.6, 25.7)),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[3] / "shared" / "data")
    parser.add_argument("--sets", default=",".join(RUNS))
    parser.add_argument("--seeds", default="0")
    options = parser.parse_args()
    for name in options.sets.split(","):
        parameters, peer = RUNS[name]
        train, test = (
            labelwood.data.load(options.data / name / f"{part}.txt.xz", label_names=False)
            for part in ("train", "test")
        )
        rows, seconds = [], []
        for seed in map(int, options.seeds.split(",")):
            model = labelwood.LinearTree(**parameters, random_state=seed)
            start = time.process_time()
            model.fit(train.X, train.Y.to_scipy())
            seconds.append(time.process_time() - start)
            top = model._topk_ids(test.X, 5)
            rows.append([100 * precision_at_k(test.Y, top, k) for k in (1, 3, 5)])
        mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0)
        print(
            json.dumps(
                {
                    "data": name,
                    "parameters": parameters,
                    "P@1/3/5": [round(float(v), 2) for v in mean],
                    "spread": [round(float(v), 2) for v in spread],
                    "omikuji 3 trees": peer,
                    "CPU seconds": round(float(np.mean(seconds)), 2),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
