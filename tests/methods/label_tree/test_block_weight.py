"""vector_weight="auto": the weight of vectors beside words, chosen on held-out rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from battery import saved_bytes

import labelwood
from labelwood import FormatError, LinearTree, OneVsRest
from labelwood.methods.label_tree.block_weight import chosen_weight
from labelwood.sparse import TopK, from_scipy
from labelwood.storage.model_directory import read_model, write_model
from labelwood.validation.features import as_features

N_LABELS, WIDTH, N_WORDS = 20, 60, 60


def rows(telling, n_rows=900, seed=0):
    """Words and vectors, of which only one tells the label; the other tells a label at random."""
    random = np.random.default_rng(seed)
    label, other = random.integers(N_LABELS, size=(2, n_rows))
    shown, seen = (label, other) if telling == "words" else (other, label)
    drawn = random.integers(N_WORDS, size=(n_rows, 6))
    own = 3 * shown[:, None] + drawn % 3
    columns = np.where(random.random((n_rows, 6)) < 0.4, own, drawn).ravel()
    words = sp.csr_array((np.ones(6 * n_rows, np.float32), columns, 6 * np.arange(n_rows + 1)), shape=(n_rows, N_WORDS))
    centres = np.random.default_rng(9).standard_normal((N_LABELS, WIDTH))
    E = (centres[seen] + 2.4 * random.standard_normal((n_rows, WIDTH))).astype(np.float32)
    Y = sp.csr_array((np.ones(n_rows, np.float32), label, np.arange(n_rows + 1)), shape=(n_rows, N_LABELS))
    return {"words": words, "vectors": E}, Y


def model(**changes):
    return LinearTree(**{"vector_weight": "auto", "n_jobs": 1, "random_state": 0, "tolerance": 0.3, **changes})


def best_answers(best):
    """Answers that are the better, the nearer the weight is to the best one."""

    def answers(weight, X, Y, X_out):
        right = round(X_out.n_rows / (1 + abs(np.log2(weight) - np.log2(best))))
        labels = np.zeros((X_out.n_rows, 1), np.int32)
        labels[right:] = 1
        return TopK(labels, np.ones((X_out.n_rows, 1), np.float32))

    return answers


@pytest.mark.parametrize("best", [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_the_search_finds_the_best_power_of_two(best):
    X, Y = as_features(rows("words")[0], owner="test"), from_scipy(sp.csr_array(np.eye(1, 2).repeat(900, 0)))
    assert chosen_weight(X, Y, best_answers(best), seed=0) == best


def test_the_block_that_tells_more_gets_the_larger_weight():
    found = {telling: model().fit(*rows(telling)).vector_weight_ for telling in ("words", "vectors")}
    assert found["words"] <= 1 < found["vectors"]
    one = OneVsRest(vector_weight="auto", n_jobs=1, random_state=0)
    assert one.fit(*rows("vectors")).vector_weight_ > 1


def test_auto_is_the_model_with_the_chosen_weight(tmp_path):
    X, Y = rows("vectors")
    auto = model(n_trees=2).fit(X, Y)
    plain = model(n_trees=2, vector_weight=auto.vector_weight_).fit(X, Y)
    assert auto.predict_topk(X)[1].tolist() == plain.predict_topk(X)[1].tolist()
    assert auto.describe()["vector_weight"] == auto.vector_weight_
    assert "vector_weight" not in plain.describe()
    auto.save(tmp_path / "auto")
    again = labelwood.load(tmp_path / "auto")
    assert again.vector_weight_ == auto.vector_weight_
    assert again.predict_topk(X)[1].tolist() == auto.predict_topk(X)[1].tolist()


def test_the_choice_does_not_depend_on_threads(tmp_path):
    X, Y = rows("words")
    assert saved_bytes(model().fit(X, Y), tmp_path / "1") == saved_bytes(model(n_jobs=3).fit(X, Y), tmp_path / "3")


def test_there_is_nothing_to_choose_without_both_blocks():
    X, Y = rows("words")
    for part in (X["words"], X["vectors"]):
        assert model().fit(part, Y).vector_weight_ == 1.0
    few = {name: block[:20] for name, block in X.items()}
    assert model().fit(few, Y[:20]).vector_weight_ == 1.0


def test_a_second_fit_chooses_again():
    auto = model()
    weights = [auto.fit(*rows(telling)).vector_weight_ for telling in ("vectors", "words")]
    assert weights[0] > weights[1]


@pytest.mark.parametrize("weight", [0.0, -1.0, "1", None, True])
def test_a_damaged_weight_is_refused(tmp_path, weight):
    model().fit(*rows("words")).save(tmp_path / "model")
    manifest, arrays = read_model(tmp_path / "model")
    manifest["facts"]["vector_weight"] = weight
    write_model(tmp_path / "bad", manifest, dict(arrays))
    with pytest.raises(FormatError, match="vector_weight must be a positive number"):
        labelwood.load(tmp_path / "bad")
