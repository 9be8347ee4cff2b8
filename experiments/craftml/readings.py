"""P@1/3/5 of CraftForest under different parameters, on test rows or on a held-out fifth of the training rows.

    python experiments/craftml/readings.py DATA_FOLDER --validation arity=5 arity=10 "centroid_size=50
    idf=False"

Each argument is one setting of parameters; prints the mean over the seeds, CPU seconds of training and the
model's size.
"""

import argparse
import ast
import time
from pathlib import Path

import numpy as np

import labelwood
from labelwood import data, metrics


def parsed(setting: str):
    """``"arity=5 idf=False"`` as keyword arguments; what is no literal is a string."""
    pairs = dict(pair.split("=", 1) for pair in setting.split())
    for name, value in pairs.items():
        try:
            pairs[name] = ast.literal_eval(value)
        except ValueError:
            continue
    return pairs


def split_of(folder: Path, validation: bool):
    train, test = (data.load(folder / f"{part}.txt.xz") for part in ("train", "test"))
    if not validation:
        return train.X, train.Y, test.X, test.Y
    order = np.random.default_rng(99).permutation(train.X.n_rows)
    kept, held = np.split(order, [train.X.n_rows * 4 // 5])
    return train.X.take(kept), train.Y.take(kept), train.X.take(held), train.Y.take(held)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("settings", nargs="*", default=[""])
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n-jobs", type=int, default=None)
    chosen = parser.parse_intermixed_args()
    X, Y, X_test, Y_test = split_of(chosen.folder, chosen.validation)
    for setting in chosen.settings:
        quality, seconds = [], []
        for seed in range(chosen.seeds):
            model = labelwood.CraftForest(random_state=seed, n_jobs=chosen.n_jobs, **parsed(setting))
            start = time.process_time()
            model.fit(X, Y.to_scipy())
            seconds.append(time.process_time() - start)
            found = metrics.evaluate(Y_test, model._topk_ids(X_test, 5), ks=(1, 3, 5))
            quality.append([100 * found[name] for name in ("P@1", "P@3", "P@5")])
        mean = "/".join(f"{value:.2f}" for value in np.mean(quality, axis=0))
        size = model.forest_.nbytes / 1e6
        print(f"{setting or 'defaults'}: {mean}  {np.mean(seconds):.1f} s  {size:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
