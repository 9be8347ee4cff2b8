"""What every method in the list must do; a new method passes this file before it has tests of its own."""

import contextlib
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from battery import assert_sound, damaged, saved_bytes
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted

import labelwood
from labelwood import METHODS, FormatError, LabelwoodError
from labelwood.methods.online.learner import learner_of
from labelwood.storage.model_directory import read_model, write_model


@pytest.fixture(params=list(METHODS))
def method(request):
    return METHODS[request.param]


@pytest.fixture
def small(method):
    """The method with one thread, so that the tests start no more threads than they test."""
    return lambda **parameters: method(**{"n_jobs": 1, **parameters})


def test_the_list_names_its_classes(method):
    assert METHODS[method.method_name] is method
    assert getattr(labelwood, method.__name__) is method


def test_learns_planted_labels(small, planted, planted_test):
    model = small().fit(planted.X, planted.Y)
    assert model.score(planted_test.X, planted_test.Y) > 0.9


def test_shapes(small, planted, planted_test):
    model = small().fit(planted.X, planted.Y)
    assert model.n_features_in_ == planted.X.shape[1]
    assert model.n_labels_ == planted.Y.shape[1]
    np.testing.assert_array_equal(model.classes_, np.arange(planted.Y.shape[1]))
    assert all(seconds >= 0 for seconds in model.fit_seconds_.values())
    for k in (1, 3, 5):
        assert_sound(model, planted_test.X, k)
    assert model.predict_topk(planted_test.X[:0], 3)[0].shape == (0, 3)


def test_a_longer_list_starts_with_the_shorter(small, planted, planted_test):
    model = small().fit(planted.X, planted.Y)
    (one, one_score), (five, five_score) = (model.predict_topk(planted_test.X, k) for k in (1, 5))
    assert (one[:, 0] == five[:, 0]).mean() > 0.95  # a wider search may find a better first label, rarely
    assert (five_score[:, 0] >= one_score[:, 0]).all()


def test_a_row_is_predicted_alike_alone_and_in_a_batch(small, planted, planted_test):
    model = small().fit(planted.X, planted.Y)
    labels, scores = model.predict_topk(planted_test.X, 5)
    for row in range(10):
        alone_labels, alone_scores = model.predict_topk(planted_test.X[row : row + 1], 5)
        np.testing.assert_array_equal(alone_labels[0], labels[row])
        np.testing.assert_allclose(alone_scores[0], scores[row], rtol=1e-5, atol=1e-6)


def test_sparse_and_dense_input_agree(small, planted, planted_test):
    sparse = small().fit(planted.X, planted.Y)
    dense = small().fit(planted.X.toarray(), planted.Y.toarray())
    for left, right in zip(
        sparse.predict_topk(planted_test.X), dense.predict_topk(planted_test.X.toarray()), strict=True
    ):
        np.testing.assert_array_equal(left, right)


def test_only_allowed_labels_are_predicted(small, planted, planted_test):
    model = small().fit(planted.X, planted.Y)
    allowed = model.classes_[::4].tolist()
    labels, scores = model.predict_topk(planted_test.X, 3, allowed=[*allowed, allowed[0]])
    assert labels.shape == (planted_test.X.shape[0], 3)
    every, their_scores = model.predict_topk(planted_test.X, model.n_labels_)
    for row in range(len(labels)):
        found = labels[row][labels[row] >= 0]
        assert set(found) <= set(allowed)
        wanted = np.isin(every[row], allowed) & (every[row] >= 0)
        if model.method_name in ("blend", "ranker"):  # ranks among the allowed labels are not ranks among all
            assert len(found) >= min(3, wanted.sum())
            continue
        np.testing.assert_allclose(scores[row][: len(found)], their_scores[row][wanted][:3], rtol=1e-5, atol=1e-6)
    nothing, zeros = model.predict_topk(planted_test.X, 3, allowed=[])
    assert (nothing == -1).all()
    assert not zeros.any()
    with pytest.raises(LabelwoodError, match="there is no label 'no such label'"):
        model.predict_topk(planted_test.X, 3, allowed=["no such label"])


