"""The growing tree: properness and efficiency as the paper defines them, and kernel == twin."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import online_tree as twin

from labelwood import _core
from labelwood.sparse import CSR

N_LABELS = 300  # declared to every tree; which of them occur is up to the stream
POLICIES = ["best-greedy", "random", "complete", "flat"]


def kernel(
    policy="best-greedy",
    arity=2,
    max_leaf=4,
    alpha=0.75,
    seed=0,
    bias=1.0,
    printed_balance=False,
    epsilon_outside=False,
):
    options = {
        "policy": policy, "arity": arity, "max_leaf": max_leaf, "alpha": alpha, "seed": seed,
        "learning_rate": 1.0, "epsilon": 0.01, "bias": bias, "normalize": False,
        "printed_balance": printed_balance, "epsilon_outside": epsilon_outside,
    }  # fmt: skip
    return _core.OnlineTree(options)


def make_stream(seed, n_rows, n_labels, n_features=14, empty=0.1):
    """Examples of real-valued features, with labels that keep appearing, several at once, or none."""
    random = np.random.default_rng(seed)
    stream = []
    for row in range(n_rows):
        known = 1 + (n_labels - 1) * row // max(n_rows - 1, 1)
        count = 0 if random.random() < empty else int(random.integers(1, 5))
        labels = sorted({int(label) for label in random.integers(0, known, count)})
        features = random.choice(n_features, size=int(random.integers(0, 6)), replace=False)
        stream.append(({int(f): float(np.float32(random.normal())) for f in sorted(features)}, labels))
    return stream


def matrices(stream, column=np.int32):
    x_ptr = np.cumsum([0] + [len(x) for x, _ in stream]).astype(np.int64)
    y_ptr = np.cumsum([0] + [len(y) for _, y in stream]).astype(np.int64)
    columns = np.array([f for x, _ in stream for f in x], column)
    values = np.array([v for x, _ in stream for v in x.values()], np.float32)
    labels = np.array([j for _, y in stream for j in y], np.int32)
    return CSR(x_ptr, columns, values, 0), CSR(y_ptr, labels, np.ones(len(labels), np.float32), N_LABELS)


def learn(tree, stream, threads=1, order=None):
    rows = np.arange(len(stream), dtype=np.int64) if order is None else order
    tree.learn(*matrices(stream), rows, threads)
    return tree


def shape(tree):
    state = tree.state()
    return state["parent"], state["label"]


def assert_same_classifiers(left, right, n_nodes):
    """Bit for bit: weights and sums of every node; features one of them never met count as zeros."""
    for node in range(n_nodes):
        found = []
        for tree in (left, right):
            features, weights, sums = tree.classifier(node, False)
            kept = (weights != 0) | (sums != 0)
            found.append((features[kept].tolist(), weights[kept].tobytes(), sums[kept].tobytes()))
        assert found[0] == found[1], f"node {node}"


def iplt(tree, stream, **parameters):
    """IPLT.Train on the tree that ``tree`` has grown."""
    given_tree = kernel(**parameters)
    given_tree.plant(*shape(tree), growing=False)
    return learn(given_tree, stream)


streams = st.builds(make_stream, seed=st.integers(0, 2**32), n_rows=st.integers(1, 60), n_labels=st.integers(1, 40))
settings_of_tree = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(POLICIES),
        "arity": st.integers(2, 4),
        "max_leaf": st.integers(4, 20),
        "seed": st.integers(0, 2**32),
        "bias": st.sampled_from([0.0, 1.0]),
        "printed_balance": st.booleans(),
        "epsilon_outside": st.booleans(),
    }
)


@settings(max_examples=150)
@given(stream=streams, parameters=settings_of_tree)
def test_properness(stream, parameters):
    """Definition 1, at every t of the stream that doubles: leaves are the labels seen, classifiers IPLT's."""
    tree, seen = kernel(**parameters), 0
    while seen < len(stream):
        upto = min(len(stream), 2 * seen + 1)
        learn(tree, stream[seen:upto])
        seen = upto
        _, label = shape(tree)
        labels_seen = {label for _, labels in stream[:seen] for label in labels}
        assert sorted(label[label >= 0]) == sorted(labels_seen)
        assert_same_classifiers(tree, iplt(tree, stream[:seen], **parameters), len(label))


@pytest.mark.parametrize("policy", POLICIES)
def test_properness_through_all_variants(policy):
    """A longer stream in which every variant of extension occurs, counted from the shapes of the tree."""
    stream = make_stream(5, 400, 120)
    parameters = {"policy": policy, "arity": 2, "max_leaf": 5}
    tree = kernel(**parameters)
    variants = set()
    for row in range(len(stream)):
        before, _ = shape(tree)
        learn(tree, stream[row : row + 1])
        after, _ = shape(tree)
        added = len(after) - len(before)
        if added == 1:
            variants.add(1)
        elif added == 2:
            moved = (after[: len(before)] != before).any()
            variants.add(2 if moved else 3)
    expected = {"best-greedy": {1, 2, 3}, "random": {1, 2, 3}, "complete": {3}, "flat": {1}}[policy]
    assert expected <= variants
    assert_same_classifiers(tree, iplt(tree, stream, **parameters), len(after))


