"""Table 3 and Figure 2: few-shot multi-class learning, judged as it learns and on new rows.

    python -m experiments.oplt.few_shot [--sets ALOI,WikiPara-3,WikiPara-5] [--vw PYTHON]

ALOI and WikiPara are not here: generated sets of their shape stand in for them, in which each class has 12 words of
its own and shares the words of a topic, and an example draws from both and from noise. What --data has is read
instead (one label a row). Beside OPLT: a constant predictor and a nearest centroid (the class whose summed unit
vectors have the largest cosine with the example), and, with --vw and a Python that has vowpalwabbit, its memory tree
(CMT). As in the paper: learning rate 1, 10 labels a leaf; test accuracy is the better of one pass and three.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import Options, Split, find, parse, read, repeated
from experiments.report import NOT_AT_HAND, Report
from labelwood import OnlineTree
from labelwood.data import Dataset
from labelwood.data.synth import _word, _zipf
from labelwood.sparse import CSR, from_scipy

# Classes and examples of each; features and words of an example.
SHAPES = {"ALOI": (1_001, 97, 129, 40), "WikiPara-3": (10_000, 3, 100_000, 25), "WikiPara-5": (10_000, 5, 100_000, 25)}
PUBLISHED = {  # test accuracy
    "ALOI": {"CMT": 71.98, "OPLT-R": 66.50, "OPLT-B": 67.26},
    "WikiPara-3": {"CMT": 3.28, "OPLT-R": 27.34, "OPLT-B": 24.66},
    "WikiPara-5": {"CMT": 4.21, "OPLT-R": 40.67, "OPLT-B": 39.13},
}
POLICIES = {"OPLT-R": "random", "OPLT-B": "best-greedy"}


def make(n_classes: int, shots: int, draw: int, n_words: int, n_features: int, seed: int = 0) -> Dataset:
    """Rows of equally frequent classes in random order; ``seed`` chooses the words, ``draw`` the rows."""
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
    X = from_scipy(sp.csr_array((np.ones(len(label), np.float32), (rows, columns)), shape=(len(classes), n_features)))
    Y = CSR(np.arange(len(classes) + 1), classes.astype(np.int32), np.ones(len(classes), np.float32), n_classes)
    return Dataset(X, Y)


class ClassSums:
    """The sum of the rows of each class, by feature: which classes have it, and how much of it."""

    def __init__(self) -> None:
        self._classes: dict[int, np.ndarray] = {}
        self._weights: dict[int, np.ndarray] = {}
        self._place: dict[int, dict[int, int]] = {}

    def of(self, feature: int) -> tuple[np.ndarray, np.ndarray]:
        """The classes that have a feature, and their weights."""
        count = len(self._place.get(feature, ()))
        if count == 0:
            return np.empty(0, int), np.empty(0)
        return self._classes[feature][:count], self._weights[feature][:count]

    def add(self, feature: int, label: int, value: float) -> float:
        """Add to a class; returns what it had before."""
        places = self._place.setdefault(feature, {})
        place = places.setdefault(label, len(places))
        room = len(self._classes.get(feature, ()))
        if place >= room:
            for arrays, kind in ((self._classes, int), (self._weights, float)):
                grown = np.zeros(2 * room + 4, kind)
                grown[:room] = arrays.get(feature, grown[:0])
                arrays[feature] = grown
        before = float(self._weights[feature][place])
        self._classes[feature][place] = label
        self._weights[feature][place] = before + value
        return before


def nearest_centroid(X: CSR, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Progressive hits of a nearest-centroid classifier, by an inverted index from feature to class sums."""
    sums = ClassSums()
    squares, hits = np.zeros(n_classes), np.zeros(X.n_rows, bool)
    for row in range(X.n_rows):
        start, stop = X.indptr[row], X.indptr[row + 1]
        values = X.data[start:stop] / np.linalg.norm(X.data[start:stop])
        entries = list(zip(X.indices[start:stop].tolist(), values.tolist(), strict=True))
        scores = np.zeros(n_classes)
        for feature, value in entries:
            known, weights = sums.of(feature)
            scores[known] += value * weights
        if scores.any():
            hits[row] = np.argmax(scores / np.sqrt(np.maximum(squares, 1e-30))) == classes[row]
        for feature, value in entries:
            before = sums.add(feature, int(classes[row]), value)
            squares[classes[row]] += value * (value + 2 * before)
    return hits


def write_vw(path: Path, X: CSR, classes: np.ndarray) -> None:
    """The stream in Vowpal Wabbit's format."""
    with open(path, "w") as file:
        for row in range(X.n_rows):
            features = X.indices[X.indptr[row] : X.indptr[row + 1]].tolist()
            file.write(f"{classes[row] + 1} | " + " ".join(map(str, features)) + "\n")


def loaded(name: str, options: Options) -> Split:
    """The data set of that name, or a generated one of its shape; smaller in a quick run."""
    folder = find(options.data, name)
    if folder is not None:
        return read(folder, name)
    n_classes, shots, n_features, n_words = SHAPES[name]
    if options.quick:
        n_classes, shots = n_classes // 20, min(shots, 10)
    train, test = (make(n_classes, n, draw, n_words, n_features) for draw, n in enumerate((shots, min(shots, 10))))
    return Split(name, train, test, True)


