"""The data sets of these experiments, and one run of GraphForest on one of them."""

import os
import time
from pathlib import Path

import numpy as np

from labelwood import GraphForest, data, metrics
from labelwood.sparse import TopK

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LABELWOOD_DATA", ROOT.parent / "shared" / "data"))
FOLDERS = {
    "bibtex": "bibtex/xmc_split0",
    "delicious": "delicious/xmc_split0",
    "eurlex57k": "eurlex57k",
    "yso": "yso_finna_en",
}


def load(name):
    """(X, Y) of the training and of the test part."""
    folder = DATA / FOLDERS[name]
    train, test = (data.load(next(folder.glob(f"{part}.txt*"))) for part in ("train", "test"))
    width = max(train.X.n_cols, test.X.n_cols), max(train.Y.n_cols, test.Y.n_cols)
    parts = (train, test)
    if any((part.X.n_cols, part.Y.n_cols) != width for part in parts):
        raise SystemExit(f"{folder}: training and test part differ in their columns")
    return (train.X, train.Y), (test.X, test.Y)


def validation(name, *, share=0.25, rows=None):
    """The training part, divided: what readings and parameters are chosen on."""
    (X, Y), _ = load(name)
    order = np.random.default_rng(1).permutation(X.n_rows)[:rows]
    cut = int(len(order) * share)
    return divided(X, Y, order[cut:], order[:cut])


def fifth(name, fold):
    """The training part without one of its fifths, and that fifth."""
    (X, Y), _ = load(name)
    parts = np.array_split(np.random.default_rng(99).permutation(X.n_rows), 5)
    return divided(X, Y, np.concatenate(parts[:fold] + parts[fold + 1 :]), parts[fold])


def divided(X, Y, fitted, judged):
    fitted, judged = np.sort(fitted), np.sort(judged)
    return (X.take(fitted), Y.take(fitted)), (X.take(judged), Y.take(judged))


def run(train, test, *, seeds, **parameters):
    """Means over seeds: P@1, P@3, P@5 in percent, CPU seconds of training, milliseconds a row, the model."""
    found = []
    for seed in seeds:
        start = time.process_time()
        model = GraphForest(random_state=seed, **parameters).fit(train[0].to_scipy(), train[1].to_scipy())
        fitted = time.process_time()
        labels, scores = model.predict_topk(test[0].to_scipy(), 5)
        end = time.process_time()
        top = TopK(labels.astype(np.int32), scores)
        precision = [100 * metrics.precision_at_k(test[1], top, k) for k in (1, 3, 5)]
        found.append([*precision, fitted - start, 1000 * (end - fitted) / test[0].n_rows])
    return np.mean(found, axis=0), model


def line(title, found, model):
    """One row of a table."""
    facts = model.describe()
    return (
        f"| {title} | {found[0]:.2f} / {found[1]:.2f} / {found[2]:.2f} | {found[3]:.1f} | {found[4]:.3f} | "
        f"{facts['depth']} | {facts['nonzero_weights'] / 1e6:.2f} M | {model.forest_.nbytes / 1e6:.1f} MB |"
    )


HEAD = (
    "| | P@1 / P@3 / P@5 | training, CPU s | prediction, ms/row | depth | weights | size |\n"
    "|---|---|---|---|---|---|---|"
)