@settings(max_examples=100)
@given(stream=streams, parameters=settings_of_tree, share=st.floats(0.1, 0.9))
def test_a_warm_start_is_proper(stream, parameters, share):
    """OPLT-W: a given tree of the first rows' labels, trained on these rows, grows with the others; Definition 1."""
    first = max(1, round(share * len(stream)))
    assume(any(labels for _, labels in stream[:first]))
    tree = kernel(**parameters)
    tree.plant(*shape(learn(kernel(**{**parameters, "policy": "random"}), stream[:first])), growing=True)
    learn(learn(tree, stream[:first]), stream[first:])
    _, label = shape(tree)
    assert sorted(label[label >= 0]) == sorted({label for _, labels in stream for label in labels})
    assert_same_classifiers(tree, iplt(tree, stream, **parameters), len(label))


@settings(max_examples=60)
@given(stream=streams, parameters=settings_of_tree)
def test_efficiency(stream, parameters):
    """Definition 2: at most 2m - 1 nodes, at most twice the updates of IPLT on the same tree."""
    tree = learn(kernel(**parameters), stream)
    facts, n_labels = tree.facts(), len({j for _, labels in stream for j in labels})
    assert facts["nodes"] <= max(1, 2 * n_labels - 1)
    given_tree = iplt(tree, stream, **parameters)
    assert given_tree.facts()["auxiliary_classifiers"] == 0
    assert facts["updates"] <= 2 * given_tree.facts()["updates"]


@settings(max_examples=100)
@given(stream=streams, parameters=settings_of_tree)
def test_kernel_equals_twin(stream, parameters):
    tree, reference = learn(kernel(**parameters), stream), twin.OnlineTree(**parameters).train(stream)
    parent, label = shape(tree)
    assert parent.tolist() == [-1 if v.parent is None else v.parent.number for v in reference.nodes]
    assert label.tolist() == [-1 if v.label is None else v.label for v in reference.nodes]
    auxiliary = tree.state()["auxiliary"]
    assert auxiliary.tolist() == [v.theta is not None for v in reference.nodes]
    updates = sum(v.eta.updates for v in twin.iplt_train(reference, stream).nodes)
    assert iplt(tree, stream, **parameters).facts()["updates"] == updates
    for node in reference.nodes:
        for classifier, is_auxiliary in ((node.eta, False), (node.theta, True)):
            if classifier is None:
                continue
            features, weights, sums = tree.classifier(node.number, is_auxiliary)
            plain = classifier.plain()
            np.testing.assert_allclose(weights, [plain.get(f, 0.0) for f in features.tolist()], atol=2e-4)
            np.testing.assert_allclose(sums, [classifier.sums.get(f, 0.0) for f in features.tolist()], atol=2e-4)
            assert set(plain) <= set(features.tolist())
    labels, scores = tree.search(matrices(stream)[0], 5, 1, None)
    for row, (features, _) in enumerate(stream[:10]):
        expected = reference.topk(features, 5)
        assert (labels[row] >= 0).sum() == len(expected)
        np.testing.assert_allclose(scores[row, : len(expected)], [p for _, p in expected], atol=1e-4)


def test_twin_by_hand():
    """Two examples, two labels, one feature each: every weight worked out on paper.

    First example x = {0: 1}, label 0: the root becomes the leaf of label 0, eta and theta of the root take a positive
    step from zero: gradient -1/2, sum 1/4, weight 1/2 / sqrt(1/4 + 3/4) = 1/2. Second example x = {0: 1}, label 1:
    the root gets two leaves, eta(v') = theta = 1/2 and eta(v'') = -1/2 before its update. With s = 1 / (1 + e^(1/2)):
    eta(root) and theta step by a gradient of -s, v' (a negative) by 1 - s, v'' (a positive) by -(1 - s).
    """
    tree = twin.OnlineTree(rate=1.0, epsilon=0.75, bias=0.0).train([({0: 1.0}, [0]), ({0: 1.0}, [1])])
    s = 1 / (1 + math.exp(0.5))
    root, old, new = tree.nodes
    assert [v.label for v in tree.nodes] == [None, 0, 1]
    up = 0.5 + s / math.sqrt(0.25 + s * s + 0.75)
    down = 0.5 - (1 - s) / math.sqrt(0.25 + (1 - s) ** 2 + 0.75)
    assert root.eta.plain()[0] == pytest.approx(up)
    assert root.theta.plain()[0] == pytest.approx(up)
    assert old.eta.plain()[0] == pytest.approx(down)
    assert new.eta.plain()[0] == pytest.approx(-down)
    assert old.theta is None
    assert new.theta is None


