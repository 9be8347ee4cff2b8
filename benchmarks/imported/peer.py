"""One tool in its own environment: trains a model, then predicts on request; see compare.py.

python peer.py omikuji train DATA MODEL
python peer.py omikuji predict DATA MODEL OUT.npz     (a line "run" on stdin: predict once, answer with the seconds)
"""

from __future__ import annotations

import pickle
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

K = 5
ROWS = 1000  # predicted at once by tools that return dense matrices


def read_matrix(path):
    matrix = sp.csr_matrix(sp.load_npz(path)).astype(np.float32)
    matrix.sort_indices()
    return matrix


def padded(rows):
    """Lists of (label, score) pairs as two arrays."""
    labels, scores = np.full((len(rows), K), -1, np.int64), np.zeros((len(rows), K))
    for i, row in enumerate(rows):
        for j, (label, score) in enumerate(row[:K]):
            labels[i, j], scores[i, j] = label, score
    return labels, scores


def best_of_dense(scores):
    part = np.argpartition(-scores, K, axis=1)[:, :K]
    order = np.argsort(-np.take_along_axis(scores, part, axis=1), axis=1, kind="stable")
    labels = np.take_along_axis(part, order, axis=1)
    return labels, np.take_along_axis(scores, labels, axis=1)


class Omikuji:
    """omikuji, row by row through its native function, because it has no batch call."""

    def train(self, data, model):
        from omikuji import Model

        parameters = Model.default_hyper_param()
        Model.train_on_data(str(data / "train.txt"), parameters, n_threads=1).save(str(model))

    def load(self, model):
        from omikuji import Model, _ThreadPoolHandle

        self.model = Model.load(str(model))
        self.pool = _ThreadPoolHandle(1)

    def predict(self, X):
        from omikuji._libomikuji import ffi, lib

        labels, scores = ffi.new("uint32_t[]", K), ffi.new("float[]", K)
        indices, values = X.indices.astype(np.uint32), X.data
        found = []
        for row in range(X.shape[0]):
            start, stop = X.indptr[row], X.indptr[row + 1]
            count = lib.omikuji_predict(
                self.model._model_ptr,
                10,
                stop - start,
                ffi.from_buffer("uint32_t[]", indices[start:stop]),
                ffi.from_buffer("float[]", values[start:stop]),
                K,
                labels,
                scores,
                self.pool.ptr,
            )
            found.append((list(labels[0:count]), list(scores[0:count])))
        return found

    def arrays(self, found):
        return padded([list(zip(labels, scores, strict=True)) for labels, scores in found])


class Pecos:
    """XR-Linear of PECOS, loaded for prediction only, as its documentation recommends."""

    def train(self, data, model):
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        X, Y = read_matrix(data / "train_X.npz"), read_matrix(data / "train_Y.npz")
        vectors = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=1)
        XLinearModel.train(X, Y, C=Indexer.gen(vectors, threads=1), threads=1).save(str(model))

    def load(self, model):
        from pecos.xmc.xlinear.model import XLinearModel

        self.model = XLinearModel.load(str(model), is_predict_only=True)

    def predict(self, X):
        return self.model.predict(X, only_topk=K, threads=1)

    def arrays(self, found):
        rows = []
        for start, stop in zip(found.indptr[:-1], found.indptr[1:], strict=True):
            order = np.argsort(-found.data[start:stop], kind="stable")
            rows.append(list(zip(found.indices[start:stop][order], found.data[start:stop][order], strict=True)))
        return padded(rows)


class NapkinXC:
    """PLT of napkinXC."""

    def _plt(self, model):
        from napkinxc.models import PLT

        return PLT(str(model), threads=1, seed=0, verbose=0)

    def train(self, data, model):
        model.mkdir(parents=True)
        self._plt(model).fit(read_matrix(data / "train_X.npz"), read_matrix(data / "train_Y.npz"))

    def load(self, model):
        self.model = self._plt(model)
        self.model.load()

    def predict(self, X):
        return self.model.predict_proba(X, top_k=K)

    def arrays(self, found):
        return padded(found)


class LibMultiLabel:
    """A tree of LibMultiLabel."""

    def train(self, data, model):
        import psutil
        from libmultilabel import linear

        psutil.cpu_count = lambda logical=True: 1
        np.random.seed(0)  # noqa: NPY002 - the tool draws from the global generator
        X, Y = read_matrix(data / "train_X.npz"), read_matrix(data / "train_Y.npz")
        linear.save_pipeline(str(model), None, linear.train_tree(Y, X, verbose=False))

    def load(self, model):
        from libmultilabel import linear

        self.model = linear.load_pipeline(str(model / "linear_pipeline.pickle"))[1]

    def predict(self, X):
        from libmultilabel import linear

        parts = [best_of_dense(linear.predict_values(self.model, X[i : i + ROWS])) for i in range(0, X.shape[0], ROWS)]
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))

    def arrays(self, found):
        return found


class Sklearn:
    """OneVsRestClassifier of LogisticRegression, the probabilities of all labels."""

    def train(self, data, model):
        from sklearn.linear_model import LogisticRegression
        from sklearn.multiclass import OneVsRestClassifier

        X, Y = read_matrix(data / "train_X.npz"), read_matrix(data / "train_Y.npz")
        Y = Y[:, np.diff(Y.tocsc().indptr) > 0]
        found = OneVsRestClassifier(LogisticRegression(solver="liblinear")).fit(X.astype(np.float64), Y)
        model.mkdir(parents=True)
        (model / "model.pickle").write_bytes(pickle.dumps(found))

    def load(self, model):
        self.model = pickle.loads((model / "model.pickle").read_bytes())

    def predict(self, X):
        parts = [best_of_dense(self.model.predict_proba(X[i : i + ROWS])) for i in range(0, X.shape[0], ROWS)]
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))

    def arrays(self, found):
        return found


PEERS = {"omikuji": Omikuji, "pecos": Pecos, "napkinxc": NapkinXC, "libmultilabel": LibMultiLabel, "sklearn": Sklearn}


def main(name, phase, data, model, out=None):
    peer = PEERS[name]()
    if phase == "train":
        peer.train(Path(data), Path(model))
        return
    peer.load(Path(model))
    X = read_matrix(Path(data) / "test_X.npz")
    print("ready", flush=True)
    found = None
    for _ in sys.stdin:
        started = time.process_time(), time.perf_counter()
        found = peer.predict(X)
        print("took", time.process_time() - started[0], time.perf_counter() - started[1], flush=True)
    labels, scores = peer.arrays(found)
    np.savez(out, labels=labels, scores=scores)


if __name__ == "__main__":
    main(*sys.argv[1:])