def test_predict_is_top_k_or_threshold(small, planted, planted_test):
    model = small().fit(planted.X, planted.Y)
    shape = (planted_test.X.shape[0], planted.Y.shape[1])
    by_k = model.predict(planted_test.X, k=2)
    assert sp.issparse(by_k)
    assert by_k.shape == shape
    offered = (model.topk_ids(planted_test.X, 2).labels >= 0).sum(axis=1)
    np.testing.assert_array_equal(by_k.sum(axis=1), offered)
    scores = model.predict_proba(planted_test.X, k=model.n_labels_)
    by_threshold = model.predict(planted_test.X, threshold=0.5)
    np.testing.assert_array_equal(by_threshold.toarray() > 0, scores.toarray() >= 0.5)
    np.testing.assert_array_equal(model.predict(planted_test.X).toarray(), by_threshold.toarray())
    assert model.predict_proba(planted_test.X, k=2).nnz == offered.sum()


def test_probabilities_are_the_scores_of_the_lists_and_lie_between_0_and_1(small, planted, planted_test):
    model = small().fit(planted.X, planted.Y)
    top = model.topk_ids(planted_test.X, 3)
    proba = model.predict_proba(planted_test.X, k=3).toarray()
    rows, places = np.nonzero(top.labels >= 0)
    np.testing.assert_array_equal(proba[rows, top.labels[rows, places]], top.scores[rows, places])
    assert np.count_nonzero(proba) == np.count_nonzero(top.scores)
    assert proba.min() == 0
    assert 0 < proba.max() <= 1


def test_the_model_says_whether_it_learns(small, planted, tmp_path):
    """``can_learn`` is what commands and the service ask before they teach a model."""
    model = small().fit(planted.X, planted.Y)
    assert model.can_learn == hasattr(model, "partial_fit")
    assert [entry.support for entry in model.label_entries()] == model.label_counts_.tolist()
    model.save(tmp_path / "model")
    loaded = labelwood.load(tmp_path / "model")
    assert loaded.can_learn == model.can_learn
    if not model.can_learn:
        with pytest.raises(LabelwoodError, match=f"here: this {model.method_name} model cannot learn"):
            learner_of(loaded, owner="here")
        return
    learner_of(loaded, owner="here").partial_fit(planted.X[:5], planted.Y[:5])
    assert loaded.n_seen_ == model.n_seen_ + 5


def test_threads_and_repeats_give_the_same_bytes(method, planted, planted_test, tmp_path):
    models = [method(n_jobs=n_jobs, random_state=3).fit(planted.X, planted.Y) for n_jobs in (1, 2, 1)]
    first, *others = [saved_bytes(model, tmp_path / f"model-{i}") for i, model in enumerate(models)]
    assert first
    for other in others:
        assert other == first
    expected = models[0].predict_topk(planted_test.X, 5)
    for model in models[1:]:
        for left, right in zip(expected, model.predict_topk(planted_test.X, 5), strict=True):
            np.testing.assert_array_equal(left, right)


def test_load_predicts_the_same_bits(small, method, planted, planted_test, tmp_path):
    model = small().fit(planted.X, planted.names)
    model.save(tmp_path / "model")
    expected = model.predict_topk(planted_test.X, 5)
    for loaded in (labelwood.load(tmp_path / "model"), method.load(tmp_path / "model", verify=True)):
        assert type(loaded) is method
        assert loaded.get_params() == model.get_params()
        assert loaded.fit_seconds_ == model.fit_seconds_
        assert loaded.trained_ == model.trained_
        np.testing.assert_array_equal(loaded.classes_, model.classes_)
        for left, right in zip(expected, loaded.predict_topk(planted_test.X, 5), strict=True):
            np.testing.assert_array_equal(left, right)
    assert saved_bytes(loaded, tmp_path / "again") == saved_bytes(model, tmp_path / "model")


def test_another_process_predicts_the_same_bits(small, planted, planted_test, tmp_path):
    model = small().fit(planted.X, planted.Y)
    model.save(tmp_path / "model")
    sp.save_npz(tmp_path / "X.npz", planted_test.X)
    script = (
        "import sys, numpy as np, scipy.sparse as sp, labelwood\n"
        "labels, scores = labelwood.load(sys.argv[1]).predict_topk(sp.load_npz(sys.argv[2]), 5)\n"
        "np.savez(sys.argv[3], labels=labels, scores=scores)\n"
    )
    arguments = [tmp_path / "model", tmp_path / "X.npz", tmp_path / "top.npz"]
    subprocess.run([sys.executable, "-c", script, *map(str, arguments)], check=True, timeout=120)
    labels, scores = model.predict_topk(planted_test.X, 5)
    with np.load(tmp_path / "top.npz") as there:
        np.testing.assert_array_equal(there["labels"], labels)
        assert there["scores"].tobytes() == scores.tobytes()