@settings(max_examples=60)
@given(stream=streams, parameters=settings_of_tree)
def test_twin_is_proper(stream, parameters):
    tree = twin.OnlineTree(**parameters).train(stream)
    given_tree = twin.iplt_train(tree, stream)
    for left, right in zip(tree.nodes, given_tree.nodes, strict=True):
        assert left.eta.plain() == right.eta.plain()


def equal_states(left, right):
    one, other = left.state(), right.state()
    return all(one[name].tobytes() == other[name].tobytes() for name in one)


def restored(tree, **parameters):
    facts, copy = tree.facts(), kernel(**parameters)
    copy.restore(tree.state(), facts["growing"], facts["seen"], facts["updates"], facts["decisions"], facts["cursor"])
    return copy


@settings(max_examples=60)
@given(stream=streams, parameters=settings_of_tree, cut=st.floats(0, 1))
def test_batches_threads_and_interruptions_change_nothing(stream, parameters, cut):
    whole = learn(kernel(**parameters), stream)
    one_by_one = kernel(**parameters)
    for row in range(len(stream)):
        learn(one_by_one, stream[row : row + 1])
    half = round(cut * len(stream))
    resumed = learn(kernel(**parameters), stream[:half])
    resumed = restored(resumed, **parameters)
    learn(resumed, stream[half:], threads=2)
    for other in (one_by_one, resumed):
        assert equal_states(whole, other)


def test_many_rows_on_two_threads():
    stream = make_stream(1, 6000, 300, n_features=200)
    one, two = learn(kernel(max_leaf=20), stream), learn(kernel(max_leaf=20), stream, threads=2)
    assert equal_states(one, two)


def test_features_of_sixty_three_bits():
    stream = [({2**40 + 7: 1.0, 2**62: -1.0}, [0]), ({3: 1.0, 2**62: 1.0}, [1])]
    tree = kernel()
    x, y = matrices(stream, np.int64)
    tree.learn(x, y, np.arange(2, dtype=np.int64), 1)
    top, _ = tree.search(x, 1, 1, None)
    assert top.ravel().tolist() == [0, 1]
    assert tree.classifier(0, False)[0].tolist() == [-1, 3, 2**40 + 7, 2**62]


@settings(max_examples=60)
@given(stream=streams, parameters=settings_of_tree, k=st.sampled_from([1, 5, 100]), data=st.data())
def test_search_of_allowed_labels_scores_them_all(stream, parameters, k, data):
    tree, reference = learn(kernel(**parameters), stream), twin.OnlineTree(**parameters).train(stream)
    allowed = data.draw(st.sets(st.integers(0, N_LABELS + 3), min_size=1))
    ids = np.array(sorted(allowed), np.int32)
    labels, scores = tree.search(matrices(stream)[0], k, 1, None, ids)
    for row, (features, _) in enumerate(stream[:10]):
        expected = [(label, score) for label, score in reference.topk(features, N_LABELS) if label in allowed][:k]
        assert (labels[row] >= 0).sum() == len(expected)
        assert set(labels[row][labels[row] >= 0]) <= allowed
        np.testing.assert_allclose(scores[row, : len(expected)], [p for _, p in expected], atol=1e-4)
    every, their_scores = tree.search(matrices(stream)[0], 200, 1, None)
    for row in range(len(stream)):
        kept = np.isin(every[row], ids)
        np.testing.assert_array_equal(labels[row][labels[row] >= 0], every[row][kept][:k])
        np.testing.assert_array_equal(scores[row][labels[row] >= 0], their_scores[row][kept][:k])


def test_allowed_labels_are_found_at_the_leaves_of_labels_merged_into_them():
    stream = make_stream(3, 200, 30)
    tree = learn(kernel(), stream)
    x = matrices(stream)[0]
    tree.set_lifecycle(4, True, 4)
    tree.set_lifecycle(5, False, 6)
    every, their_scores = tree.search(x, 30, 1, None)
    allowed = np.array([4, 5, 6, 7], np.int32)
    labels, scores = tree.search(x, 4, 1, None, allowed)
    for row in range(len(stream)):
        kept = np.isin(every[row], allowed)
        np.testing.assert_array_equal(labels[row], [*every[row][kept], -1, -1])
        np.testing.assert_array_equal(scores[row][:2], their_scores[row][kept])


def test_retired_and_merged_labels_are_not_suggested():
    stream = make_stream(3, 200, 30)
    tree = learn(kernel(), stream)
    x = matrices(stream)[0]
    before, _ = tree.search(x, 30, 1, None)
    tree.set_lifecycle(4, True, 4)
    tree.set_lifecycle(5, False, 6)
    after, scores = tree.search(x, 30, 1, None)
    assert 4 in before
    assert 5 in before
    assert 4 not in after
    assert 5 not in after
    for row in after:
        assert len(set(row[row >= 0])) == (row >= 0).sum()
    assert (np.diff(scores, axis=1) <= 0).all()
    tree.set_lifecycle(4, False, 4)
    tree.set_lifecycle(5, False, 5)
    np.testing.assert_array_equal(tree.search(x, 30, 1, None)[0], before)
