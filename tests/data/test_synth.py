"""Generated data: what the shape asks for is there, and labels can be told from words."""

import numpy as np
import pytest

from labelwood import LabelwoodError, LinearTree
from labelwood.data.synth import Shape, synth
from labelwood.sparse import CSR


def test_same_seed_same_data_and_sound():
    shape = Shape(n_rows=3000, n_labels=200, n_features=5000)
    one, other, third = synth(shape, seed=5), synth(shape, seed=5), synth(shape, seed=6)
    one.check()
    assert one.X.indices.tobytes() == other.X.indices.tobytes()
    assert one.Y.indices.tobytes() == other.Y.indices.tobytes()
    assert one.X.indices.tobytes() != third.X.indices.tobytes()
    assert (np.diff(one.Y.indptr) >= 1).all()
    assert 2.3 < one.Y.nnz / one.n_rows < 3.2


def test_frequencies_fall():
    counts = np.bincount(synth(Shape(n_rows=20000, n_labels=500), seed=0).Y.indices, minlength=500)
    assert counts[:5].sum() > 4 * counts[250:255].sum()
    assert (counts > 0).mean() > 0.95


def test_labels_of_a_stream_keep_appearing():
    made = synth(Shape(n_rows=10000, n_labels=2000, stream=True), seed=1)
    first_row = np.full(2000, 10000)
    rows = np.repeat(np.arange(10000), np.diff(made.Y.indptr))
    np.minimum.at(first_row, made.Y.indices, rows)
    new_by_quarter = np.histogram(first_row, bins=4, range=(0, 10000))[0]
    assert (new_by_quarter > 50).all()


def test_labels_can_be_learned():
    made = synth(Shape(n_rows=6000, n_labels=100, n_features=3000), seed=2)
    train, test = (CSR(*_part(made.X, a, b)) for a, b in ((0, 5000), (5000, 6000)))
    model = LinearTree(n_jobs=1).fit(train, made.Y.rows(0, 5000))
    assert model.score(test, made.Y.rows(5000, 6000)) > 0.7


def _part(matrix, start, stop):
    part = matrix.rows(start, stop)
    return part.indptr, part.indices, part.data, part.n_cols


@pytest.mark.parametrize("wrong", [{"n_rows": 0}, {"branching": 1}, {"labels_per_row": 0.5}, {"exponent": 0.0}])
def test_impossible_shapes(wrong):
    with pytest.raises(LabelwoodError, match="synth: "):
        synth(Shape(**{"n_rows": 10, **wrong}))