def test_no_pickle_on_disk(small, planted, tmp_path):
    small().fit(planted.X, planted.names).save(tmp_path / "model")
    for file in (tmp_path / "model").iterdir():
        if file.suffix == ".npy":
            np.load(file, allow_pickle=False)
        else:
            assert file.name == "manifest.json"
            json.loads(file.read_text())


def test_names_come_back_as_names(small, planted, planted_test):
    by_column = small().fit(planted.X, planted.Y)
    by_name = small().fit(planted.X, planted.names)
    named_columns = small().fit(planted.X, planted.Y, label_names=by_name.classes_.tolist())
    columns, scores = by_column.predict_topk(planted_test.X, 3)
    for model in (by_name, named_columns):
        names, name_scores = model.predict_topk(planted_test.X, 3)
        assert names[0, 0] == f"label-{columns[0, 0]:04d}"
        np.testing.assert_array_equal(names, by_name.classes_[columns])
        np.testing.assert_array_equal(name_scores, scores)
    assert by_name.score(planted_test.X, planted_test.names) == by_column.score(planted_test.X, planted_test.Y)


def test_labels_unknown_to_the_model_count_as_missed(small, planted, planted_test):
    model = small().fit(planted.X, planted.names)
    renamed = [["never seen"] for _ in planted_test.names]
    assert model.score(planted_test.X, renamed) == 0


def test_rows_without_features(small, planted):
    X = planted.X.tolil()
    X[::7] = 0
    model = small().fit(X.tocsr(), planted.Y)
    assert_sound(model, sp.csr_array((3, planted.X.shape[1])), 5)


def test_rows_without_labels(small, planted, planted_test):
    Y = planted.Y.tolil()
    Y[::5] = 0
    model = small().fit(planted.X, Y.tocsr())
    assert_sound(model, planted_test.X, 5)
    assert model.score(planted_test.X, planted_test.Y) > 0.8


def test_labels_never_seen(small, planted, planted_test):
    """Columns of Y without an example: they may be offered, but not before what the data shows."""
    empty = sp.csr_array((planted.Y.shape[0], 7))
    model = small().fit(planted.X, sp.hstack([empty, planted.Y, empty], format="csr"))
    assert model.n_labels_ == planted.Y.shape[1] + 14
    labels, _ = assert_sound(model, planted_test.X, 5)
    right = planted_test.Y.toarray()[np.arange(len(labels)), np.clip(labels[:, 0] - 7, 0, 23)] > 0
    assert right.mean() > 0.9


def test_one_label(small, planted, planted_test):
    labels, _ = assert_sound(small().fit(planted.X, planted.Y[:, [0]]), planted_test.X, 1)
    assert (labels == 0).all()


def test_duplicate_rows(small, planted, planted_test):
    twice = (sp.vstack([part, part], format="csr") for part in (planted.X, planted.Y))
    model = small().fit(*twice)
    assert model.score(planted_test.X, planted_test.Y) > 0.9


def test_rows_all_alike(small):
    X, Y = sp.csr_array(np.ones((20, 3), np.float32)), sp.csr_array(np.ones((20, 9), np.float32))
    assert_sound(small().fit(X, Y), X, 5)


def test_more_labels_than_rows(small, planted_of):
    wide = planted_of(n_rows=12, n_labels=60)
    assert_sound(small().fit(wide.X, wide.Y), wide.X, 5)


def test_k_beyond_the_labels(small, planted, planted_test):
    matrix = small().fit(planted.X, planted.Y[:, :3])
    labels, _ = assert_sound(matrix, planted_test.X, 10)
    assert (labels[:, 3:] == -1).all()
    named = small().fit(planted.X, [row[:1] for row in planted.names])
    names, _ = assert_sound(named, planted_test.X, named.n_labels_ + 2)
    assert all(name is None for name in names[:, -2:].ravel())


def test_features_all_zero(small, planted):
    nothing = sp.csr_array(planted.X.shape)
    assert_sound(small().fit(nothing, planted.Y), nothing[:5], 5)


def test_no_feature_columns_is_refused(small, planted):
    with pytest.raises(LabelwoodError, match="at least one feature"):
        small().fit(sp.csr_array((planted.Y.shape[0], 0)), planted.Y)


