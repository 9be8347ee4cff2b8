"""napkinXC 0.7.2: PLT on a balanced 2-means tree, logistic loss by liblinear, exact search; its defaults.

Its model is written to the output directory while it trains. It prints even when told not to; the harness
sends what a driver prints to a log.
"""

from common import Driver, K, padded, run
from napkinxc.models import PLT


class NapkinXC(Driver):
    """Options: ``ensemble``, or any other keyword of ``PLT``."""

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
