"""Every metric takes truth and predictions in the forms that users have, and gives one answer for all of them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood import LabelwoodError, LinearTree, metrics
from labelwood.sparse import CSR, TopK, from_lists

TAGS = [["cat", "dog"], ["dog"], ["fish"], []]
NAMES = ["cat", "dog", "fish"]
IDS = [[0, 1], [1], [2], []]
PREDICTED = [["dog", "cat"], ["cat", "dog"], ["fish"], ["dog"]]
SCORES = np.array([[0.9, 0.4], [0.8, 0.7], [0.6, 0.0], [0.5, 0.0]], np.float32)
LABELS = np.array([[1, 0], [0, 1], [2, -1], [1, -1]], np.int32)
NAMED = np.array([["dog", "cat"], ["cat", "dog"], ["fish", None], ["dog", None]], dtype=object)
TOP = TopK(LABELS, SCORES)
MATRIX = from_lists(IDS, 3)


def table(rows):
    """A table of another library, as far as Labelwood looks at it: columns, shape and conversion to an array."""

    class Table:
        columns = NAMES
        shape = (len(rows), len(NAMES))

        def __array__(self, dtype=None, copy=None):
            return MATRIX.toarray().astype(dtype or np.float32)

    return Table()


TRUTHS = {
    "CSR": MATRIX,
    "scipy": sp.csc_array(MATRIX.to_scipy()),
    "array": MATRIX.toarray().astype(int),
    "booleans": MATRIX.toarray().astype(bool),
    "numbers": IDS,
}


@pytest.mark.parametrize("form", TRUTHS)
@pytest.mark.parametrize("top", [TOP, (LABELS, SCORES), [[1, 0], [0, 1], [2], [1]], LABELS])
def test_truth_by_columns(form, top):
    expected = metrics.evaluate(MATRIX, TOP)
    assert metrics.evaluate(TRUTHS[form], top) == expected


@pytest.mark.parametrize("top", [(NAMED, SCORES), PREDICTED, NAMED])
@pytest.mark.parametrize("truth", [TAGS, [set(tags) for tags in TAGS], table(TAGS)])
def test_truth_by_names(truth, top):
    assert metrics.evaluate(truth, top) == metrics.evaluate(MATRIX, TOP)


def test_what_predict_topk_returns():
    X = np.eye(4, dtype=np.float32)
    model = LinearTree().fit(X, TAGS)
    top = model.predict_topk(X, k=2)
    assert metrics.precision_at_k(TAGS, top, 1) == metrics.scorer("P@1")(model, X, TAGS) == 0.75


def test_weights_by_name_equal_weights_by_column():
    train = [["cat"]] * 5 + [["dog", "fish"]] * 2
    counts = metrics.label_counts(train)
    assert counts == {"cat": 5, "dog": 2, "fish": 2}
    weights, expected = metrics.inverse_propensities(counts, 7), metrics.inverse_propensities([5, 2, 2], 7)
    assert [weights[name] for name in NAMES] == expected.tolist()
    assert weights["a label without rows"] == metrics.inverse_propensities([0], 7)[0]
    assert metrics.psp_at_k(TAGS, PREDICTED, 2, weights) == metrics.psp_at_k(MATRIX, TOP, 2, expected)
    named = metrics.evaluate(TAGS, PREDICTED, inv_propensity=weights, train_label_counts=counts)
    assert named == metrics.evaluate(MATRIX, TOP, inv_propensity=expected, train_label_counts=[5, 2, 2])
    assert metrics.report_by_frequency(TAGS, PREDICTED, counts) == metrics.report_by_frequency(MATRIX, TOP, [5, 2, 2])


def test_labels_that_only_the_truth_or_only_the_prediction_has():
    assert metrics.precision_at_k([["new"], ["cat"]], [["cat"], ["cat"]], 1) == 0.5
    assert metrics.precision_at_k([["cat"]], [["never seen"]], 1) == 0


def test_label_sets():
    expected = metrics.set_scores(MATRIX, from_lists([[1], [0, 1], [2], [1]], 3))
    assert metrics.set_scores(TAGS, [["dog"], ["cat", "dog"], ["fish"], ["dog"]]) == expected
    predicted = sp.csr_array(from_lists([[1], [0, 1], [2], [1]], 3).to_scipy())
    assert metrics.set_scores(MATRIX.toarray(), predicted) == expected


def test_intervals_and_reliability():
    assert metrics.bootstrap_intervals(TAGS, (NAMED, SCORES), [1]) == metrics.bootstrap_intervals(MATRIX, TOP, [1])
    assert metrics.calibration_error(TAGS, (NAMED, SCORES)) == metrics.calibration_error(MATRIX, TOP)
    assert metrics.paired_intervals((TAGS, PREDICTED), (MATRIX, TOP), [1])["P@1"].mean == 0


@pytest.mark.parametrize(
    ("truth", "top", "message"),
    [
        (MATRIX, (NAMED, SCORES), "predicted labels must be columns of Y if Y is a matrix; got names such as 'dog'"),
        (MATRIX.toarray() * 2, TOP, "a Y matrix must hold 0 and 1; got 2"),
        ("cat", TOP, "Y must be a 0/1 matrix or one list of label names per row; got str"),
        (TAGS, [["dog"]], "Y must have one row per predicted list, at least 1; got 4 and 1"),
        (TAGS, [["dog", "dog"], [], [], []], "the labels of a predicted list must be distinct"),
        (table(TAGS), [["cow"], [], [], []], "a predicted label must be a column of Y; got 'cow'"),
    ],
)
def test_refused(truth, top, message):
    with pytest.raises(LabelwoodError, match=message):
        metrics.precision_at_k(truth, top, 1)


def test_values_by_column_are_refused_for_names():
    with pytest.raises(LabelwoodError, match="inv_propensity must be a dict from label name to value if Y holds names"):
        metrics.psp_at_k(TAGS, PREDICTED, 1, [1.0, 1.0, 1.0])
    with pytest.raises(LabelwoodError, match="must have a value for each label; it lacks 'fish'"):
        metrics.psp_at_k(TAGS, PREDICTED, 1, {"cat": 1.0, "dog": 1.0})


def test_sets_of_two_kinds_are_refused():
    with pytest.raises(LabelwoodError, match="both be matrices or both rows of label names"):
        metrics.set_scores(TAGS, MATRIX)


def test_a_csr_can_be_split_by_scikit_learn():
    from sklearn.model_selection import cross_val_score, train_test_split

    X = from_lists([[i % 5] for i in range(40)], 5)
    assert isinstance(X, CSR)
    assert (X.shape, X.ndim, X.dtype) == ((40, 5), 2, np.float32)
    train, test = train_test_split(X, test_size=0.25, random_state=0)
    assert (train.shape, test.shape) == ((30, 5), (10, 5))
    np.testing.assert_array_equal(X[3:6].toarray(), X.toarray()[3:6])
    np.testing.assert_array_equal(X[np.arange(40) % 2 == 0].toarray(), X.toarray()[::2])
    assert cross_val_score(LinearTree(), X, X, cv=4).tolist() == [1.0] * 4
    with pytest.raises(LabelwoodError, match="an index must name rows"):
        X[:, 1]
