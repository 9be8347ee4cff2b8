"""Generate data sets of any size: a hierarchy of topics, labels with Zipfian frequencies, and words for both.

Every row draws a few labels. The first label follows a power law; each further label shares its topic with probability
0.7. The features of a row are words of its labels, words of the topics above them, and noise; words of a higher topic
are shared by more labels. The data depend only on the shape and the seed. In a stream (``stream=True``), the number of
possible labels grows with the rows, as the vocabulary of a text does: new labels appear up to the last row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelwood.data.dataset import Dataset
from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR, from_scipy

_U64 = npt.NDArray[np.uint64]
_ROWS_AT_ONCE = 1 << 16
_WORDS_PER_LABEL, _WORDS_PER_TOPIC, _NOISE_WORDS = 12, 40, 5000
_SAME_TOPIC = 0.7
_LABELS_PER_TOPIC = 8  # on average, at least


@dataclass(frozen=True)
class Shape:
    """The shape of a generated data set.

    ``labels_per_row`` and ``words_per_row`` are means. ``branching`` and ``levels`` shape the hierarchy of topics.
    ``exponent`` belongs to the power law of the labels, ``growth`` to the number of labels over the rows of a stream.
    """

    n_rows: int
    n_labels: int = 10_000
    n_features: int = 100_000
    labels_per_row: float = 3.0
    words_per_row: int = 20
    branching: int = 8
    levels: int = 3
    exponent: float = 0.9
    growth: float = 0.7
    stream: bool = False

    def check(self) -> Shape:
        """Check that every number is in range, and return self."""
        rules = {
            "n_rows": self.n_rows >= 1, "n_labels": self.n_labels >= 1, "n_features": self.n_features >= 1,
            "labels_per_row": self.labels_per_row >= 1, "words_per_row": self.words_per_row >= 1,
            "branching": self.branching >= 2, "levels": self.levels >= 1,
        }  # fmt: skip
        for name, holds in rules.items():
            if not holds:
                least = 2 if name == "branching" else 1
                raise LabelwoodError(f"synth: {name} must be at least {least}; got {getattr(self, name)}")
        if self.exponent <= 0 or self.growth <= 0:
            raise LabelwoodError("synth: exponent and growth must be greater than 0")
        return self


def synth(shape: Shape, *, seed: int = 0) -> Dataset:
    """Generate a data set.

    >>> dataset = synth(Shape(n_rows=100, n_labels=20, n_features=500), seed=1)
    >>> dataset.X.n_rows, dataset.Y.n_cols, bool((np.diff(dataset.Y.indptr) > 0).all())
    (100, 20, True)
    """
    parts = list(synth_parts(shape, seed=seed))
    return Dataset(_stack([part.X for part in parts]), _stack([part.Y for part in parts]))


def synth_parts(shape: Shape, *, seed: int = 0) -> Iterator[Dataset]:
    """Generate a data set part by part; it may be larger than memory."""
    shape.check()
    for start in range(0, shape.n_rows, _ROWS_AT_ONCE):
        yield Dataset(*_rows(shape, seed, start, min(shape.n_rows, start + _ROWS_AT_ONCE)))


def _rows(shape: Shape, seed: int, start: int, stop: int) -> tuple[CSR, CSR]:
    random = np.random.default_rng([seed, start])
    n = stop - start
    known = _labels_known(shape, np.arange(start, stop))
    counts = 1 + random.poisson(shape.labels_per_row - 1, n)
    row_of_label = np.repeat(np.arange(n), counts)
    first = np.repeat(np.cumsum(counts) - counts, counts) == np.arange(counts.sum())
    alive = known[row_of_label]
    labels = _zipf(random.random(len(alive)), alive, shape.exponent)
    n_topics = min(shape.branching**shape.levels, max(1, shape.n_labels // _LABELS_PER_TOPIC))
    topic = np.repeat(labels[first] % n_topics, counts)
    related = labels - labels % n_topics + topic
    follow = ~first & (random.random(len(alive)) < _SAME_TOPIC) & (related < alive)
    labels = np.where(follow, related, labels)
    X = _words(shape, seed, random, labels=labels, counts=counts, n_topics=n_topics)
    Y = _matrix(row_of_label, labels, np.ones(len(labels), np.float32), (n, shape.n_labels))
    return X, CSR(Y.indptr, Y.indices, np.ones_like(Y.data), Y.n_cols)


def _labels_known(shape: Shape, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the number of labels that can occur in each row."""
    if not shape.stream:
        return np.full(len(rows), shape.n_labels, np.int64)
    share = ((rows + 1) / shape.n_rows) ** shape.growth
    return np.maximum(1, np.ceil(share * shape.n_labels)).astype(np.int64)


