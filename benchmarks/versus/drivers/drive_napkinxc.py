"""napkinXC 0.7.2 with its defaults: PLT on a balanced 2-means tree, logistic loss by liblinear, exact search.

It writes its model to the output directory during training. It prints even with verbose=0; versus.py
redirects the output of drivers to a log file.
"""

from common import Driver, K, padded, run
from napkinxc.models import PLT


class NapkinXC(Driver):
    """Options: keywords of ``PLT``, such as ``ensemble``."""

    def _model(self):
        return PLT(str(self.model_path), threads=self.threads, seed=0, verbose=0, **self.options)

    def train(self, X, Y):
        self.model_path.mkdir()
        self._model().fit(X, Y)
        return {}

    def load(self):
        model = self._model()
        model.load()
        return model

    def predict(self, model, X):
        return model.predict(X, top_k=K)

    def as_labels(self, predicted):
        return padded(predicted)


run(NapkinXC)
