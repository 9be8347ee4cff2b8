"""The base class, through a small but real estimator: nearest class centroids."""

import subprocess
import sys
from typing import Annotated

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import labelwood
from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator import NJobs, RandomState, TreeEstimator, Verbose
from labelwood.label_names import name_problem
from labelwood.params import Param
from labelwood.run_context import available_cores
from labelwood.sparse import CSR, TopK, from_scipy
from labelwood.storage.model_directory import read_model, write_model


class Centroids(TreeEstimator):
    """Scores a label by the cosine between the row and the sum of the label's training rows."""

    method_name = "centroids"

    def __init__(self, *, n_jobs: NJobs = 1, random_state: RandomState = 0, verbose: Verbose = False):
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X, Y, run):
        with run.phase("sum"):
            self.centroids_ = np.ascontiguousarray(unit((Y.to_scipy().T @ X.to_scipy()).toarray()))
        self.run_ = (run.n_threads, run.seed)

    def topk_rows(self, X, k, run):
        assert 1 <= k <= self.n_labels_
        scores = np.einsum("rf,lf->rl", unit(X.to_scipy().toarray()), self.centroids_)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k].astype(np.int32)
        return TopK(best, np.take_along_axis(scores, best, axis=1))

    def _state(self):
        return {"threads": self.run_[0], "seed": self.run_[1]}, {"centroids": self.centroids_}

    def _restore(self, facts, arrays):
        if arrays["centroids"].shape != (self.n_labels_, self.n_features_in_):
            raise FormatError("centroids have the wrong shape")
        self.centroids_ = arrays["centroids"]
        self.run_ = (facts["threads"], facts["seed"])


def unit(rows):
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(norms == 0, 1, norms)).astype(np.float32)


X = sp.csr_array(np.eye(4, 6, dtype=np.float32))
NAMES = [["b"], ["a", "b"], ["c"], []]
MATRIX = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]])


@pytest.mark.parametrize(
    "Y",
    [
        MATRIX,
        MATRIX.astype(bool),
        MATRIX.astype(np.float64),
        sp.csr_matrix(MATRIX),
        sp.coo_array(MATRIX),
        sp.lil_array(MATRIX),
        sp.csr_array((np.array([1, 0, 1, 1, 1]), np.array([1, 2, 0, 1, 2]), np.array([0, 2, 4, 5, 5]))),
        from_scipy(sp.csr_array(MATRIX)),
    ],
    ids=["int", "bool", "float", "csr_matrix", "coordinates", "lil", "explicit zeros", "CSR"],
)
def test_matrices_of_labels(Y):
    model = Centroids().fit(X, Y)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_array_equal(model.encode_labels(Y).to_scipy().toarray(), MATRIX)
    labels, scores = model.predict_topk(X, 2)
    assert labels[2].tolist() == [2, 0]
    assert scores[2].tolist() == [1, 0]


@pytest.mark.parametrize(
    "Y",
    [
        NAMES,
        tuple(map(tuple, NAMES)),
        list(map(set, NAMES)),
        list(map(frozenset, NAMES)),
        [np.array(row, dtype=object) for row in NAMES],
        (dict.fromkeys(row).keys() for row in NAMES),
        [row + row for row in NAMES],
    ],
    ids=["lists", "tuples", "sets", "frozensets", "arrays", "generator", "repeats"],
)
def test_rows_of_names(Y):
    model = Centroids().fit(X, Y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.encode_labels(NAMES).to_scipy().toarray(), MATRIX)
    labels, scores = model.predict_topk(X, 4)
    assert labels[2].tolist() == ["c", "a", "b", None]
    assert scores[2].tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("names", "order"),
    [
        ([7, -1, 3], [-1, 3, 7]),
        ([(1, "b"), (0, "c")], [(0, "c"), (1, "b")]),
        ([2.5, 1.5], [1.5, 2.5]),
        (["x", 1, None, ("t",)], ["x", 1, None, ("t",)]),  # not comparable: as they appear
        ([np.int64(4), np.int64(2)], [2, 4]),
        ([2**70, 1], [1, 2**70]),
    ],
)
def test_names_of_any_hashable_kind(names, order, tmp_path):
    features = sp.csr_array(np.eye(len(names), dtype=np.float32))
    model = Centroids().fit(features, [[name] for name in names])
    assert model.classes_.tolist() == order
    model.save(tmp_path / "model")
    for each in (model, Centroids.load(tmp_path / "model")):
        assert each.classes_.tolist() == order
        assert each.predict_topk(features, 1)[0][:, 0].tolist() == names
        assert each.encode_labels([names]).to_scipy().toarray().tolist() == [[1] * len(names)]


