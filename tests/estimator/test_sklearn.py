"""scikit-learn driving every method: its own checks, its tools, the tables and columns its users have."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MultiLabelBinarizer
from sklearn.utils.estimator_checks import check_estimator

import labelwood
from labelwood import METHODS, FormatError, LabelwoodError, LabelwoodWarning, LinearTree, OnlineTree, TextClassifier
from labelwood.metrics import scorer
from labelwood.storage.model_directory import read_model, write_model

# Why scikit-learn's checks cannot pass; docs/integrations.md tells users.
A_MATRIX = "predict answers with a matrix, rows x labels, also where Y was one label a row"
EXPECTED = {
    "check_estimator_sparse_matrix": A_MATRIX,
    "check_estimator_sparse_array": A_MATRIX,
    "check_dtype_object": "what is no number in X is refused by LabelwoodError, a ValueError, not by a TypeError",
}
TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax", "the cat sleeps", "law of the land"] * 3
TAGS = [["pets"], ["pets"], ["law"], ["law", "money"], ["pets"], ["law"]] * 3


@pytest.fixture(params=list(METHODS))
def model(request):
    """A small estimator of each method."""
    made = METHODS[request.param](n_jobs=1)
    return made.set_params(n_trees=3) if "n_trees" in made.get_params() else made


def planted(n_rows=60, n_labels=5, seed=1):
    random = np.random.default_rng(seed)
    Y = (random.random((n_rows, n_labels)) < 0.3).astype(int)
    Y[np.arange(n_rows), random.integers(0, n_labels, n_rows)] = 1
    return np.repeat(Y, 3, axis=1) * random.uniform(0.5, 1, (n_rows, 3 * n_labels)), Y


def same_answers(left, right, X):
    for one, other in zip(left.predict_topk(X), right.predict_topk(X), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore")  # scikit-learn warns of the checks that are expected to fail
def test_scikit_learns_own_checks(model):
    results = check_estimator(model, expected_failed_checks=EXPECTED, on_skip=None, on_fail=None)
    wrong = {each["check_name"]: each["exception"] for each in results if each["status"] == "failed"}
    assert not wrong
    passed = [each["check_name"] for each in results if each["status"] == "passed"]
    assert len(passed) >= 35
    unexpected = EXPECTED.keys() & set(passed)
    assert not unexpected, "a check that passes must not be declared"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_before_and_after_fit_and_prediction(model, copied):
    X, Y = planted()
    assert copied(model).get_params() == model.get_params()
    fitted = clone(model).fit(X, Y, label_names=list("abcde"))
    twin = copied(fitted)
    same_answers(fitted, twin, X)
    same_answers(fitted, copied(fitted), X)  # by now kernels are cached
    assert twin.classes_.tolist() == list("abcde")
    with pytest.raises(sklearn.exceptions.NotFittedError):
        clone(twin).predict_topk(X)


def test_a_copy_of_an_online_tree_learns_on_alone():
    X, Y = planted()
    tree = OnlineTree(n_jobs=1).partial_fit(X[:30], Y[:30])
    before = tree.predict_topk(X)
    copy.copy(tree).partial_fit(X[30:], np.ones((30, 7)))
    twin = pickle.loads(pickle.dumps(tree)).partial_fit(X[30:], Y[30:])
    for one, other in zip(before, tree.predict_topk(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert tree.n_labels_ == 5
    same_answers(tree.partial_fit(X[30:], Y[30:]), twin, X)
    assert twin.n_seen_ == tree.n_seen_ == 60
    frozen = tree.freeze()
    same_answers(frozen, pickle.loads(pickle.dumps(frozen)), X)


def test_a_copy_of_a_text_classifier():
    texts = TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS, TAGS)
    same_answers(texts, pickle.loads(pickle.dumps(texts)), TEXTS)
    same_answers(texts, copy.deepcopy(texts), TEXTS)


def test_pipelines_searches_and_scorers_by_name(model):
    rows = ["red blue green"[: 4 + 5 * (i % 3)] for i in range(30)]
    tags = [row.split() for row in rows]
    pipeline = make_pipeline(TfidfVectorizer(), model)
    assert cross_val_score(pipeline, rows, tags, cv=2, error_score="raise").min() > 0.5
    scoring = {name: scorer(name) for name in ("P@1", "nDCG@3")}
    found = cross_validate(pipeline, rows, tags, cv=2, scoring=scoring, error_score="raise")
    assert found["test_P@1"].min() > 0.5
    grid = {f"{pipeline.steps[-1][0]}__random_state": [0, 1]}
    search = GridSearchCV(pipeline, grid, scoring=scorer("P@1"), cv=2, error_score="raise").fit(rows, tags)
    assert scorer("P@1")(search, rows, tags) == search.score(rows, tags) > 0.5
    assert pipeline.set_params(**{f"{pipeline.steps[-1][0]}__n_jobs": 2})[-1].n_jobs == 2


def test_scorers_take_texts():
    found = cross_val_score(
        TextClassifier(LinearTree(n_jobs=1)), TEXTS, TAGS, scoring=scorer("P@1"), cv=3, error_score="raise"
    )
    assert found.min() > 0.5


def test_held_out_predictions_of_every_row(model):
    binarizer = MultiLabelBinarizer()
    Y = binarizer.fit_transform([*TAGS[:-1], ["rare"]])  # a label that some parts of the rows lack
    pipeline = make_pipeline(TfidfVectorizer(), model)
    folds = KFold(3)
    for whole in (TextClassifier(model), TextClassifier(model, TfidfVectorizer()), pipeline):
        found = cross_val_predict(whole, TEXTS, Y, cv=folds)
        assert found.shape == Y.shape
        assert (cross_val_predict(whole, TEXTS, sp.csr_array(Y), cv=folds) != found).nnz == 0
        scores = cross_val_predict(whole, TEXTS, Y, cv=folds, method="predict_proba")
        for train, test in folds.split(TEXTS):
            fitted = clone(whole).fit([TEXTS[i] for i in train], Y[train])
            own = [TEXTS[i] for i in test]
            assert (found[test] != fitted.predict(own)).nnz == 0
            assert (scores[test] != fitted.predict_proba(own)).nnz == 0


def test_the_best_labels_behind_a_pipeline(model):
    pipeline = make_pipeline(TfidfVectorizer(), model).fit(TEXTS, TAGS)
    whole = TextClassifier(model, make_pipeline(TfidfVectorizer())).fit(TEXTS, TAGS)
    behind = pipeline[-1].predict_topk(pipeline[:-1].transform(TEXTS), k=2)
    for one, other in zip(behind, whole.predict_topk(TEXTS, k=2), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("whole", [LinearTree(), TextClassifier(), make_pipeline(TfidfVectorizer(), LinearTree())])
def test_weights_of_rows_are_refused_by_name(whole):
    weights = {"lineartree__sample_weight" if hasattr(whole, "steps") else "sample_weight": np.ones(len(TEXTS))}
    with pytest.raises(TypeError, match=r"fit\(\) got an unexpected keyword argument 'sample_weight'"):
        whole.fit(TEXTS, TAGS, **weights)


def test_metadata_routing():
    X, Y = planted()
    with sklearn.config_context(enable_metadata_routing=True):
        step = LinearTree(n_jobs=1).set_fit_request(label_names=True).set_predict_request(k=True)
        pipeline = make_pipeline(MaxAbsScaler(), step).fit(X, Y, label_names=list("abcde"))
        assert pipeline.classes_.tolist() == list("abcde")
        assert (pipeline.predict(X, k=2).sum(axis=1) == 2).all()
        found = cross_validate(
            step, X, Y, cv=2, params={"label_names": list("abcde")}, scoring=scorer("P@1"), error_score="raise"
        )
    assert found["test_score"].min() > 0.5


def test_html(model):
    X, Y = planted()
    assert type(model).__name__ in model._repr_html_()
    page = make_pipeline(MaxAbsScaler(), model).fit(X, Y)._repr_html_()
    assert type(model).__name__ in page
    assert "MaxAbsScaler" in page
    assert "TextClassifier" in TextClassifier(model)._repr_html_()


def test_multilabelbinarizer(model):
    X, Y = planted()
    names = [[f"label {j}" for j in np.flatnonzero(row)] for row in Y]
    for binarizer in (MultiLabelBinarizer(), MultiLabelBinarizer(sparse_output=True)):
        matrix = binarizer.fit_transform(names)
        fitted = clone(model).fit(X, matrix, label_names=binarizer.classes_)
        same_answers(fitted, clone(model).fit(X, names), X)
        back = binarizer.inverse_transform(sp.csr_matrix(fitted.predict(X, k=1)))
        assert [row[0] for row in back] == fitted.predict_topk(X, 1)[0][:, 0].tolist()


@pytest.mark.parametrize("kind", ["strings", "objects", "integers", "booleans", "floats"])
def test_one_label_a_row(kind):
    X, _ = planted(n_rows=4)
    y = {
        "strings": np.array(["b", "a", "b", "c"]),
        "objects": np.array(["b", "a", "b", "c"], dtype=object),
        "integers": np.array([2, 1, 2, 5]),
        "booleans": np.array([True, False, True, True]),
        "floats": np.array([2.0, 1.0, 2.0, 5.0]),
    }[kind]
    fitted = LinearTree(n_jobs=1).fit(X, y)
    assert fitted.classes_.tolist() == sorted(set(y.tolist()))
    same_answers(fitted, LinearTree(n_jobs=1).fit(X, [[label] for label in y.tolist()]), X)
    assert 0 <= fitted.score(X, y=y) <= 1
    assert OnlineTree(n_jobs=1).partial_fit(X, y).n_seen_ == 4


def test_lists_of_bare_labels_are_still_refused():
    with pytest.raises(LabelwoodError, match="A row with one label is a list of one"):
        LinearTree().fit(np.eye(2), ["a", "b"])


def test_a_column_of_labels_that_looks_like_several_is_told():
    X = np.eye(3, dtype=np.float32)
    with pytest.warns(LabelwoodWarning, match=r"a label per row, such as 'a;b'; .* as in Y\.str\.split\(';'\)"):
        LinearTree(n_jobs=1).fit(X, np.array(["c", "a;b", "a"]))
    with pytest.raises(LabelwoodError, match=r"the one in row 1 is missing \(nan\)"):
        LinearTree().fit(X, np.array(["a", float("nan"), "b"], dtype=object))
    fitted = LinearTree(n_jobs=1).fit(X, np.array(["Smith, J.", "b", "c"]))  # a warning would be an error here
    assert "Smith, J." in fitted.classes_


class Table:
    """The least that a table is: a shape, columns with names, and numbers for NumPy."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = np.asarray(values), columns, np.shape(values)

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


