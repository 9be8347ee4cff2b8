"""LibMultiLabel 0.10.0 with its defaults: ``train_tree`` (Bonsai-like: k-means with K=100) on liblinear.

It takes y before X. It has no option for the number of threads and uses as many as psutil reports physical
cores, so the driver replaces ``psutil.cpu_count``. Prediction returns a dense matrix [rows, labels]; the
driver predicts 1,000 rows at a time to bound its memory.
"""

import numpy as np
import psutil
from common import Driver, padded, run, top_of_dense
from libmultilabel import linear

ROWS = 1000


class LibMultiLabel(Driver):
    """Options: ``n_trees``; one tree is trained by ``train_tree``, several by ``train_ensemble_tree``."""

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
