"""Generate data sets of any size: a hierarchy of topics, labels with Zipfian frequencies, and words for both.

Every row draws a few labels. The first label follows a power law; each further label shares its topic with probability
0.7. The features of a row are words of its labels, words of the topics above them, and noise; words of a higher topic
are shared by more labels. The data depend only on the shape and the seed. In a stream (``stream=True``), the number of
possible labels grows with the rows, as the vocabulary of a text does: new labels appear up to the last row.

``published`` gives the shape of a public data set. Its rows are like texts (``natural=True``): half of the words are
background words, word r with a frequency of 1/r; values are TF-IDF weights; and every label occurs in the training
rows. Test rows have labels and words of the same model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from labelwood.data.dataset import Dataset
from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR, from_scipy

_U64 = npt.NDArray[np.uint64]
_ROWS_AT_ONCE = 1 << 16
_WORDS_AT_ONCE = 20 * _ROWS_AT_ONCE
_WORDS_PER_LABEL, _WORDS_PER_TOPIC, _NOISE_WORDS = 12, 40, 5000
# Shares of the words of a label, and of a label and its topics; the rest is noise.
_SHARES, _NATURAL_SHARES = (0.4, 0.8), (0.25, 0.5)
_SAME_TOPIC = 0.7
_LABELS_PER_TOPIC = 8  # on average, at least


_TRAIN, _TEST, _SAMPLE = 0, 1, 2  # streams of random numbers
_SAMPLE_ROWS, _SAMPLE_ROUNDS = 2048, 5


@dataclass(frozen=True)
class Shape:
    """The shape of a generated data set.

    ``labels_per_row`` and ``words_per_row`` are means of the draws; a label or word that is drawn twice counts once.
    ``branching`` and ``levels`` shape the hierarchy of topics. ``exponent`` belongs to the power law of the labels,
    ``growth`` to the number of labels over the rows of a stream. ``natural`` rows are like texts.
    """

    n_rows: int
    n_labels: int = 10_000
    n_features: int = 100_000
    labels_per_row: float = 3.0
    words_per_row: float = 20
    branching: int = 8
    levels: int = 3
    exponent: float = 0.9
    growth: float = 0.7
    stream: bool = False
    natural: bool = False

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
        if self.stream and self.natural:
            raise LabelwoodError("synth: natural must be False in a stream; got True")
        return self

    @property
    def n_topics(self) -> int:
        """Number of topics on the lowest level."""
        leaves: int = self.branching**self.levels
        return min(leaves, max(1, self.n_labels // _LABELS_PER_TOPIC))

    @property
    def rows_at_once(self) -> int:
        """Rows that are drawn together: a power of two, fewer for longer rows, so that memory is bounded."""
        fitting = max(1, int(_WORDS_AT_ONCE / max(self.words_per_row, self.labels_per_row)))
        return min(_ROWS_AT_ONCE, 1 << (fitting.bit_length() - 1))


@dataclass(frozen=True)
class Published:
    """Counts of a public data set; ``row_labels`` and ``row_words`` are means, ``exponent`` is assumed."""

    train_rows: int
    test_rows: int
    features: int
    labels: int
    row_labels: float
    row_words: float
    exponent: float


# Rows, features, labels and labels of a row are those of the papers that use the sets and of the Extreme Classification
# Repository. The non-zeros of a row are rounded.
PUBLISHED = {
    "amazoncat-13k": Published(1_186_239, 306_782, 203_882, 13_330, 5.04, 71, 0.9),
    "delicious-200k": Published(196_606, 100_095, 782_585, 205_443, 75.54, 301, 0.8),
    "wikilshtc-325k": Published(1_778_351, 587_084, 1_617_899, 325_056, 3.19, 42, 0.75),
    "wikipedia-500k": Published(1_779_881, 769_421, 2_381_304, 501_070, 4.75, 385, 0.75),
    "amazon-670k": Published(490_449, 153_025, 135_909, 670_091, 5.45, 76, 0.6),
    "amazon-3m": Published(1_717_899, 742_507, 337_067, 2_812_281, 36.17, 49, 0.6),
}


def published(name: str, *, scale: float = 1.0) -> tuple[Shape, int]:
    """The shape of a public data set and its number of test rows; ``scale`` multiplies rows, features and labels.

    The means of the draws are set so that the distinct labels and words of a row have the published means.

    >>> shape, test_rows = published("amazon-670k", scale=0.01)
    >>> shape.n_rows, shape.n_features, shape.n_labels, test_rows
    (4904, 1359, 6701, 1530)
    """
    if name not in PUBLISHED:
        raise LabelwoodError(f"synth: shape must be one of {', '.join(PUBLISHED)}; got {name!r}")
    if not 0 < scale <= 1:
        raise LabelwoodError(f"synth: scale must be greater than 0 and at most 1; got {scale}")
    public = PUBLISHED[name]
    sizes = [max(1, round(scale * n)) for n in (public.train_rows, public.labels, public.features, public.test_rows)]
    rows, labels, features, test_rows = sizes
    for what, count, mean in (("labels", labels, public.row_labels), ("words", features, public.row_words)):
        if count < 4 * mean:
            advice = "take a larger scale"
            raise LabelwoodError(f"synth: scale must leave more than {4 * mean:.0f} {what}; got {scale}; {advice}")
    n_topics = labels / max(64, 4 * public.row_labels)
    levels = max(1, round(math.log(max(n_topics, 1), Shape.branching)))
    shape = Shape(rows, labels, features, exponent=public.exponent, levels=levels, natural=True)
    labelled = _aimed(
        lambda drawn: replace(shape, words_per_row=1, labels_per_row=drawn), lambda _, Y: Y, public.row_labels
    )
    return _aimed(lambda drawn: replace(labelled, words_per_row=drawn), lambda X, _: X, public.row_words), test_rows


def _aimed(shape_of: Callable[[float], Shape], counted: Callable[[CSR, CSR], CSR], mean: float) -> Shape:
    """The shape whose rows have the given mean of distinct labels (or words), measured on sample rows."""
    drawn = mean
    for _ in range(_SAMPLE_ROUNDS):
        trial = shape_of(drawn)
        found = counted(*_rows(trial, 0, _SAMPLE, 0, min(_SAMPLE_ROWS, trial.n_rows)))
        drawn = max(1.0, drawn * mean / (found.nnz / found.n_rows))
    return shape_of(round(drawn, 2))


def synth(shape: Shape, *, seed: int = 0, test_rows: int | None = None) -> Dataset:
    """Generate a data set; with ``test_rows``, as many other rows with labels and words of the same model.

    >>> dataset = synth(Shape(n_rows=100, n_labels=20, n_features=500), seed=1)
    >>> dataset.X.n_rows, dataset.Y.n_cols, bool((np.diff(dataset.Y.indptr) > 0).all())
    (100, 20, True)
    """
    return Dataset.joined(list(synth_parts(shape, seed=seed, test_rows=test_rows)))


def synth_parts(shape: Shape, *, seed: int = 0, test_rows: int | None = None) -> Iterator[Dataset]:
    """Generate a data set part by part; it may be larger than memory."""
    shape.check()
    if test_rows is not None and test_rows < 1:
        raise LabelwoodError(f"synth: test_rows must be at least 1; got {test_rows}")
    stream, n_rows = (_TRAIN, shape.n_rows) if test_rows is None else (_TEST, test_rows)
    for start in range(0, n_rows, shape.rows_at_once):
        yield Dataset(*_rows(shape, seed, stream, start, min(n_rows, start + shape.rows_at_once)))


def _rows(shape: Shape, seed: int, stream: int, start: int, stop: int) -> tuple[CSR, CSR]:
    random = np.random.default_rng([seed, start] if stream == _TRAIN else [seed, start, stream])
    n = stop - start
    # A row of another stream is drawn as some training row is: the labels that may occur are those of that row.
    place = np.arange(start, stop) if stream == _TRAIN else random.integers(0, shape.n_rows, n)
    known = _labels_known(shape, place)
    counts = 1 + random.poisson(shape.labels_per_row - 1, n)
    covered, cover_from = _covered(shape, place)
    counts = np.maximum(counts, covered)
    row_of_label = np.repeat(np.arange(n), counts)
    number = np.arange(len(row_of_label)) - np.repeat(np.cumsum(counts) - counts, counts)  # within the row
    first = number == 0
    alive = known[row_of_label]
    labels = _zipf(random.random(len(alive)), alive, shape.exponent)
    owed = number < covered[row_of_label]
    labels[owed] = _by_topic(shape, (cover_from[row_of_label] + number)[owed])
    topic = np.repeat(labels[first] % shape.n_topics, counts)
    related = labels - labels % shape.n_topics + topic
    follow = ~first & ~owed & (random.random(len(alive)) < _SAME_TOPIC) & (related < alive)
    labels = np.where(follow, related, labels)
    X = _words(shape, seed, random, labels=labels, counts=counts)
    Y = _matrix(row_of_label, labels, np.ones(len(labels), np.float32), (n, shape.n_labels))
    return X, CSR(Y.indptr, Y.indices, np.ones_like(Y.data), Y.n_cols)


def _covered(shape: Shape, place: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Number of labels that each row must have so that every label occurs, and the first of them.

    The rows take turns in a mixed order, so that neighbours have different topics.
    """
    if not shape.natural:
        none = np.zeros(len(place), np.int64)
        return none, none
    step = int(0.618 * shape.n_rows) | 1
    while math.gcd(step, shape.n_rows) != 1:
        step += 2
    turn = place * step % shape.n_rows
    first = turn * shape.n_labels // shape.n_rows
    return (turn + 1) * shape.n_labels // shape.n_rows - first, first


