import os
from pathlib import Path

import numpy as np
import pytest

from labelwood.errors import LabelwoodError
from labelwood.metrics import evaluate, inverse_propensities, propensities, psp_at_k
from labelwood.sparse import TopK, from_lists


def eurlex4k_labels() -> Path:
    """The folder with the label matrix and the published inverse propensities, or a skip."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("LABELWOOD_DATA", beside)) / "eurlex4k_labels"
    if not folder.is_dir():
        pytest.skip("no eurlex4k_labels: set LABELWOOD_DATA to the folder of real data")
    return folder


def test_the_published_propensities_of_eurlex4k_to_the_last_printed_digit():
    folder = eurlex4k_labels()
    header, *rows = (folder / "trn_X_Y.txt").read_text().splitlines()
    n_rows, n_labels = map(int, header.split())
    ids = [int(pair.split(":")[0]) for row in rows for pair in row.split()]
    inverse = inverse_propensities(np.bincount(ids, minlength=n_labels), n_rows, A=0.55, B=1.5)
    assert [f"{value:.5g}" for value in inverse] == (folder / "inv_prop.txt").read_text().split()


def test_the_formula():
    # C = (ln 100 - 1) (0.4 + 1)^0.5, weight = 1 + C / sqrt(count + 0.4)
    C = (np.log(100) - 1) * np.sqrt(1.4)
    expected = [1 + C / np.sqrt(0.4), 1 + C / np.sqrt(10.4)]
    assert inverse_propensities([0, 10], 100, A=0.5, B=0.4) == pytest.approx(expected)
    assert propensities([0, 10], 100, A=0.5, B=0.4) == pytest.approx(1 / np.array(expected))


def test_rarer_labels_weigh_more_and_a_propensity_is_a_probability():
    found = propensities([0, 1, 2, 10, 500], 1000)
    assert (np.diff(found) > 0).all()
    assert ((found > 0) & (found <= 1)).all()


@pytest.mark.parametrize("n_rows", [1, 2])
def test_on_one_or_two_rows_all_weights_are_one(n_rows):
    assert inverse_propensities([0, 1], n_rows).tolist() == [1, 1]


def test_equal_weights_make_psp_precision_over_the_best_precision():
    truth = from_lists([[0, 1], [2]], n_cols=4)
    top = TopK(np.array([[1, 3], [2, 0]], np.int32), np.array([[2, 1], [2, 1]], np.float32))
    assert psp_at_k(truth, top, 2, np.full(4, 7.0)) == pytest.approx((1 / 2 + 1 / 2) / (2 / 2 + 1 / 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2]], 3), "label_counts"),
        (([1, -1], 3), "label_counts"),
        (([1, np.nan], 3), "label_counts"),
        (([1], 0), "n_rows must be at least 1; got 0"),
    ],
)
def test_bad_counts_are_refused(arguments, message):
    with pytest.raises(LabelwoodError, match=message):
        inverse_propensities(*arguments)


@pytest.mark.parametrize("name", ["A", "B"])
def test_bad_parameters_are_refused(name):
    with pytest.raises(LabelwoodError, match=f"{name} must be greater than 0; got -1"):
        propensities([1], 10, **{name: -1})


@pytest.mark.parametrize("weights", [[1, 2], [1, 2, 0], [1, 2, np.inf]])
def test_bad_weights_are_refused(weights):
    truth, top = from_lists([[0]], 3), TopK(np.array([[0]], np.int32), np.array([[1]], np.float32))
    with pytest.raises(LabelwoodError, match="inv_propensity must"):
        evaluate(truth, top, inv_propensity=weights)
