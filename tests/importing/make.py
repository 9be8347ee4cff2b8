"""Make the small models of other tools that the tests read: run it with the Python of each tool's environment.

    build/peers/omikuji/bin/python tests/importing/make.py omikuji

The environments are those of benchmarks/versus. The answers of the tool are in answers.npz beside its model.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "imported"))
from peer import PEERS

HOME = Path(__file__).parent / "models"
N_ROWS, N_FEATURES, N_LABELS = 400, 30, 90
SHOWN = 60


def rows():
    """Vectors of unit length; every row has its two best labels by a random linear map."""
    random = np.random.default_rng(0)
    X = random.random((N_ROWS, N_FEATURES)) * (random.random((N_ROWS, N_FEATURES)) < 0.3)
    X[:, 0] += 0.1
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    scores = X @ random.normal(size=(N_FEATURES, N_LABELS))
    Y = np.zeros((N_ROWS, N_LABELS), np.float32)
    Y[np.arange(N_ROWS)[:, None], np.argsort(-scores, axis=1)[:, :2]] = 1
    Y[np.arange(N_ROWS), np.arange(N_ROWS) % N_LABELS] = 1
    return sp.csr_matrix(X), sp.csr_matrix(Y)


def train(name, X, Y, target):
    if name == "omikuji":
        from omikuji import Model

        with tempfile.TemporaryDirectory() as folder:
            lines = [f"{N_ROWS} {N_FEATURES} {N_LABELS}"]
            for row in range(N_ROWS):
                labels = ",".join(map(str, Y[row].indices))
                lines.append(
                    labels + "".join(f" {i}:{v:.9g}" for i, v in zip(X[row].indices, X[row].data, strict=True))
                )
            (Path(folder) / "train.txt").write_text("\n".join(lines) + "\n")
            parameters = Model.default_hyper_param()
            parameters.n_trees, parameters.min_branch_size = 2, 6
            Model.train_on_data(str(Path(folder) / "train.txt"), parameters, n_threads=1).save(str(target))
    elif name == "pecos":
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        vectors = LabelEmbeddingFactory.create(Y, X, method="pifa", threads=1)
        clusters = Indexer.gen(vectors, threads=1, nr_splits=3, max_leaf_size=4)
        XLinearModel.train(X, Y, C=clusters, threads=1).save(str(target))
    elif name == "napkinxc":
        from napkinxc.models import PLT

        target.mkdir()
        PLT(str(target), threads=1, seed=0, verbose=0, max_leaves=4).fit(X, Y)
        (target / "tree.txt").unlink()
    else:
        from libmultilabel import linear

        np.random.seed(0)  # noqa: NPY002 - the tool draws from the global generator
        linear.save_pipeline(str(target), None, linear.train_ensemble_tree(Y, X, K=3, n_trees=2, verbose=False))


def main(name):
    X, Y = rows()
    target = HOME / name
    train(name, X, Y, target)
    peer = PEERS[name]()
    peer.load(target)
    shown = X[:SHOWN]
    labels, scores = peer.arrays(peer.predict(shown))
    np.savez_compressed(HOME / f"{name}.npz", X=shown.toarray(), labels=labels, scores=scores)


if __name__ == "__main__":
    main(sys.argv[1])