def _by_topic(shape: Shape, number: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Label ``number`` in the order of the topics: a label belongs to topic ``label % n_topics``."""
    size, longer = divmod(shape.n_labels, shape.n_topics)
    in_longer = number < longer * (size + 1)
    rest = number - longer
    topic: npt.NDArray[np.int64] = np.where(in_longer, number // (size + 1), rest // size)
    within: npt.NDArray[np.int64] = np.where(in_longer, number % (size + 1), rest % size)
    return topic + shape.n_topics * within


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
) -> CSR:
    n = len(counts)
    n_words = 1 + random.poisson(shape.words_per_row - 1, n)
    row = np.repeat(np.arange(n), n_words)
    pick = (np.cumsum(counts) - counts)[row] + (random.random(len(row)) * counts[row]).astype(np.int64)
    label = labels[pick]
    kind = random.random(len(row))
    of_label, of_topic = _NATURAL_SHARES if shape.natural else _SHARES
    level = (random.random(len(row)) * shape.levels).astype(np.int64)
    topic = (label % shape.n_topics) // shape.branching**level
    per_label = _words_per_label(shape)
    own = _word(seed, 0, label, random.integers(0, per_label, len(row)), shape.n_features)
    shared = _word(seed, 1 + level, topic, random.integers(0, _WORDS_PER_TOPIC, len(row)), shape.n_features)
    if shape.natural:
        noise = _zipf(random.random(len(row)), np.full(len(row), shape.n_features), 1.0)
    else:
        ranks = _zipf(random.random(len(row)), np.full(len(row), _NOISE_WORDS), 1.0)
        noise = _word(seed, 99, ranks, 0, shape.n_features)
    columns = np.where(kind < of_label, own, np.where(kind < of_topic, shared, noise))
    X = _matrix(row, columns, np.ones(len(row), np.float32), (n, shape.n_features))
    return _weighted(X) if shape.natural else X


def _words_per_label(shape: Shape) -> int:
    """Words of a label: more for long texts, whose words would repeat."""
    if not shape.natural:
        return _WORDS_PER_LABEL
    return max(_WORDS_PER_LABEL, round(_NATURAL_SHARES[0] * shape.words_per_row / shape.labels_per_row))


def _weighted(X: CSR) -> CSR:
    """TF-IDF weights of counted words; column r is the word of rank r, whose frequency is 1 / (r log features)."""
    rarity = np.log1p((X.indices + 1.0) * math.log(X.n_cols + 1.0))
    return CSR(X.indptr, X.indices, ((1.0 + np.log(X.data)) * rarity).astype(np.float32), X.n_cols)


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
