"""Small generated data that every method can learn."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Planted:
    """Rows whose labels follow from their features: label j sets three of 4j..4j+3, noise sets the others."""

    X: sp.csr_array
    Y: sp.csr_array

    @property
    def names(self) -> list[list[str]]:
        """The label names of each row; the names sort in the order of their columns."""
        rows = np.split(self.Y.indices, self.Y.indptr[1:-1])
        return [[f"label-{label:04d}" for label in row] for row in rows]


def make_planted(n_rows: int = 240, n_labels: int = 24, seed: int = 0) -> Planted:
    random = np.random.default_rng(seed)
    n_noise = 40
    entries: list[tuple[int, int, float]] = []
    marks: list[tuple[int, int]] = []
    for row in range(n_rows):
        chosen = random.choice(n_labels, size=min(n_labels, int(random.integers(1, 4))), replace=False)
        marks += [(row, int(label)) for label in chosen]
        signal = [4 * label + j for label in chosen for j in random.permutation(4)[:3]]
        noise = 4 * n_labels + random.choice(n_noise, size=5, replace=False)
        entries += [(row, int(column), 1.0) for column in signal]
        entries += [(row, int(column), float(random.uniform(0.1, 0.5))) for column in noise]
    rows, columns, values = zip(*entries, strict=True)
    X = sp.csr_array((np.array(values, np.float32), (rows, columns)), shape=(n_rows, 4 * n_labels + n_noise))
    ones = np.ones(len(marks), np.float32)
    Y = sp.csr_array((ones, tuple(zip(*marks, strict=True))), shape=(n_rows, n_labels))
    return Planted(X, Y)
