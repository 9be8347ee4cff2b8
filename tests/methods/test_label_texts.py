"""Names and descriptions of labels: training rows, labels that no row has, and the second look."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelwood
from labelwood import LabelwoodError, LinearTree, OnlineTree, Ranker, TextClassifier

TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax is due", "the court decided", "guilty by law"] * 5
LABELS = [["pets"], ["pets"], ["law"], ["law", "money"], ["court", "law"], ["law"]] * 5
NAMES = {"pets": ["pets", "animals at home"], "zebra": "zebras, striped horses", "law": "law"}


@pytest.mark.parametrize(
    ("classifier", "k"), [(LinearTree(n_jobs=1), 1), (OnlineTree(n_jobs=1), 1), (Ranker(["linear-tree"], n_jobs=1), 5)]
)
def test_a_label_that_no_row_has_is_suggested(classifier, k, tmp_path):
    model = TextClassifier(classifier).fit(TEXTS, LABELS, label_texts=NAMES)
    assert "zebra" in model.classes_
    assert "zebra" in model.predict_topk(["a herd of striped zebras"], k)[0]
    assert model.classifier_.trained_["rows"] == len(TEXTS)
    model.save(tmp_path / "model")
    loaded = labelwood.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_topk(TEXTS, 3)[1], model.predict_topk(TEXTS, 3)[1])


def test_label_texts_are_not_counted_as_rows():
    model = TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS, LABELS, label_texts=NAMES)
    counts = {entry.name: entry.support for entry in model.classifier_.label_entries()}
    assert counts == {"court": 5, "law": 20, "money": 5, "pets": 10, "zebra": 0}


def test_the_second_look_sees_names():
    model = TextClassifier(Ranker(["linear-tree"], n_jobs=1)).fit(TEXTS, LABELS, label_texts=NAMES)
    tables = model.classifier_.second_look_.tables
    assert np.diff(tables.name_ptr).tolist() == [0, 1, 0, 2, 1]
    np.testing.assert_allclose(tables.names.to_scipy().power(2).sum(axis=1), 1, rtol=1e-5)


def test_vectors_of_labels():
    X, Y = sp.eye_array(6).tocsr(), sp.csr_array(np.repeat(np.eye(3), 2, axis=0))
    model = LinearTree(n_jobs=1).fit(X, Y, label_vectors=np.eye(3, 6)[::-1])
    assert model.label_counts_.tolist() == [2, 2, 2]
    with pytest.raises(LabelwoodError, match="LinearTree: label_vectors must have one row for each of the 3 labels"):
        LinearTree(n_jobs=1).fit(X, Y, label_vectors=np.eye(2, 6))
    with pytest.raises(LabelwoodError, match="5 features"):
        LinearTree(n_jobs=1).fit(X, Y, label_vectors=np.eye(3, 5))


@pytest.mark.parametrize("wrong", ["pets", ["pets"], {"pets": 3}, {"pets": [None]}, {"pets": {"a", "b"}}])
def test_wrong_label_texts_are_refused(wrong):
    with pytest.raises(LabelwoodError, match="TextClassifier: label_texts must"):
        TextClassifier().fit(TEXTS, LABELS, label_texts=wrong)


def test_columns_cannot_be_added_to_a_matrix_without_names():
    Y = np.eye(2, dtype=np.float32)
    with pytest.raises(LabelwoodError, match="columns of Y, 0 to 1; got 'zebra'"):
        TextClassifier(LinearTree(n_jobs=1)).fit(["a cat", "a dog"], Y, label_texts={"zebra": "zebra"})
    named = TextClassifier(LinearTree(n_jobs=1)).fit(
        ["a cat", "a dog"], Y, label_names=["cat", "dog"], label_texts={"zebra": "zebra"}
    )
    assert named.classes_.tolist() == ["cat", "dog", "zebra"]


@pytest.mark.parametrize("classifier", [LinearTree(n_jobs=1), Ranker(["linear-tree"], n_jobs=1, n_boosted=5)])
@pytest.mark.parametrize(
    "texts",
    [{}, {"pets": ""}, {"pets": []}, {"pets": ["", " "]}, {"pets": "law " * 250_000}, {"pets": ["\u52d5\u7269", "?!"]}],
    ids=["none", "empty", "no texts", "spaces", "1 MB", "another script"],
)
def test_empty_long_and_foreign_texts(texts, classifier):
    model = TextClassifier(classifier).fit(TEXTS, LABELS, label_texts=texts)
    assert model.classes_.tolist() == ["court", "law", "money", "pets"]
    assert model.predict_topk(["tax law"], k=1)[0].tolist() == [["law"]]


def test_repeated_texts_count_once():
    vectors = TextClassifier(Ranker(["linear-tree"], n_jobs=1)).fit(TEXTS, LABELS, label_texts={"pets": ["cats"] * 9})
    assert vectors.classifier_.describe()["names"] == 1


def test_a_ranker_with_names_is_the_same_with_any_number_of_threads(tmp_path):
    saved = []
    for n_jobs in (1, 2):
        model = TextClassifier(Ranker(["linear-tree", "craft-forest"], n_jobs=n_jobs)).fit(
            TEXTS * 4, LABELS * 4, label_texts=NAMES
        )
        model.save(tmp_path / str(n_jobs))
        saved.append({path.name: path.read_bytes() for path in (tmp_path / str(n_jobs)).glob("*.npy")})
    assert saved[0] == saved[1]
    assert "tables.log_name_rows.npy" in saved[0]


def test_a_checkpoint_knows_its_label_vectors(tmp_path):
    """A training must not be resumed with other label vectors than those it began with."""
    X, Y = sp.eye_array(6).tocsr(), sp.csr_array(np.repeat(np.eye(3), 2, axis=0))
    begun = {"checkpoint": tmp_path / "checkpoint", "resume": True}
    LinearTree(n_jobs=1).fit(X, Y, label_vectors=np.eye(3, 6), **begun)
    LinearTree(n_jobs=1).fit(X, Y, label_vectors=np.eye(3, 6), **begun)
    for other in (None, np.eye(3, 6)[::-1]):
        with pytest.raises(LabelwoodError, match="of other data"):
            LinearTree(n_jobs=1).fit(X, Y, label_vectors=other, **begun)