def test_the_columns_of_tables_are_remembered_and_compared(model, tmp_path):
    X, Y = planted()
    names = [f"column {j}" for j in range(X.shape[1])]
    fitted, plain = clone(model).fit(Table(X, names), Y), clone(model).fit(X, Y)
    assert fitted.feature_names_in_.tolist() == names
    fitted.save(tmp_path / "model")
    for each in (fitted, labelwood.load(tmp_path / "model")):
        found = pickle.loads(pickle.dumps(each)).predict_topk(Table(X, names))
        for one, other in zip(found, plain.predict_topk(X), strict=True):
            np.testing.assert_array_equal(one, other)
        with pytest.raises(LabelwoodError, match="'column 14' in place 0, where fit had 'column 0'"):
            each.predict(Table(X, names[::-1]))
        with pytest.raises(LabelwoodError, match=r"X has 3 features, but .* is expecting 15 features"):
            each.predict(Table(X[:, :3], names[:3]))
        with pytest.warns(UserWarning, match="X does not have valid feature names, but"):
            each.predict(X)
    assert fitted.predict(Table(X, names)).shape == Y.shape  # a warning would be an error here
    fitted.calibrate(Table(X, names), Y).choose_thresholds(Table(X, names), Y)
    assert not hasattr(plain, "feature_names_in_")
    with pytest.warns(UserWarning, match=r"X has feature names, but .* was fitted without"):
        plain.predict_topk(Table(X, names))
    assert not hasattr(fitted.fit(X, Y), "feature_names_in_")


