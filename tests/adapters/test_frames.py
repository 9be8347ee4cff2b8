"""pandas and polars data frames as X and Y of every method."""

import numpy as np
import pytest

from labelwood import METHODS, LabelwoodError


@pytest.fixture(params=["pandas", "polars"])
def frames(request):
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed; use make test-adapters")


@pytest.fixture(params=list(METHODS))
def model(request):
    return METHODS[request.param](n_jobs=1)


def planted():
    random = np.random.default_rng(3)
    Y = np.eye(4, dtype=int)[random.integers(0, 4, 40)]
    return np.repeat(Y, 2, axis=1) * random.uniform(0.5, 1, (40, 8)), Y


def same(left, right):
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)


def test_column_names_become_feature_and_label_names(frames, model):
    X, Y = planted()
    table = frames.DataFrame({f"column {j}": X[:, j] for j in range(8)})
    labels = frames.DataFrame({name: Y[:, j] for j, name in enumerate("abcd")})
    expected = type(model)(n_jobs=1).fit(X, Y, label_names=list("abcd")).predict_topk(X, k=2)
    model.fit(table, labels)
    assert model.feature_names_in_.tolist() == [f"column {j}" for j in range(8)]
    assert model.classes_.tolist() == list("abcd")
    same(model.predict_topk(table, k=2), expected)
    assert model.score(table, labels) > 0.9
    with pytest.raises(LabelwoodError, match="where fit had 'column 0'"):
        model.predict(table[[f"column {j}" for j in reversed(range(8))]])


def test_a_column_with_one_label_per_row(frames, model):
    X, Y = planted()
    names = [f"label {j}" for j in Y.argmax(axis=1)]
    table = frames.DataFrame({"a": X[:, 0], "b": X[:, 2], "c": X[:, 4]})
    model.fit(table, frames.Series(names))
    assert model.classes_.tolist() == [f"label {j}" for j in range(4)]
    assert 0 <= model.score(table, frames.Series(names)) <= 1


def test_a_column_of_label_lists(frames, model):
    X, Y = planted()
    rows = [[f"label {j}" for j in np.flatnonzero(row)] for row in Y]
    same(model.fit(X, frames.Series(rows)).predict_topk(X), type(model)(n_jobs=1).fit(X, rows).predict_topk(X))


def test_features_that_are_not_numbers_are_refused(frames, model):
    with pytest.raises(LabelwoodError, match=r"X must hold real numbers|X must be finite"):
        model.fit(frames.DataFrame({"a": ["red", "blue"]}), [["x"], ["y"]])
