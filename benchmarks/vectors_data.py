"""Made embeddings with labels, shaped like sentence vectors: for benchmarks of dense rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp


class Embedded(NamedTuple):
    """Vectors of unit length and their labels."""

    X: npt.NDArray[np.float32]
    Y: sp.csr_array


def made(n_rows: int, width: int, n_labels: int, *, seed: int = 0, per_row: int = 4, noise: float = 2.5) -> Embedded:
    """Rows whose vectors are the sum of the centres of their labels, and noise.

    Labels have a Zipf-like frequency and belong to topics. The labels of a row come from one topic, so they occur
    together as those of a real collection do. The labels are the same for every number of rows.
    """
    fixed, random = np.random.default_rng(seed), np.random.default_rng((seed, n_rows))
    n_topics = max(n_labels // 50, 1)
    topics = fixed.standard_normal((n_topics, width))
    topic_of = fixed.integers(n_topics, size=n_labels)
    centres = topics[topic_of] + fixed.standard_normal((n_labels, width))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    weight = 1.0 / (10 + fixed.permutation(n_labels))
    members = [np.flatnonzero(topic_of == topic) for topic in range(n_topics)]
    topic_weight = np.array([weight[own].sum() for own in members])
    chosen = random.choice(n_topics, n_rows, p=topic_weight / topic_weight.sum())
    counts = 1 + random.binomial(2 * (per_row - 1), 0.5, n_rows)
    rows, labels = [], []
    for topic in np.unique(chosen):
        own, here = members[topic], np.flatnonzero(chosen == topic)
        keys = random.random((len(here), len(own))) ** (1 / weight[own] * weight[own].mean())
        order = np.argsort(-keys, axis=1)
        for row, ranked in zip(here, order, strict=True):
            kept = own[ranked[: counts[row]]]
            rows.append(np.full(len(kept), row))
            labels.append(kept)
    Y = sp.csr_array((np.ones(sum(map(len, labels)), np.float32), (np.concatenate(rows), np.concatenate(labels))),
                     shape=(n_rows, n_labels))  # fmt: skip
    X = (Y @ centres).astype(np.float32)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    X += (noise / np.sqrt(width)) * random.standard_normal(X.shape, dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return Embedded(X, Y)