@pytest.mark.parametrize("lost", ["feature_names.utf8", "feature_names.offsets", None])
def test_damaged_names_of_columns_are_refused(lost, tmp_path):
    X, Y = planted()
    LinearTree(n_jobs=1).fit(Table(X, [f"column {j}" for j in range(X.shape[1])]), Y).save(tmp_path / "model")
    manifest, arrays = read_model(tmp_path / "model")
    changed = {name: array for name, array in arrays.items() if name != lost}
    if lost is None:
        changed["feature_names.offsets"] = changed["feature_names.offsets"][:-1]
    write_model(tmp_path / "forged", manifest, changed)
    with pytest.raises(FormatError, match=r"feature_names|feature names are damaged"):
        labelwood.load(tmp_path / "forged")


def test_columns_of_a_stream_may_grow():
    X, Y = planted()
    names = [f"column {j}" for j in range(X.shape[1])]
    tree = OnlineTree(n_jobs=1).partial_fit(Table(X[:, :9], names[:9]), Y).partial_fit(Table(X, names), Y)
    assert tree.feature_names_in_.tolist() == names
    with pytest.raises(LabelwoodError, match="where fit had 'column 0'"):
        tree.partial_fit(Table(X, names[::-1]), Y)
    assert tree.n_seen_ == 2 * len(X)
    assert not hasattr(tree.fit(X, Y), "feature_names_in_")


def test_tables_of_labels_bring_their_names(model):
    X, Y = planted()
    fitted = clone(model).fit(X, Table(Y, list("abcde")))
    same_answers(fitted, clone(model).fit(X, Y, label_names=list("abcde")), X)
    assert fitted.score(X, Table(Y[:, ::-1], list("edcba"))) == fitted.score(X, Y)
    assert OnlineTree(n_jobs=1).partial_fit(X, Table(Y, list("abcde"))).classes_.tolist()[0] in "abcde"
