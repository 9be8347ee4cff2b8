"""Vowpal Wabbit 9.11.9 ``--plt``: the options of its own demo (16-ary tree, 5 passes, -l 0.5, no holdout).

It learns from text in its own format; writing this text is not timed. Parsing it is part of the first pass
and of every prediction, and cannot be timed separately. It learns on one thread. ``--loss_function logistic``
must be passed again when the model is loaded.
"""

import json

from common import Driver, K, padded, read_matrix, run
from vowpalwabbit import Workspace


def as_text(X, row):
    start, stop = X.indptr[row], X.indptr[row + 1]
    pairs = zip(X.indices[start:stop], X.data[start:stop], strict=True)
    return "| " + " ".join(f"{i}:{v:.6g}" for i, v in pairs)


class VowpalWabbit(Driver):
    """Options: ``arguments``, further words of the command line."""

    def prepare(self):
        path = self.data / "train.vw"
        if path.exists():
            return
        X, Y = (read_matrix(self.data / f"train_{side}.npz") for side in "XY")
        partial = path.with_suffix(".part")
        with partial.open("w") as file:
            for row in range(X.shape[0]):
                labels = ",".join(map(str, Y.indices[Y.indptr[row] : Y.indptr[row + 1]]))
                file.write(f"{labels} {as_text(X, row)}\n")
        partial.replace(path)

    def n_labels(self):
        return json.loads((self.data / "facts.json").read_text())["labels"]

    def train(self, X, Y):
        n_labels = self.n_labels()
        # The demo uses 25 bits for a hundred labels and 28 for thousands; 30 bits would need 16 GB of
        # weights.
        bits = 25 if n_labels < 1000 else 28
        cache = self.work / "train.cache"
        workspace = Workspace(
            f"--data {self.data / 'train.vw'} --cache_file {cache} --kill_cache --plt {n_labels} "
            f"--loss_function logistic --kary_tree 16 -l 0.5 --passes 5 --holdout_off --bit_precision {bits} "
            f"--final_regressor {self.model_path} --quiet {self.options.get('arguments', '')}"
        )
        workspace.finish()
        cache.unlink(missing_ok=True)
        return {}

    def load(self):
        return Workspace(
            f"--initial_regressor {self.model_path} --loss_function logistic --top_k {K} --testonly --quiet"
        )

    def native_batch(self, X):
        return [as_text(X, row) for row in range(X.shape[0])]

    def predict(self, model, batch):
        return [model.predict(example) for example in batch]

    def as_labels(self, predicted):
        # Its tree is always complete, so it may predict a leaf past the last label.
        n_labels = self.n_labels()
        return padded([[label for label in row if label < n_labels] for row in predicted])

    def native(self, X, row):
        return as_text(X, row)

    def predict_one(self, model, example):
        return model.predict(example)


run(VowpalWabbit)