def test_names_in_sets_do_not_depend_on_the_hash_seed():
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from labelwood.validation.targets import distinct_names, read_rows\n"
        "rows = [{'pear', 3, 'plum', None}, {'fig', 'plum', 4.5}]\n"
        "print(distinct_names(read_rows(rows, owner='T'), owner='T'))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, "."], env={"PYTHONHASHSEED": str(seed)}, capture_output=True, check=True
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(outputs) == 1


def test_unknown_labels_become_further_columns():
    model = Centroids().fit(X, NAMES)
    encoded = model.encode_labels([["z", "a"], ["y"], ["z", "c"], []])
    assert encoded.to_scipy().toarray().tolist() == [[1, 0, 0, 1, 0], [0, 0, 0, 0, 1], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]]
    assert model.encode_labels(MATRIX[:, :2]).n_cols == 3
    assert model.encode_labels(np.eye(4, 5)).n_cols == 5


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (["a", "b", "c", "d"], r"each row of Y must be a list of label names; got 'a' in row 0.*\[label\]"),
        ([["a"], ["b"], 3, []], "got 3 in row 2"),
        ([["a"], {"b": 1}, [], []], "got {'b': 1} in row 1"),
        ("abcd", "Y must be a 0/1 matrix or one list of label names per row; got str"),
        (3, "got int"),
        (None, "requires y to be passed, but the target y is None"),
        ([[["a"]], [], [], []], "must be hashable"),
        ([[float("nan")], [], [], []], "must not be NaN"),
        (MATRIX * 2, "must hold 0 and 1; got 2"),
        (-MATRIX, "must hold 0 and 1; got -1"),
        (np.full((4, 3), np.nan), "finite"),
        (np.array([["a", "b"]] * 4), r"got dtype <U1.*Y.tolist\(\)"),
        (MATRIX[:3], "the same number of rows; got 4 and 3"),
        (NAMES[:3], "the same number of rows; got 4 and 3"),
        (np.zeros((4, 3)), "at least one row must have a label"),
        (np.zeros((4, 0)), "at least one label is needed"),
        ([[], [], [], []], "at least one label is needed"),
    ],
)
def test_bad_labels(Y, message):
    model = Centroids()
    with pytest.raises(LabelwoodError, match=message):
        model.fit(X, Y)
    assert not model.__sklearn_is_fitted__()


def test_no_rows():
    with pytest.raises(LabelwoodError, match="Centroids: at least one row is needed"):
        Centroids().fit(X[:0], [])


def test_label_names_for_a_matrix():
    model = Centroids().fit(X, MATRIX, label_names=["z", "y", "x"])
    assert model.classes_.tolist() == ["z", "y", "x"]
    assert model.predict_topk(X, 1)[0][2].tolist() == ["x"]
    for names in (["z", "y"], ["z", "y", "z"]):
        with pytest.raises(LabelwoodError, match="label_names must be 3 distinct names"):
            Centroids().fit(X, MATRIX, label_names=names)
    with pytest.raises(LabelwoodError, match="label_names must be left out"):
        Centroids().fit(X, NAMES, label_names=["a", "b", "c"])


class Breaks(Centroids):
    """Fails in the middle of a fit, after it has changed something."""

    def _fit(self, X, Y, run):
        super()._fit(X, Y, run)
        if Y.n_cols == 2:
            raise KeyboardInterrupt


def test_an_interrupted_fit_changes_nothing():
    two = MATRIX[:, :2]
    model = Breaks()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, two)
    assert vars(model) == vars(Breaks())
    model.fit(X, NAMES)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, two)
    assert vars(model) == before


def test_attributes_of_others_survive_a_fit():
    model = Centroids()
    model.note = "mine"
    model.fit(X, NAMES).fit(X, MATRIX)
    assert model.note == "mine"


def test_threshold_finds_every_label():
    n_labels = 50  # more than are asked for at first
    random = np.random.default_rng(0)
    features = sp.csr_array(random.random((30, 8), dtype=np.float32))
    Y = random.random((30, n_labels)) < 0.3
    model = Centroids().fit(features, Y)
    scores = model.predict_proba(features, k=n_labels)
    assert scores.nnz == 30 * n_labels
    for threshold in (0.0, 0.9, 0.95, 2.0):
        found = model.predict(features, threshold=threshold)
        np.testing.assert_array_equal(found.toarray() > 0, scores.toarray() >= threshold)
        assert found.has_sorted_indices
    both = model.predict(features, k=3, threshold=0.97).toarray()
    np.testing.assert_array_equal(both > 0, (model.predict(features, k=3).toarray() > 0) & (scores.toarray() >= 0.97))


@pytest.mark.parametrize(
    ("n_jobs", "threads"), [(None, available_cores()), (-1, available_cores()), (1, 1), (2, 2), (-1000, 1)]
)
def test_n_jobs(n_jobs, threads):
    assert Centroids(n_jobs=n_jobs).fit(X, NAMES).run_[0] == threads