def _zipf(uniform: npt.NDArray[np.float64], count: npt.NDArray[np.int64], exponent: float) -> npt.NDArray[np.int64]:
    """Draw ranks below ``count`` with frequencies rank^-exponent, by inverting the continuous distribution."""
    if abs(exponent - 1.0) < 1e-6:
        ranks = (count + 1.0) ** uniform
    else:
        power = 1.0 - exponent
        ranks = (((count + 1.0) ** power - 1.0) * uniform + 1.0) ** (1.0 / power)
    return np.minimum(ranks.astype(np.int64) - 1, count - 1)


def _words(
    shape: Shape,
    seed: int,
    random: np.random.Generator,
    *,
    labels: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    n_topics: int,
) -> CSR:
    n = len(counts)
    n_words = 1 + random.poisson(shape.words_per_row - 1, n)
    row = np.repeat(np.arange(n), n_words)
    pick = (np.cumsum(counts) - counts)[row] + (random.random(len(row)) * counts[row]).astype(np.int64)
    label = labels[pick]
    kind = random.random(len(row))
    # Two fifths of the words belong to the label, two fifths to its topics, the rest is noise.
    level = (random.random(len(row)) * shape.levels).astype(np.int64)
    topic = (label % n_topics) // shape.branching**level
    own = _word(seed, 0, label, random.integers(0, _WORDS_PER_LABEL, len(row)), shape.n_features)
    shared = _word(seed, 1 + level, topic, random.integers(0, _WORDS_PER_TOPIC, len(row)), shape.n_features)
    noise = _word(seed, 99, _zipf(random.random(len(row)), np.full(len(row), _NOISE_WORDS), 1.0), 0, shape.n_features)
    columns = np.where(kind < 0.4, own, np.where(kind < 0.8, shared, noise))
    return _matrix(row, columns, np.ones(len(row), np.float32), (n, shape.n_features))


def _word(
    seed: int, kind: npt.ArrayLike, owner: npt.NDArray[np.int64], number: npt.ArrayLike, n_features: int
) -> npt.NDArray[np.int64]:
    """Return the column of word ``number`` of a label or topic: a hash, so that no table is needed."""
    mixed = _mix(np.asarray(owner, np.uint64) + _mix(np.asarray(kind, np.uint64) + np.uint64(seed)))
    mixed = _mix(mixed + np.asarray(number, np.uint64))
    return (mixed % np.uint64(n_features)).astype(np.int64)


def _mix(x: _U64) -> _U64:
    x = np.atleast_1d(x) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _matrix(rows: npt.ArrayLike, columns: npt.ArrayLike, values: npt.ArrayLike, shape: tuple[int, int]) -> CSR:
    import scipy.sparse as sp  # noqa: PLC0415 - importing labelwood must not import scipy

    return from_scipy(sp.csr_array((np.asarray(values), (np.asarray(rows), np.asarray(columns))), shape=shape))


def _stack(parts: list[CSR]) -> CSR:
    offsets = np.cumsum([0] + [part.nnz for part in parts])
    indptr = np.concatenate(
        [np.zeros(1, np.int64)] + [part.indptr[1:] + offset for part, offset in zip(parts, offsets, strict=False)]
    )
    return CSR(
        indptr,
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.data for part in parts]),
        parts[0].n_cols,
    )