def shuffled(rows: Dataset, seed: int) -> Dataset:
    """Another order of the same stream."""
    order = np.random.default_rng(seed).permutation(rows.n_rows)
    return Dataset(rows.X.take(order), rows.Y.take(order))


def learned(split: Split, policy: str, seed: int, threads: int, curve: dict[int, np.ndarray]) -> dict[str, float]:
    """Progressive and test accuracy of one shuffle; keeps the curve of the entropy reduction."""
    given = {"policy": policy, "max_leaf": 10, "learning_rate": 1.0, "n_jobs": threads, "random_state": seed}
    rows = shuffled(split.train, seed)
    start = time.process_time()
    model = OnlineTree(**given)
    seen = model.progressive(rows.X, rows.Y, k=1)
    seconds = time.process_time() - start
    curve[seed] = bits(seen.accuracy_curve(), split)
    again = OnlineTree(**given, epochs=3).fit(rows.X, rows.Y)
    accuracies = [100 * one.score(split.test.X, split.test.Y) for one in (model, again)]
    return {
        "progressive accuracy": 100 * seen.accuracy, "entropy reduction, bits": float(curve[seed][-1]),
        "test, one pass": accuracies[0], "test, three passes": accuracies[1], "one pass, CPU s": seconds,
    }  # fmt: skip


def bits(accuracy: np.ndarray, split: Split) -> np.ndarray:
    """log2 of the accuracy over that of always naming the most frequent class; NaN before the first hit."""
    constant = np.bincount(split.train.Y.indices).max() / split.train.n_rows
    return np.log2(np.where(accuracy > 0, accuracy, np.nan) / constant)


def centroids(split: Split, seed: int) -> dict[str, float]:
    """The nearest centroid, as it learns."""
    rows = shuffled(split.train, seed)
    start = time.process_time()
    accuracy = 100 * float(nearest_centroid(rows.X, rows.Y.indices, rows.Y.n_cols).mean())
    return {"progressive accuracy": accuracy, "one pass, CPU s": time.process_time() - start}


def memory_tree(split: Split, seed: int, python: str) -> dict[str, float]:
    """Vowpal Wabbit's memory tree, as it learns and on new rows after its authors' number of passes."""
    rows, script = shuffled(split.train, seed), Path(__file__).with_name("few_shot_vw.py")
    with tempfile.TemporaryDirectory() as folder:
        stream, test = Path(folder, "stream.vw"), Path(folder, "test.vw")
        write_vw(stream, rows.X, rows.Y.indices)
        write_vw(test, split.test.X, split.test.Y.indices)
        like = "aloi" if split.name == "ALOI" else "wikipara"
        command = [python, script, stream, test, "--classes", rows.Y.n_cols, "--like", like]
        done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    passes, accuracy = found.pop("passes"), found.pop("test, last pass")
    return {**found, "test, three passes" if passes == 3 else "test, two passes": accuracy}


def main() -> None:
    """The table and the curves."""

    def extra(parser: Any) -> None:
        parser.add_argument("--vw", help="a Python that has the package vowpalwabbit")

    options = parse(__doc__, sets=tuple(SHAPES), extra=extra)
    table = Report("oplt", "table3", "OPLT, Table 3: few-shot accuracy", options)
    figure = Report("oplt", "figure2", "OPLT, Figure 2: entropy reduction as it learns", options)
    for name, axis in zip(options.sets, figure.axes(len(options.sets)), strict=True):
        split, rows, ends = loaded(name, options), [], []
        for title, policy in POLICIES.items():
            curve: dict[int, np.ndarray] = {}
            found = repeated(
                options.seeds, lambda seed, s=split, p=policy, c=curve: learned(s, p, seed, options.threads, c)
            )
            rows.append({"": title, **found})
            mean = np.ma.masked_invalid(list(curve.values())).mean(axis=0).filled(np.nan)  # none at first
            axis.plot(np.arange(1, len(mean) + 1), mean, label=title)
            quarters = [len(mean) * part // 4 - 1 for part in (1, 2, 3, 4)]
            ends.append(
                {"": title, **{f"after {at + 1} rows": [float(c[at]) for c in curve.values()] for at in quarters}}
            )
        rows.append({"": "nearest centroid", **repeated(options.seeds, lambda seed, s=split: centroids(s, seed))})
        if options.extra.vw:
            found = repeated(options.seeds, lambda seed, s=split: memory_tree(s, seed, options.extra.vw))
            rows.append({"": "CMT (Vowpal Wabbit)", **found})
        table.table(split.title, rows)
        figure.table(split.title, ends)
        axis.set(xlabel="rows seen", ylabel="entropy reduction, bits", title=split.title)
        axis.title.set_fontsize(8)
        axis.legend()
    table.table(NOT_AT_HAND, options.published(PUBLISHED))
    table.write()
    figure.write()


if __name__ == "__main__":
    main()
