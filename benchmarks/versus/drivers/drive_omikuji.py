"""omikuji 0.5.2 with its defaults: balanced 2-means trees (Parabel), squared hinge, weights below 0.1 cut.

It trains only from a text file and predicts one row per call. The driver makes up for both: the training time
excludes the parsing of the file, and a batch calls the native function in Python threads (the call releases
the interpreter lock) on slices of the arrays, instead of ``Model.predict``, which takes lists of pairs.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from common import Clock, Driver, K, padded, run
from omikuji import Model, _ThreadPoolHandle
from omikuji._libomikuji import ffi, lib

BEAM = 10


class Omikuji(Driver):
    """Options: ``n_trees``."""

    def train(self, X, Y):
        pool = _ThreadPoolHandle(self.threads)
        with Clock() as parsing:
            path = ffi.new("char[]", str(self.data / "train.txt").encode())
            loaded = lib.load_omikuji_data_set(path, pool.ptr)
        if loaded == ffi.NULL:
            raise RuntimeError("omikuji could not read train.txt")
        data = ffi.gc(loaded, lib.free_omikuji_data_set)
        parameters = Model.default_hyper_param()
        parameters.n_trees = self.options["n_trees"]
        model = Model(lib.train_omikuji_model(data, parameters, pool.ptr))
        model.save(str(self.model_path))
        return {"excluded_seconds": parsing.wall, "excluded_cpu_seconds": parsing.cpu}

    def load(self):
        model = Model.load(str(self.model_path))
        model.init_prediction_thread_pool(self.threads)
        return model

    def predict(self, model, X):
        indices, values = X.indices.astype(np.uint32), X.data
        pool = model._thread_pool.ptr

        def part(rows):
            labels, scores = ffi.new("uint32_t[]", K), ffi.new("float[]", K)
            found = []
            for row in rows:
                start, stop = X.indptr[row], X.indptr[row + 1]
                count = lib.omikuji_predict(
                    model._model_ptr,
                    BEAM,
                    stop - start,
                    ffi.from_buffer("uint32_t[]", indices[start:stop]),
                    ffi.from_buffer("float[]", values[start:stop]),
                    K,
                    labels,
                    scores,
                    pool,
                )
                found.append(list(labels[0:count]))
            return found

        with ThreadPoolExecutor(self.threads) as threads:
            parts = threads.map(part, np.array_split(np.arange(X.shape[0]), self.threads))
            return [row for rows in parts for row in rows]

    def as_labels(self, predicted):
        return padded(predicted)

    def native(self, X, row):
        start, stop = X.indptr[row], X.indptr[row + 1]
        return list(zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist(), strict=True))

    def predict_one(self, model, example):
        return model.predict(example, beam_size=BEAM, top_k=K)


run(Omikuji)
