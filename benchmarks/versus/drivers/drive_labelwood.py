"""Labelwood, through its public API only.

The names are imported at the top, because ``import labelwood`` alone defers its imports to the first use, and
the times of the peers include no imports either.
"""

from common import Driver, K, padded, run

from labelwood import METHODS, LinearTree, data, load


class Labelwood(Driver):
    """Options: ``method`` (name of the method) and its keywords; the string "None" stands for None.

    ``directory`` names a data set directory to train from instead of matrices in memory; ``max_memory`` is passed to
    ``fit``.
    """

    def training_data(self):
        if "directory" not in self.options:
            return super().training_data()
        rows = data.load(self.options["directory"])
        return rows.X, rows.Y

    def train(self, X, Y):
        keywords = {name: None if value == "None" else value for name, value in self.options.items()}
        keywords.pop("directory", None)
        limit = {"max_memory": keywords.pop("max_memory")} if "max_memory" in keywords else {}
        method = METHODS[keywords.pop("method", LinearTree.method_name)]
        model = method(n_jobs=self.threads, random_state=0, **keywords).fit(X, Y, **limit)
        model.save(self.model_path)
        return {}

    def load(self):
        model = load(self.model_path)
        model.n_jobs = self.threads
        return model

    def predict(self, model, X):
        return model.predict_topk(X, k=K)

    def as_labels(self, predicted):
        return padded(predicted[0])


run(Labelwood)
