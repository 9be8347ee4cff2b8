"""scikit-learn: ``OneVsRestClassifier(LinearSVC())`` with its defaults, saved with joblib.

It trains in threads: liblinear releases the interpreter lock, and processes would copy the data.
"""

import joblib
import numpy as np
from common import Driver, padded, run, top_of_dense
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

ROWS = 1000


class OneVsRest(Driver):
    """No options."""

    def train(self, X, Y):
        with joblib.parallel_config("threading"):
            model = OneVsRestClassifier(LinearSVC(), n_jobs=self.threads).fit(X, Y)
        self.model_path.mkdir()
        joblib.dump(model, self.model_path / "model.joblib")
        return {}

    def load(self):
        return joblib.load(self.model_path / "model.joblib")

    def predict(self, model, X):
        parts = [model.decision_function(X[i : i + ROWS]) for i in range(0, X.shape[0], ROWS)]
        return np.vstack([top_of_dense(part) for part in parts])

    def as_labels(self, predicted):
        return padded(predicted)


run(OneVsRest)