def test_one_row(small, planted):
    model = small().fit(planted.X[:1], planted.Y[:1])
    labels, _ = assert_sound(model, planted.X[:1], 1)
    assert planted.Y[:1].toarray()[0, labels[0, 0]] == 1


def test_negative_and_large_values(small, planted):
    X = (planted.X * np.float32(-1e6)).tocsr()
    assert_sound(small().fit(X, planted.Y), X, 5)


def test_clone_and_parameters(method, planted):
    model = method(n_jobs=1, random_state=5)
    copy = clone(model.fit(planted.X, planted.Y))
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        copy.predict_topk(planted.X)
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    check_is_fitted(model)
    assert model.set_params(random_state=6).random_state == 6


@pytest.mark.parametrize("labels", ["matrix", "names"])
def test_grid_search(small, planted, labels):
    Y = planted.Y if labels == "matrix" else planted.names
    search = GridSearchCV(small(), {"random_state": [0, 1]}, cv=2).fit(planted.X, Y)
    assert search.best_score_ > 0.8
    assert search.predict_proba(planted.X).shape == planted.Y.shape


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"n_jobs": "all"}, "n_jobs must be an integer or None; got 'all'"),
        ({"random_state": -1}, "random_state must be at least 0; got -1"),
        ({"verbose": 3}, "verbose must be true or false; got 3"),
    ],
)
def test_bad_parameters(method, planted, parameters, message):
    model = method(**parameters)  # stored as they are: they are checked by fit
    with pytest.raises(LabelwoodError, match=f"{method.__name__}: {message}"):
        model.fit(planted.X, planted.Y)


def test_bad_features(small, planted):
    spoilt = planted.X.copy()
    spoilt.data[3] = np.nan
    endless = planted.X.toarray()
    endless[2, 2] = np.inf
    bad = [spoilt, endless, planted.X.toarray()[0], planted.X[:-1], planted.X[:0], "text", None]
    for X in bad:
        model = small()
        with pytest.raises(LabelwoodError):
            model.fit(X, planted.Y)
        assert not model.__sklearn_is_fitted__()
    model = small().fit(planted.X, planted.Y)
    for X in (spoilt, endless, planted.X.toarray()[0], planted.X[:, :-1]):
        with pytest.raises(LabelwoodError):
            model.predict_topk(X)
    for k in (0, -1, 1.5, True, None):
        with pytest.raises(LabelwoodError, match="k must be an integer, at least 1"):
            model.predict_topk(planted.X, k)


def test_a_failed_fit_changes_nothing(small, planted, planted_test):
    model = small().fit(planted.X, planted.Y)
    before = model.predict_topk(planted_test.X)
    with pytest.raises(LabelwoodError):
        model.fit(planted.X, planted.Y[:-1])
    for left, right in zip(before, model.predict_topk(planted_test.X), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_second_fit_forgets_the_first(small, planted, planted_of, tmp_path):
    other = planted_of(n_rows=100, n_labels=9, seed=4)
    again = small().fit(planted.X, planted.names).fit(other.X, other.Y)
    once = small().fit(other.X, other.Y)
    assert saved_bytes(again, tmp_path / "again") == saved_bytes(once, tmp_path / "once")
    assert vars(again).keys() == vars(once).keys()


def test_wild_arrays_are_refused_or_harmless(small, method, planted, planted_test, tmp_path):
    """A forged model with right checksums: a kernel must never index where it should not."""
    small().fit(planted.X, planted.Y).save(tmp_path / "model")
    manifest, arrays = read_model(tmp_path / "model")
    refused = 0
    for name, array in arrays.items():
        for _, changed in damaged(np.array(array)):
            write_model(tmp_path / "forged", manifest, {**arrays, name: changed})
            try:
                forged = method.load(tmp_path / "forged")
            except FormatError:
                refused += 1
            else:
                assert_sound(forged, planted_test.X, 5)
    assert refused
    for name in arrays:
        write_model(tmp_path / "forged", manifest, {other: arrays[other] for other in arrays if other != name})
        with pytest.raises(FormatError):
            method.load(tmp_path / "forged")
    for name in manifest["facts"]:
        facts = {other: value for other, value in manifest["facts"].items() if other != name}
        write_model(tmp_path / "forged", {**manifest, "facts": facts}, arrays)
        with contextlib.suppress(FormatError):  # a fact that only informs may be left out
            assert_sound(method.load(tmp_path / "forged"), planted_test.X, 5)
