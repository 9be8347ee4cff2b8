"""Labelwood, through its public API only."""

from common import Driver, K, padded, run

import labelwood


class Labelwood(Driver):
    """Options: ``class``, the name of the estimator, and its keywords; the string None is no value."""

    def train(self, X, Y):
        keywords = {name: None if value == "None" else value for name, value in self.options.items()}
        estimator = getattr(labelwood, keywords.pop("class", "LinearTree"))
        model = estimator(n_jobs=self.threads, random_state=0, **keywords).fit(X, Y)
        model.save(self.model_path)
        return {}

    def load(self):
        model = labelwood.load(self.model_path)
        model.n_jobs = self.threads
        return model

    def predict(self, model, X):
        return model.predict_topk(X, k=K)

    def as_labels(self, predicted):
        return padded(predicted[0])


run(Labelwood)
