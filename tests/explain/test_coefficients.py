"""The weights of a label: those of its classifier, or the sums along its path, averaged over the trees."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood import (
    METHODS,
    HashingEncoder,
    LabelwoodError,
    LinearTree,
    OneVsRest,
    OnlineForest,
    OnlineTree,
    TextClassifier,
    TfidfEncoder,
)
from labelwood.data.synth import Shape, synth

LABEL_TREES = {
    "one-vs-rest": OneVsRest(n_jobs=1),
    "every weight": OneVsRest(n_jobs=1, weight_threshold=None),
    "linear-tree": LinearTree(arity=3, max_leaf=4, n_jobs=1),
    "three trees": LinearTree(n_trees=3, arity=2, max_leaf=3, loss="logistic", n_jobs=1),
    "int8": LinearTree(arity=3, max_leaf=4, weight_dtype="int8", n_jobs=1),
    "online-tree": OnlineTree(max_leaf=4, n_jobs=1),
    "online-forest": OnlineForest(n_trees=2, n_jobs=1),
}
TEXTS = ["cats and dogs", "the dog barks", "tax law of the land", "income tax law"] * 5
TAGS = [["pets"], ["pets"], ["law"], ["law", "money"]] * 5


@pytest.fixture(scope="module")
def rows():
    made = synth(Shape(n_rows=150, n_labels=20, n_features=80, branching=2, levels=2))
    return made.X.to_scipy(), made.Y.to_scipy()


@pytest.mark.parametrize("name", LABEL_TREES)
def test_they_add_up_to_the_scores_of_the_steps(name, rows):
    X, Y = rows
    model = LABEL_TREES[name].fit(X, Y)
    lengths = np.sqrt((X * X).sum(axis=1))
    for number in range(0, 40, 5):
        row = X[[number]].toarray() / lengths[number]
        (found,) = model.explain(X[[number]], 3)
        for suggestion in found.suggestions:
            steps = [[step.score - step.bias for step in path.steps] for path in suggestion.paths]
            weights = model.coef_of(suggestion.label)
            assert weights.shape == (1, X.shape[1])
            np.testing.assert_allclose((weights @ row[0])[0], np.mean([sum(path) for path in steps]), atol=1e-4)


def test_one_vs_rest_has_the_weights_of_its_classifiers(rows):
    X, Y = rows
    model = OneVsRest(n_jobs=1, weight_threshold=None).fit(X, Y)
    ((packed, _),) = model.trees()
    block = packed.node_weights.weights.reshape(-1, Y.shape[1])
    for label in range(Y.shape[1]):
        child = np.flatnonzero(packed.tree.label == label)[0] - 1
        expected = np.zeros(X.shape[1], np.float32)
        expected[packed.node_weights.features] = block[:, child]
        np.testing.assert_array_equal(model.coef_of(label).toarray()[0], expected)


def test_a_live_tree_has_the_weights_of_its_frozen_copy(rows):
    tree = OnlineTree(max_leaf=4, n_jobs=1).fit(*rows)
    assert (tree.coef_of(3) != tree.freeze().coef_of(3)).nnz == 0
    assert tree.coef_of(3).data.tolist() != tree.coef_of(4).data.tolist()


def test_merged_labels_are_averaged(rows):
    tree = OnlineTree(max_leaf=4, n_jobs=1).fit(*rows)
    apart = [tree.coef_of(label).toarray() for label in (3, 4)]
    tree.labels.merge(4, 3)
    np.testing.assert_allclose(tree.coef_of(3).toarray(), sum(apart) / 2, atol=1e-6)


def test_words_of_a_label():
    model = TextClassifier(OneVsRest(n_jobs=1)).fit(TEXTS, TAGS)
    words = dict(model.top_features("pets", 20))
    assert next(iter(words)) in ("dog", "cats", "dogs", "barks")
    assert list(words.values()) == sorted(words.values(), reverse=True)
    assert "law" not in words  # it speaks against the label
    vocabulary = model.encoder_.vocabulary_
    for word, weight in words.items():
        assert model.coef_of("pets")[0, vocabulary[word]] == weight > 0
    assert model.top_features("pets", 2) == list(words.items())[:2]
    assert len(model.top_features("pets")) <= 10


def test_columns_stand_for_features_without_names():
    X, Y = sp.csr_array(np.eye(4, dtype=np.float32)), [["a"], ["b"], ["a"], ["b"]]
    model = OneVsRest(n_jobs=1).fit(X, Y)
    assert [feature for feature, _ in model.top_features("a")] == [0, 2]
    hashed = TextClassifier(OneVsRest(n_jobs=1), HashingEncoder(n_features=64)).fit(TEXTS, TAGS)
    assert all(isinstance(feature, int) for feature, _ in hashed.top_features("pets"))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_weights_or_says_that_it_has_none(name):
    model = TextClassifier(METHODS[name](n_jobs=1), TfidfEncoder(n_jobs=1)).fit(TEXTS, TAGS)
    if METHODS[name].has_label_weights:
        assert model.top_features("money", 1)[0][0] == "income"
        with pytest.raises(LabelwoodError, match="there is no label 'moneys'; did you mean"):
            model.coef_of("moneys")
        with pytest.raises(LabelwoodError, match="n must be an integer, at least 1; got 0"):
            model.top_features("money", 0)
    else:
        with pytest.raises(LabelwoodError, match="a label has no weights in this method; explain"):
            model.top_features("money")
