"""Few-shot multi-class learning: progressive accuracy on a generated set of 10,000 classes, S examples of each.

    python experiments/oplt/few_shot.py --shots 3
    python experiments/oplt/few_shot.py --shots 5 --plot curve.png

Each class has 12 words of its own and shares the words of a topic; an example draws from both and from noise. Against
a constant predictor (any class: all are equally frequent) and a nearest centroid (the class whose summed unit vectors
have the largest cosine with the example), progressive too. ``--vw FILE`` writes the stream for ``vw``'s memory tree.
"""

import argparse
import time

import numpy as np

from labelwood import OnlineTree
from labelwood.data.synth import _word, _zipf
from labelwood.sparse import CSR, from_scipy


def make(n_classes, shots, draw, seed=0, n_words=25, n_features=100_000):
    import scipy.sparse as sp

    random = np.random.default_rng(draw)
    classes = random.permutation(np.repeat(np.arange(n_classes), shots))
    label = np.repeat(classes, n_words)
    kind = random.random(len(label))
    own = _word(seed, 0, label, random.integers(0, 12, len(label)), n_features)
    topic = _word(seed, 1, label % 200, random.integers(0, 40, len(label)), n_features)
    noise = _word(seed, 99, _zipf(random.random(len(label)), np.full(len(label), 5000), 1.0), 0, n_features)
    columns = np.where(kind < 0.3, own, np.where(kind < 0.6, topic, noise))
    rows = np.repeat(np.arange(len(classes)), n_words)
    X = from_scipy(
        sp.csr_array((np.ones(len(label), np.float32), (rows, columns)), shape=(len(classes), n_features))
    )
    Y = CSR(
        np.arange(len(classes) + 1), classes.astype(np.int32), np.ones(len(classes), np.float32), n_classes
    )
    return X, Y


def nearest_centroid(X, classes, n_classes):
    """Progressive hits of a nearest-centroid classifier, by an inverted index from feature to class sums."""
    sums, squares, hits = {}, np.zeros(n_classes), np.zeros(X.n_rows, bool)
    scores = np.zeros(n_classes)
    for row in range(X.n_rows):
        start, stop = X.indptr[row], X.indptr[row + 1]
        values = X.data[start:stop] / np.linalg.norm(X.data[start:stop])
        touched = set()
        for feature, value in zip(X.indices[start:stop].tolist(), values.tolist(), strict=True):
            for label, weight in sums.get(feature, {}).items():
                scores[label] += value * weight
                touched.add(label)
        if touched:
            candidates = np.fromiter(touched, int)
            best = candidates[np.argmax(scores[candidates] / np.sqrt(squares[candidates]))]
            hits[row] = best == classes[row]
            scores[candidates] = 0
        for feature, value in zip(X.indices[start:stop].tolist(), values.tolist(), strict=True):
            own = sums.setdefault(feature, {})
            before = own.get(int(classes[row]), 0.0)
            own[int(classes[row])] = before + value
            squares[classes[row]] += (before + value) ** 2 - before**2
    return hits


def write_vw(path, X, classes):
    with open(path, "w") as file:
        for row in range(X.n_rows):
            features = X.indices[X.indptr[row] : X.indptr[row + 1]].tolist()
            file.write(f"{classes[row] + 1} | " + " ".join(map(str, features)) + "\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shots", type=int, default=3)
    parser.add_argument("--classes", type=int, default=10_000)
    parser.add_argument("--max-leaf", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=1.0)
    parser.add_argument("--plot")
    parser.add_argument("--vw")
    options = parser.parse_args()
    X, Y = make(options.classes, options.shots, draw=0)
    test_X, test_Y = make(options.classes, 1, draw=1)
    if options.vw:
        write_vw(options.vw, X, Y.indices)
    centroid = nearest_centroid(X, Y.indices, options.classes)
    for policy in ("best-greedy", "random"):
        model = OnlineTree(
            policy=policy, max_leaf=options.max_leaf, learning_rate=options.learning_rate, n_jobs=1
        )
        start = time.process_time()
        result = model.progressive(X, Y, k=1)
        seconds = time.process_time() - start
        late = slice(X.n_rows * 3 // 4, None)
        print(
            f"{policy}: progressive accuracy {result.accuracy:.4f} (last quarter {result.hits[late, 0].mean():.4f}), "
            f"constant {1 / options.classes:.5f}, centroid {centroid.mean():.4f} "
            f"(last quarter {centroid[late].mean():.4f}), "
            f"entropy reduction {np.log2(result.accuracy * options.classes):.2f} bits, "
            f"test accuracy {model.score(test_X, test_Y):.4f}, {seconds:.1f} CPU s"
        )
        if options.plot and policy == "best-greedy":
            result.plot(options.plot)


if __name__ == "__main__":
    main()
