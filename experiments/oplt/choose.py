"""Which learning rate and leaf size for OnlineTree: measured on a held-out fifth of the training rows.

    python experiments/oplt/choose.py bibtex delicious --epochs 3
    python experiments/oplt/choose.py yso_finna_en eurlex57k

Prints a line of JSON per candidate, means over the seeds, and the candidate with the best mean of P@1, P@3 and P@5.
"""

import argparse
import itertools
import json

import numpy as np
from datasets import load_part
from quality import run

from labelwood.data import Dataset

RATES = (0.3, 0.5, 1.0, 1.5, 2.0)
LEAVES = (100, 200)
HELD_OUT = 5  # one row in so many


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    for name in options.datasets:
        data = load_part(name, "train")
        order = np.random.default_rng(0).permutation(data.X.n_rows)
        cut = data.X.n_rows // HELD_OUT
        held, kept = (Dataset(data.X.take(rows), data.Y.take(rows)) for rows in (order[:cut], order[cut:]))
        best = (-1.0, {})
        for rate, leaves in itertools.product(RATES, LEAVES):
            parameters = {"learning_rate": rate, "max_leaf": leaves, "epochs": options.epochs}
            runs = [run(kept, held, seed, parameters, sizes=False) for seed in range(options.seeds)]
            found = {f"P@{k}": round(float(np.mean([r[f"P@{k}"] for r in runs])), 2) for k in (1, 3, 5)}
            print(json.dumps({"dataset": name, **parameters, **found}), flush=True)
            best = max(best, (sum(found.values()), parameters), key=lambda pair: pair[0])
        print(json.dumps({"dataset": name, "chosen": best[1]}), flush=True)


if __name__ == "__main__":
    main()
