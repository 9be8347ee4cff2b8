"""Score the predictions of all drivers with ``labelwood.metrics``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from labelwood.metrics import evaluate, inverse_propensities
from labelwood.sparse import TopK, from_scipy

SCORES = ("P@1", "P@3", "P@5", "nDCG@1", "nDCG@3", "nDCG@5", "PSP@1", "PSP@3", "PSP@5")


class Scorer:
    """Scores predictions against the test labels, with propensities of training labels (A=0.55, B=1.5)."""

    def __init__(self, Y_train: Any, Y_test: Any) -> None:
        self.Y_test = from_scipy(Y_test)
        counts = np.asarray(Y_train.sum(axis=0)).ravel().astype(np.int64)
        self.inv_propensity = inverse_propensities(counts, Y_train.shape[0])

    def scores(self, predictions: Path) -> dict[str, float]:
        """The metrics of a driver's prediction file, as fractions."""
        with np.load(predictions) as stored:
            labels = stored["labels"].astype(np.int32)
        # The metrics depend on the order only; scores of different peers are not comparable.
        falling = np.broadcast_to(np.arange(labels.shape[1], 0, -1, dtype=np.float32), labels.shape)
        top = TopK(labels, np.where(labels >= 0, falling, np.float32(0)))
        found = evaluate(self.Y_test, top, ks=(1, 3, 5), inv_propensity=self.inv_propensity)
        return {name: found[name] for name in SCORES}
