"""PECOS (libpecos 1.2.8) XR-Linear with its defaults: PIFA vectors, hierarchical k-means, as in its README.

The model is loaded with ``is_predict_only=True``, as its documentation recommends for inference.
"""

from common import Driver, K, run, top_of_csr
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel


class Pecos(Driver):
    """Options: keywords of ``XLinearModel.train``."""

    def train(self, X, Y):
        vectors = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=self.threads)
        clusters = Indexer.gen(vectors, threads=self.threads)
        model = XLinearModel.train(X, Y, C=clusters, threads=self.threads, **self.options)
        model.save(str(self.model_path))
        return {}

    def load(self):
        return XLinearModel.load(str(self.model_path), is_predict_only=True)

    def predict(self, model, X):
        return model.predict(X, only_topk=K, threads=self.threads)

    def as_labels(self, predicted):
        return top_of_csr(predicted)


run(Pecos)
