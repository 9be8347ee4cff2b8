"""P@1/3/5 of CraftForest under different parameters, on held-out training rows of several data sets at once.

    python experiments/craftml/readings.py "" arity=5 "centroid_share=0.7 centroid_size=None"
    --on bibtex/xmc_split0:5:50 delicious/xmc_split0:2:50 eurlex57k:1:20

Each argument is one setting of parameters; ``--on`` names the data sets, folders below LABELWOOD_DATA, with the
number of folds and of trees. A fold holds out a fifth of the training rows (a tenth of more than 20,000), fits
the others with the fold's number as seed, and judges by the rows held out. With ``--test`` the folds are seeds
only: all training rows are fitted, and the test rows judge. CPU seconds are those of training, one thread.
"""

import argparse
import ast
import os
import time
from pathlib import Path

import numpy as np

import labelwood
from labelwood import data, metrics

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LABELWOOD_DATA", ROOT.parent / "shared" / "data"))


def parsed(setting: str):
    """``"arity=5 idf=False"`` as keyword arguments; what is no literal is a string."""
    pairs = dict(pair.split("=", 1) for pair in setting.split())
    for name, value in pairs.items():
        try:
            pairs[name] = ast.literal_eval(value)
        except ValueError:
            continue
    return pairs


def parts_of(train, test, fold: int):
    """The rows that are fitted and those that judge."""
    if test is not None:
        return train.X, train.Y, test.X, test.Y
    order = np.random.default_rng(99).permutation(train.X.n_rows)
    n_folds = 10 if len(order) > 20_000 else 5
    bounds = [len(order) * part // n_folds for part in (fold, fold + 1)]
    held = np.sort(order[slice(*bounds)])
    kept = np.setdiff1d(order, held)
    return train.X.take(kept), train.Y.take(kept), train.X.take(held), train.Y.take(held)


def measured(train, test, n_folds: int, **parameters) -> str:
    """A cell of the table: the means over the folds."""
    quality, seconds = [], []
    for fold in range(n_folds):
        X, Y, X_judged, Y_judged = parts_of(train, test, fold)
        model = labelwood.CraftForest(random_state=fold, n_jobs=1, **parameters)
        start = time.process_time()
        model.fit(X, Y.to_scipy())
        seconds.append(time.process_time() - start)
        found = metrics.evaluate(Y_judged, model._topk_ids(X_judged, 5), ks=(1, 3, 5))
        quality.append([100 * found[name] for name in ("P@1", "P@3", "P@5")])
    mean = "/".join(f"{value:.2f}" for value in np.mean(quality, axis=0))
    return f"{mean}, {np.mean(seconds):.1f} s, {model.forest_.nbytes / 1e6:.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="*", default=[""], help="parameters, as in 'arity=5 idf=False'")
    parser.add_argument("--on", nargs="+", required=True, metavar="FOLDER:FOLDS:TREES")
    parser.add_argument("--test", action="store_true", help="judge by the test rows")
    chosen = parser.parse_intermixed_args()
    runs = []
    for name, n_folds, n_trees in (text.split(":") for text in chosen.on):
        train, test = (data.load(DATA / name / f"{part}.txt.xz") for part in ("train", "test"))
        runs.append((train, test if chosen.test else None, int(n_folds), int(n_trees)))
    print("| | " + " | ".join(chosen.on) + " |\n|---|" + "---|" * len(runs), flush=True)
    for setting in chosen.settings or [""]:
        parameters = parsed(setting)
        cells = [
            measured(train, test, n_folds, **{"n_trees": n_trees, **parameters})
            for train, test, n_folds, n_trees in runs
        ]
        print(f"| {setting or 'defaults'} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
