"""What the LdSM experiments share: the data sets, a validation part, a timed run."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import numpy as np

from labelwood import LdsmForest, data
from labelwood.metrics import precision_at_k
from labelwood.progress import Run

DATA = Path(os.environ.get("LABELWOOD_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
# The splits that the extreme classification repository ships as number 0, which published figures use.
SPLIT_0 = ("bibtex", "delicious")


def read(name, part):
    folder = DATA / name / "xmc_split0" if name in SPLIT_0 else DATA / name
    found = data.load(next(folder.glob(f"{part}.txt*")), label_names=False)
    return found.X, found.Y


def validation(X, Y, seed=1):
    """Four fifths of the training rows to fit, one fifth to judge by."""
    order = np.random.default_rng(seed).permutation(X.n_rows)
    cut = X.n_rows * 4 // 5
    return (X.take(order[:cut]), Y.take(order[:cut])), (X.take(order[cut:]), Y.take(order[cut:]))


def measure(train, test, **parameters):
    """P@1, 3, 5 in percent, processor seconds of fitting, milliseconds per row of predicting, and the model."""
    start = time.process_time()
    model = LdsmForest(**parameters).fit(*train)
    fitted = time.process_time()
    top = model.forest_.topk(test[0], 5, Run(n_threads=model._n_threads()))
    predicted = time.process_time()
    precision = [100 * precision_at_k(test[1], top, k) for k in (1, 3, 5)]
    return precision, fitted - start, 1e3 * (predicted - fitted) / test[0].n_rows, model


def peak_megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
