"""OnlineTree: streams, label lifecycle, warm starts, freezing, saving in the middle."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp

import labelwood
from labelwood import LabelwoodError, LinearTree, OnlineForest, OnlineTree
from labelwood.errors import FormatError
from labelwood.methods.online import growing
from labelwood.methods.online.progressive import judge_progressive
from labelwood.packed.tree_shape import flat_tree, random_tree
from labelwood.sparse import CSR, from_lists

POLICIES = ["best-greedy", "random", "complete", "flat"]


def small(**parameters):
    return OnlineTree(**{"n_jobs": 1, "max_leaf": 4, **parameters})


def state_bytes(model, path):
    model.save(path)
    return {file.name: file.read_bytes() for file in path.glob("*.npy")}


def feed(model, planted, size):
    for start in range(0, planted.X.shape[0], size):
        model.partial_fit(planted.X[start : start + size], planted.names[start : start + size])
    return model


@pytest.mark.parametrize("policy", POLICIES)
def test_learns_from_a_stream(policy, planted, planted_test):
    model = feed(small(policy=policy), planted, 1)
    feed(model, planted, 50)
    assert model.score(planted_test.X, planted_test.names) > 0.9
    assert model.n_seen_ == 2 * planted.X.shape[0]
    assert set(model.classes_) == {name for row in planted.names for name in row}
    if policy == "flat":
        assert model.describe()["depth"] == 1


def test_ids_are_append_only_and_batches_change_nothing(planted, tmp_path):
    whole, by_one = feed(small(), planted, 1000), feed(small(), planted, 1)
    assert state_bytes(whole, tmp_path / "whole") == state_bytes(by_one, tmp_path / "one")
    first = list(dict.fromkeys(name for row in planted.names for name in row))
    assert by_one.classes_.tolist() == first
    by_one.partial_fit(planted.X[:1], [["brand new"]])
    assert by_one.classes_.tolist() == [*first, "brand new"]


def test_a_label_never_seen_before_is_learned_at_once(planted):
    model = feed(small(), planted, 100)
    fresh = {900: 1.0, 901: 1.0}
    for _ in range(3):
        model.partial_fit([fresh], [[("any", "hashable")]])
    assert model.predict_topk([fresh], 1)[0][0, 0] == ("any", "hashable")


def test_features_past_every_matrix(planted):
    model = small().partial_fit([{2**62: 1.0, 5: 1.0}, {7: 1.0}], [["far"], ["near"]])
    assert model.predict_topk([{2**62: 1.0}, {7: 1.0}], 1)[0].ravel().tolist() == ["far", "near"]
    with pytest.raises(LabelwoodError, match="freeze and explain take feature ids up to"):
        model.freeze()
    wide = sp.csr_array(([1.0], ([0], [2**40])), shape=(1, 2**62 + 1))
    assert model.partial_fit(wide, [["wide"]]).predict_topk(wide, 1)[0].tolist() == [["wide"]]
    grown = small().partial_fit(planted.X[:, :50], planted.names).partial_fit(planted.X, planted.names)
    assert grown.n_features_in_ == planted.X.shape[1]
    with pytest.raises(LabelwoodError, match="columns may be added, never taken away"):
        grown.partial_fit(planted.X[:, :50], planted.names)


@pytest.mark.parametrize("policy", POLICIES)
def test_saving_in_the_middle_and_continuing(policy, planted, planted_test, tmp_path):
    half = planted.X.shape[0] // 2
    parts = [(planted.X[:half], planted.names[:half]), (planted.X[half:], planted.names[half:])]
    straight, stopped = small(policy=policy), small(policy=policy)
    for part in parts:
        straight.partial_fit(*part)
    stopped.partial_fit(*parts[0]).save(tmp_path / "middle")
    resumed = labelwood.load(tmp_path / "middle").partial_fit(*parts[1])
    assert state_bytes(resumed, tmp_path / "resumed") == state_bytes(straight, tmp_path / "straight")
    for left, right in zip(resumed.predict_topk(planted_test.X), straight.predict_topk(planted_test.X), strict=True):
        np.testing.assert_array_equal(left, right)


def test_freeze_answers_alike(planted, planted_test, tmp_path):
    model = feed(small(), planted, 60)
    frozen = model.freeze()
    (labels, scores), (packed, packed_scores) = (m.predict_topk(planted_test.X, 5) for m in (model, frozen))
    np.testing.assert_array_equal(packed, labels)
    np.testing.assert_allclose(packed_scores, scores, rtol=1e-5)
    with pytest.raises(LabelwoodError, match="cannot learn or change"):
        frozen.partial_fit(planted.X, planted.names)
    model.save(tmp_path / "small", inference_only=True, weight_threshold=0.05)
    loaded = labelwood.load(tmp_path / "small")
    agree = (loaded.predict_topk(planted_test.X, 1)[0] == labels[:, :1]).mean()
    assert agree > 0.95
    assert loaded.labels.list() == model.labels.list()
    wider = sp.hstack([planted_test.X, sp.csr_array((planted_test.X.shape[0], 9))], format="csr")
    np.testing.assert_array_equal(frozen.predict_topk(wider, 5)[0], labels)


def test_warm_start_from_a_linear_tree(planted, planted_test):
    sample, rest = slice(0, 60), slice(60, None)
    linear = LinearTree(n_jobs=1, arity=2, max_leaf=4).fit(planted.X[sample], planted.names[sample])
    model = small(epochs=2).warm_start_from(linear, planted.X[sample], planted.names[sample])
    model.partial_fit(planted.X[rest], planted.names[rest]).partial_fit(planted.X, planted.names)
    assert model.score(planted_test.X, planted_test.names) > 0.9
    by_fit = small(warm_share=0.2, epochs=3).fit(planted.X, planted.Y)
    assert by_fit.score(planted_test.X, planted_test.Y) > 0.9


def test_learn_tree_keeps_the_tree(planted, planted_test):
    tree = random_tree(planted.Y.shape[1], arity=2, max_leaf=4, seed=0)
    model = small(epochs=3).learn_tree(tree, planted.X, planted.Y)
    assert model.describe()["auxiliary_classifiers"] == 0
    assert model.describe()["nodes"] == tree.n_nodes
    assert model.score(planted_test.X, planted_test.Y) > 0.9
    with pytest.raises(LabelwoodError, match="has no label 24 and is closed"):
        model.partial_fit(planted.X[:1], sp.csr_array(np.eye(1, 25, 24)))
    with pytest.raises(LabelwoodError, match="has no label 3"):
        small().learn_tree(flat_tree(3), planted.X, planted.Y)
    with pytest.raises(LabelwoodError, match="must be a fitted LinearTree or a LabelTree"):
        small().learn_tree("tree", planted.X, planted.Y)


def test_label_lifecycle(planted, planted_test, tmp_path):
    model = feed(small(), planted, 60)
    everything = model.n_labels_
    before = model.predict_topk(planted_test.X, everything)
    first, second, third = model.classes_[:3]
    entry = model.labels.list()[0]
    assert (entry.name, entry.state, entry.id) == (first, "active", 0)
    assert entry.support == sum(first in row for row in planted.names)
    assert entry.age == planted.X.shape[0] - next(i for i, row in enumerate(planted.names) if first in row)

    model.labels.retire(first)
    model.labels.merge(second, third)
    model.labels.rename(third, "renamed")
    states = [entry.state for entry in model.labels.list()[:3]]
    assert states == ["retired", "merged", "active"]
    assert model.labels.list()[1].target == "renamed"
    for changed in (model, model.freeze()):
        names, scores = changed.predict_topk(planted_test.X, everything)
        assert first not in names
        assert second not in names
        assert "renamed" in names
        assert (np.array([len(set(row) - {None}) for row in names]) == everything - 2).all()
        assert (np.diff(scores, axis=1) <= 0).all()
    support = model.labels.list()[2].support
    model.partial_fit(planted.X[:1], [[second]])
    assert model.labels.list()[2].support == support + 1

    model.save(tmp_path / "model")
    loaded = labelwood.load(tmp_path / "model")
    assert loaded.labels.list() == model.labels.list()

    back = feed(small(), planted, 60)
    back.labels.retire(first)
    back.labels.merge(second, third)
    back.labels.restore(first)
    back.labels.restore(second)
    for left, right in zip(before, back.predict_topk(planted_test.X, everything), strict=True):
        np.testing.assert_array_equal(left, right)
    with pytest.raises(LabelwoodError, match="there is no label 'nobody'"):
        model.labels.retire("nobody")
    with pytest.raises(LabelwoodError, match="must be free"):
        model.labels.rename("renamed", first)
    with pytest.raises(LabelwoodError, match="two different labels"):
        model.labels.merge(first, first)


def test_columns_can_be_renamed(planted):
    model = small().partial_fit(planted.X, planted.Y)
    model.labels.rename(0, "zero")
    assert model.classes_[:2].tolist() == ["zero", 1]
    assert "zero" in model.predict_topk(planted.X, 3)[0]


def test_progressive(planted, tmp_path):
    model, plain = small(), feed(small(), planted, 7)
    result = model.progressive(planted.X, planted.names, k=3)
    assert state_bytes(model, tmp_path / "one") == state_bytes(plain, tmp_path / "other")
    assert result.hits.shape == (planted.X.shape[0], 3)
    assert not result.hits[0].any(), "nothing is known before the first row"
    assert result.accuracy == pytest.approx(result.accuracy_curve()[-1])
    assert result.accuracy > result.constant.mean()
    assert result.entropy_reduction == pytest.approx(np.log2(result.accuracy / result.constant.mean()))
    assert 0 < result.precision(3) <= 1
    result.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000


def test_progressive_by_hand():
    truth = from_lists([[0], [0], [1], [0, 1]], 2)
    predicted = np.array([[-1], [0], [0], [1]], np.int32)
    result = judge_progressive(predicted, truth, np.zeros(0, np.int64))
    assert result.hits.ravel().tolist() == [False, True, False, True]
    assert result.constant.tolist() == [False, True, False, True]


def test_bad_input_changes_nothing(planted, tmp_path):
    model = small().partial_fit(planted.X, planted.names)
    before = state_bytes(model, tmp_path / "before")
    spoilt = planted.X[:2].copy()
    spoilt.data[0] = np.nan
    bad = [
        (spoilt, [["a"], ["b"]], "finite"),
        (planted.X[:2], [["a"], [None]], "row 1: a label name must not be None"),
        (planted.X[:2], [["a"], [float("nan")]], "must not be NaN"),
        (planted.X[:2], [["a"], [["b"]]], "must be hashable"),
        (planted.X[:2], [["a"]], "same number of rows"),
        (planted.X[:2], ["ab", "cd"], "must be a list of label names"),
        (planted.X[:1], planted.Y[:1, :].astype(float) * 0.5, "must hold 0 and 1"),
        (planted.X[:1], sp.csr_array((1, 99)), "99 columns, but the model knows 24 labels by name"),
        ([{-1: 1.0}], [["a"]], "feature id must be an integer from 0"),
        ([{1: float("inf")}], [["a"]], "finite"),
        ([{1: "x"}], [["a"]], "must be numbers"),
    ]
    for X, Y, message in bad:
        with pytest.raises(LabelwoodError, match=message):
            model.partial_fit(X, Y)
    assert state_bytes(model, tmp_path / "after") == before
    with pytest.raises(LabelwoodError, match="must not be None"):
        small().fit(planted.X[:2], [["a"], [None]])
    by_column = small().partial_fit(planted.X, planted.Y)
    with pytest.raises(LabelwoodError, match="labels of this model are numbers of columns; got 'name'"):
        by_column.partial_fit(planted.X[:1], [["name"]])


def test_duplicate_and_unsorted_entries_are_summed(planted):
    messy = sp.csr_array((np.array([1.0, 2.0, 3.0], np.float32), np.array([5, 1, 5]), np.array([0, 3])), shape=(1, 9))
    tidy = {1: 2.0, 5: 4.0}
    left, right = small().partial_fit(messy, [["a"]]), small().partial_fit([tidy], [["a"]])
    for one, other in zip(left._tree.classifier(0, False), right._tree.classifier(0, False), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_interrupted_batch_says_where(planted, monkeypatch):
    monkeypatch.setattr(growing, "CHUNK", 400)
    model = small().partial_fit(planted.X[:1], planted.names[:1])
    tree, calls = model._tree, []

    class Interrupting:  # a signal that arrives between two chunks, at a known place
        def learn(self, *arguments):
            if len(calls) == 3:
                raise KeyboardInterrupt
            calls.append(arguments)
            tree.learn(*arguments)

        def __getattr__(self, name):
            return getattr(tree, name)

    model._tree = Interrupting()
    with pytest.raises(KeyboardInterrupt) as caught:
        model.partial_fit(planted.X, planted.names)
    model._tree = tree
    done = model.rows_learned_
    assert 0 < done < planted.X.shape[0]
    assert caught.value.__notes__ == [f"OnlineTree: the first {done} of {planted.X.shape[0]} rows are learned"]
    assert model.n_seen_ == 1 + done == model.trained_["rows"]
    model.partial_fit(planted.X[done:], planted.names[done:])
    assert model.n_seen_ == 1 + planted.X.shape[0]


def test_predicting_while_learning(planted):
    model = small().partial_fit(planted.X, planted.names)
    stop, failures = threading.Event(), []

    def read():
        while not stop.is_set():
            names, scores = model.predict_topk(planted.X[:20], 5)
            if not ((np.diff(scores, axis=1) <= 0).all() and all(name is not None for name in names[:, 0])):
                failures.append(names)

    reader = threading.Thread(target=read)
    reader.start()
    for round_ in range(10):
        model.partial_fit(planted.X, [[*row, f"new-{round_}"] for row in planted.names])
    stop.set()
    reader.join()
    assert not failures


@pytest.mark.parametrize("name", ["parent", "first", "feature_ptr", "weights", "answers_as", "label", "row_ptr"])
def test_a_damaged_state_is_refused(name, planted, tmp_path):
    model = feed(small(), planted, 60)
    facts, arrays = model._state()
    spoilt = arrays[name].copy()
    spoilt[-1] = np.nan if spoilt.dtype.kind == "f" else 10**6
    other = small()
    other._names, other.n_features_in_, other.label_counts_ = (model._names, model.n_features_in_, model.label_counts_)
    with pytest.raises(FormatError):
        other._restore(facts, {**arrays, name: spoilt})


def test_only_matrices_with_columns(planted):
    model = small().partial_fit(CSR(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), 3), [[]])
    assert model.n_labels_ == 0
    model.partial_fit(planted.X[:3], planted.names[:3])
    assert model.n_labels_ > 0


def test_rows_tested_at_once_are_predicted_before_any_is_learned(planted, tmp_path):
    X, names = planted.X, planted.names
    model, other = (small().partial_fit(X[:50], names[:50]) for _ in range(2))
    expected, _ = model.predict_topk(X[50:80], k=2)
    found, targets = model.test_then_learn(X[50:80], names[50:80], k=2, at_once=True)
    assert [[model.classes_[j] for j in row] for row in found] == expected.tolist()
    assert targets.n_rows == 30
    other.partial_fit(X[50:80], names[50:80])
    assert state_bytes(model, tmp_path / "one") == state_bytes(other, tmp_path / "other")


@pytest.mark.parametrize("policy", ["best-greedy", "random"])
def test_leaves_hold_at_least_as_many_labels_as_a_node_has_children(policy, planted):
    """The paper's b_max >= b."""
    wrong = "OnlineTree: max_leaf must be at least arity, 4; got 2"
    model = small(policy=policy, arity=4, max_leaf=2)
    with pytest.raises(LabelwoodError, match=wrong):
        model.fit(planted.X, planted.Y)
    with pytest.raises(LabelwoodError, match=wrong):
        model.partial_fit(planted.X, planted.names)
    assert small(policy="complete", arity=4, max_leaf=2).fit(planted.X, planted.Y).describe()["depth"] < 10
    with pytest.raises(LabelwoodError, match=wrong):
        OnlineForest(n_trees=2, tree={"policy": policy, "arity": 4, "max_leaf": 2}, n_jobs=1).fit(planted.X, planted.Y)


def test_the_printed_balance_term_builds_combs():
    """It vanishes as subtrees grow, so fit alone decides: the tree is deeper than by the even share."""
    random = np.random.default_rng(0)
    names = [[f"label {label}"] for label in range(400)]
    X = (random.random((400, 30)) < 0.2).astype(np.float32)
    even, printed = (
        small(balance=balance, max_leaf=2).partial_fit(X, names).describe()["depth"] for balance in ("even", "printed")
    )
    assert printed > 1.5 * even