def test_random_state():
    assert Centroids(random_state=7).fit(X, NAMES).run_[1] == 7
    drawn = [Centroids(random_state=None).fit(X, NAMES) for _ in range(4)]
    assert len({model.run_[1] for model in drawn}) > 1
    assert all(model.trained_["seed"] == model.run_[1] for model in drawn)


def test_what_training_leaves_behind():
    model = Centroids().fit(X, NAMES)
    assert list(model.fit_seconds_) == ["prepare", "sum"]
    assert {name: model.trained_[name] for name in ("rows", "feature_entries", "label_entries")} == {
        "rows": 4,
        "feature_entries": 4,
        "label_entries": 4,
    }
    assert model.classes_.flags.writeable is False


def test_scikit_learn_tools():
    random = np.random.default_rng(1)
    Y = sp.csr_array(np.eye(5)[random.integers(0, 5, 60)])
    features = sp.csr_array(Y @ sp.random_array((5, 20), density=0.6, rng=2))
    assert cross_val_score(Centroids(), features, Y.toarray(), cv=3).mean() > 0.9
    pipeline = make_pipeline(MaxAbsScaler(), Centroids()).fit(features, Y)
    assert pipeline.score(features, Y) > 0.9
    assert f1_score(Y, pipeline.predict(features, k=1), average="micro") > 0.9
    tags = Centroids().__sklearn_tags__()
    assert tags.input_tags.sparse
    assert tags.classifier_tags.multi_label
    assert repr(clone(Centroids(random_state=3))) == "Centroids(random_state=3)"


def test_score_compares_lengths():
    with pytest.raises(LabelwoodError, match="same number of rows; got 4 and 3"):
        Centroids().fit(X, NAMES).score(X, NAMES[:3])


good_names = st.text(max_size=3).filter(lambda name: name_problem(name) is None)


@given(st.lists(st.lists(good_names, max_size=4), min_size=1, max_size=8))
def test_any_good_text_is_a_name(rows):
    features = sp.csr_array(np.eye(len(rows), dtype=np.float32))
    if not any(rows):
        with pytest.raises(LabelwoodError):
            Centroids().fit(features, rows)
        return
    model = Centroids().fit(features, rows)
    assert model.classes_.tolist() == sorted({name for row in rows for name in row})
    encoded: CSR = model.encode_labels(rows)
    for row, ids in zip(rows, np.split(encoded.indices, encoded.indptr[1:-1]), strict=True):
        assert model.classes_[ids].tolist() == sorted(set(row))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest, arrays: manifest.update(method="other"), "holds a Centroids, not a Centroids"),
        (lambda manifest, arrays: manifest["parameters"].update(depth=3), "unexpected keyword argument 'depth'"),
        (lambda manifest, arrays: manifest["parameters"].update(random_state=-1), "random_state must be at least 0"),
        (lambda manifest, arrays: manifest.update(n_features=0), "n_features must be a positive integer; got 0"),
        (lambda manifest, arrays: manifest.update(n_features=5), "centroids have the wrong shape"),
        (lambda manifest, arrays: manifest.pop("facts"), "the model lacks 'facts'"),
        (lambda manifest, arrays: manifest.update(labels=None), "the label names cannot be read"),
        (lambda manifest, arrays: arrays.pop("centroids"), "the model lacks 'centroids'"),
        (lambda manifest, arrays: manifest.update(parameters=[1]), "is not a mapping"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(tmp_path, change, message):
    Centroids().fit(X, NAMES).save(tmp_path / "model")
    manifest, arrays = read_model(tmp_path / "model")
    change(manifest, arrays)
    write_model(tmp_path / "forged", manifest, arrays)
    with pytest.raises(FormatError, match=message) as caught:
        Centroids.load(tmp_path / "forged")
    assert str(tmp_path / "forged") in str(caught.value)


class Seeded(Centroids):
    """Takes an array as a parameter."""

    method_name = "seeded"

    def __init__(
        self,
        *,
        parents: Annotated[np.ndarray | None, Param("a tree of the user's")] = None,
        n_jobs: NJobs = 1,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ):
        super().__init__(n_jobs=n_jobs, random_state=random_state, verbose=verbose)
        self.parents = parents


def test_an_array_can_be_a_parameter(tmp_path):
    parents = np.array([0, 0, 1])
    model = Seeded(parents=parents, random_state=np.int64(4)).fit(X, NAMES)
    assert model.parents is parents
    model.save(tmp_path / "model")
    loaded = Seeded.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.parents, parents)
    assert loaded.random_state == 4


def test_import_is_light():
    script = (
        "import sys, labelwood\n"
        "assert not {'sklearn', 'scipy', 'numpy'} & sys.modules.keys()\n"
        "assert 'LinearTree' in dir(labelwood)\n"
        "assert issubclass(labelwood.FormatError, labelwood.LabelwoodError)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = labelwood.nonsense
