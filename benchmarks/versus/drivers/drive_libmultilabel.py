"""LibMultiLabel 0.10.0: ``train_tree`` (Bonsai-like: k-means with K=100) on liblinear; its defaults.

It takes y first, and has no option for its number of threads but asks psutil for the physical cores, so the
driver answers for psutil. Prediction returns a dense matrix [rows, labels]; rows go in by the thousand to
bound its memory.
"""

import numpy as np
import psutil
from common import Driver, padded, run, top_of_dense
from libmultilabel import linear

ROWS = 1000


class LibMultiLabel(Driver):
    """Options: ``n_trees``; with one tree ``train_tree``, else ``train_ensemble_tree``."""

    def train(self, X, Y):
        psutil.cpu_count = lambda logical=True: self.threads
        np.random.seed(0)  # noqa: NPY002 - the peer draws from the global generator
        if self.options["n_trees"] == 1:
            model = linear.train_tree(Y, X, verbose=False)
        else:
            model = linear.train_ensemble_tree(Y, X, n_trees=self.options["n_trees"], verbose=False)
        linear.save_pipeline(str(self.model_path), None, model)
        return {}

    def load(self):
        return linear.load_pipeline(str(self.model_path / "linear_pipeline.pickle"))[1]

    def predict(self, model, X):
        parts = [linear.predict_values(model, X[i : i + ROWS]) for i in range(0, X.shape[0], ROWS)]
        return np.vstack([top_of_dense(part) for part in parts])

    def as_labels(self, predicted):
        return padded(predicted)


run(LibMultiLabel)
