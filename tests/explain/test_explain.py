"""Explanations: exact sums, the scores of predictions, and where labels are lost, on cases worked by hand."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood import (
    METHODS,
    CraftForest,
    FastXmlForest,
    GraphForest,
    HashingEncoder,
    LabelwoodError,
    LdsmForest,
    LinearTree,
    OneVsRest,
    OnlineForest,
    OnlineTree,
    TextClassifier,
    TfidfEncoder,
)
from labelwood.validation.features import as_features

N_LABELS = 24
CASES = {
    "linear-tree": LinearTree(arity=3, max_leaf=4, n_jobs=1),
    "dense": LinearTree(arity=3, max_leaf=4, weight_threshold=None, n_jobs=1),
    "three trees": LinearTree(n_trees=3, arity=2, max_leaf=3, loss="logistic", n_jobs=1),
    "exact": LinearTree(arity=2, max_leaf=2, search="exact", n_jobs=1),
    "one-vs-rest": OneVsRest(n_jobs=1),
    "online-tree": OnlineTree(max_leaf=4, epochs=3, n_jobs=1),
    "ldsm": LdsmForest(n_trees=4, n_jobs=1),
    "ldsm reranked": LdsmForest(n_trees=4, rerank=True, n_jobs=1),
    "craft": CraftForest(n_trees=4, n_jobs=1),
    "craft gaussian": CraftForest(n_trees=3, projection="gaussian", feature_columns=50, label_columns=20, n_jobs=1),
    "craft per node": CraftForest(n_trees=3, diversity="DxDy", feature_columns=60, n_jobs=1),
    "graph": GraphForest(n_trees=4, n_jobs=1),
    "fastxml": FastXmlForest(n_trees=4, n_jobs=1),
    "pfastrexml": FastXmlForest(n_trees=4, propensity=True, rerank=True, tail_means="plain", n_jobs=1),
}


def make_rows(n_rows=240, seed=0):
    """Label j fires features 4j..4j+3; noise fires the last ones."""
    random = np.random.default_rng(seed)
    X = sp.lil_array((n_rows, 4 * N_LABELS + 10), dtype=np.float32)
    Y = np.zeros((n_rows, N_LABELS), np.int64)
    for row in range(n_rows):
        for label in random.choice(N_LABELS, size=random.integers(1, 4), replace=False).tolist():
            Y[row, label] = 1
            for feature in random.permutation(4)[:3].tolist():
                X[row, 4 * label + feature] = 1.0
        X[row, 4 * N_LABELS + int(random.integers(10))] = float(random.uniform(0.1, 0.5))
    return X.tocsr(), Y


@pytest.fixture(scope="module", params=list(CASES))
def fitted(request):
    X, Y = make_rows()
    return CASES[request.param].fit(X, Y, label_names=[f"label {j}" for j in range(N_LABELS)])


def steps_of(explanation):
    for suggestion in explanation.suggestions:
        for path in suggestion.paths:
            yield from path.steps
    for route in explanation.routes:
        yield from route.steps
    for missed in explanation.missed:
        yield from (lost.step for lost in missed.lost if lost.step is not None)
    for member in explanation.members:
        yield from steps_of(member.explanation)


def test_contributions_sum_to_the_score_of_their_step(fitted):
    X, _ = make_rows(n_rows=12, seed=1)
    names = fitted.classes_.tolist()
    for n_features in (None, 3, 0):
        count = 0
        for explanation in fitted.explain(X, k=4, n_features=n_features, missed=names[:3]):
            for step in steps_of(explanation):
                total = step.bias + sum(c.amount for c in step.contributions) + step.rest
                assert step.score == pytest.approx(total, abs=1e-5)
                assert all(c.amount == c.value * c.weight for c in step.contributions)
                assert len(step.contributions) <= (X.shape[1] if n_features is None else n_features)
                assert 1 <= step.place <= step.n_children
                count += 1
        assert count > 0


def test_suggestions_are_the_predictions(fitted):
    X, _ = make_rows(n_rows=20, seed=2)
    labels, scores = fitted.predict_topk(X, k=4)
    for row, explanation in enumerate(fitted.explain(X, k=4)):
        known = [label for label in labels[row].tolist() if label is not None]
        assert [suggestion.label for suggestion in explanation.suggestions] == known
        for suggestion, score in zip(explanation.suggestions, scores[row], strict=False):
            assert suggestion.score == pytest.approx(score, abs=1e-7)
            assert explained_score(suggestion) == pytest.approx(score, abs=1e-4)


def explained_score(suggestion):
    """The score worked out from the parts of the explanation."""
    if suggestion.paths:
        products = [np.prod([step.probability for step in path.steps]) * path.listed for path in suggestion.paths]
        return sum(products) / len(suggestion.paths)
    total = sum(share.amount for share in suggestion.shares)
    if suggestion.reranked is None:
        return total
    assert suggestion.reranked.tree_score == pytest.approx(total)
    return total**0.8 * suggestion.reranked.nearness**0.2


def test_forest_routes_take_the_best_child_or_all_above_the_threshold(fitted):
    X, _ = make_rows(n_rows=10, seed=3)
    for explanation in fitted.explain(X, k=1):
        for route in explanation.routes:
            for step in route.steps:
                threshold = fitted.forest_.routing.threshold
                assert step.place == 1 or step.score > threshold
        if explanation.routes:
            assert sum(route.weight for route in explanation.routes) == pytest.approx(1)


def test_missed_labels_are_told_for_every_tree(fitted):
    X, _ = make_rows(n_rows=6, seed=4)
    for explanation in fitted.explain(X, k=2, missed=fitted.classes_.tolist()):
        suggested = {suggestion.label for suggestion in explanation.suggestions}
        assert len(explanation.missed) == N_LABELS
        for missed in explanation.missed:
            # several trees propose more labels for a longer list, and average those
            if missed.place is not None and len(getattr(fitted, "trees_", [])) < 2:
                assert (missed.place <= 2) == (missed.label in suggested)
            for lost in missed.lost:
                if lost.reason in ("beam", "rank", "branch"):
                    assert lost.step is not None
                    assert lost.rivals
                assert lost.reason != "branch" or lost.rivals[0].node != lost.step.child


def by_hand():
    """Two groups under the root, two labels each, and weights that make every score known."""
    X = np.eye(4, dtype=np.float32)
    model = LinearTree(
        hierarchy=[["a", "b"], ["c", "d"]], beam_width=1, weight_threshold=None, normalize=False, n_jobs=1,
    )  # fmt: skip
    return model.fit(X, [["a"], ["b"], ["c"], ["d"]])


def test_a_label_lost_in_the_beam():
    model = by_hand()
    row = np.array([[0.9, 0.0, 0.4, 0.0]], np.float32)  # speaks for a, a little for c
    [explanation] = model.explain(row, k=2, missed=["c"])
    assert [suggestion.label for suggestion in explanation.suggestions] == ["a", "b"]
    [missed] = explanation.missed
    [lost] = missed.lost
    tree = model.trees_[0].tree
    group_of_c = int(tree.parent[np.flatnonzero(tree.label == 2)[0]])
    group_of_a = int(tree.parent[np.flatnonzero(tree.label == 0)[0]])
    assert (lost.reason, lost.step.node, lost.step.child) == ("beam", 0, group_of_c)
    assert [rival.node for rival in lost.rivals] == [group_of_a]
    assert lost.rivals[0].score > lost.score
    assert missed.place is None


def test_a_label_lost_by_rank():
    model = by_hand()
    model.beam_width = 2
    row = np.array([[0.9, 0.0, 0.4, 0.0]], np.float32)
    [explanation] = model.explain(row, k=1, missed=["c", "a"])
    beaten, found = (missed.lost[0] for missed in explanation.missed)
    assert (beaten.reason, [rival.label for rival in beaten.rivals]) == ("rank", ["a"])
    assert beaten.rivals[0].score > beaten.score > 0
    assert found.reason == "listed"
    assert [missed.place for missed in explanation.missed][1] == 1


def test_a_label_lost_at_a_branch_of_a_forest():
    X = np.eye(2, dtype=np.float32).repeat(20, axis=0)
    model = GraphForest(n_trees=1, max_leaf=20, n_jobs=1).fit(X, [["left"]] * 20 + [["right"]] * 20)
    [explanation] = model.explain(X[:1], k=1, missed=["right", "left"])
    assert [suggestion.label for suggestion in explanation.suggestions] == ["left"]
    lost, found = (missed.lost[0] for missed in explanation.missed)
    reached = explanation.routes[0].leaf
    assert (lost.reason, lost.step.node, lost.rivals[0].node) == ("branch", 0, reached)
    assert lost.step.child in (set(range(*model.forest_.child_ptr[:2].tolist())) - {reached})
    assert lost.rivals[0].score > lost.step.score
    assert (found.reason, found.score, found.rivals) == ("share", 1.0, ())


def test_a_label_below_others_in_the_leaf_and_one_that_no_leaf_has():
    X = np.ones((10, 1), np.float32)
    rows = [["often", "rare"] if row == 0 else ["often"] for row in range(10)]
    model = GraphForest(n_trees=1, max_leaf=20, n_jobs=1).fit(X, rows)
    lost = model.explain(X[:1], k=1, missed=["rare"])[0].missed[0].lost[0]
    assert (lost.reason, [rival.label for rival in lost.rivals]) == ("share", ["often"])
    assert lost.score == pytest.approx(0.1, abs=1e-4)
    model.shrink(leaf_size=1)
    lost = model.explain(X[:1], k=1, missed=["rare"])[0].missed[0].lost[0]
    assert (lost.reason, lost.step, lost.score) == ("absent", None, 0.0)


def test_merged_labels_are_explained_by_the_leaf_that_answered():
    model = OnlineTree(n_jobs=1).partial_fit(np.eye(3, dtype=np.float32), [["e-mail"], ["email"], ["post"]])
    model.labels.merge("e-mail", "email")
    [explanation] = model.explain(np.eye(3, dtype=np.float32)[:1], k=2, missed=["post"])
    first = explanation.suggestions[0]
    assert first.label == "email"
    assert explained_score(first) == pytest.approx(first.score, abs=1e-5)
    assert explanation.suggestions[0].paths[0].steps[-1].label == "email"
    frozen = model.freeze().explain(np.eye(3, dtype=np.float32)[:1], k=2)[0]
    assert frozen.suggestions[0].label == "email"


@pytest.mark.parametrize("encoder", [TfidfEncoder(n_jobs=1), HashingEncoder(n_features=4096, n_jobs=1)])
@pytest.mark.parametrize("name", list(METHODS))
def test_words_explain_texts(name, encoder):
    texts = ["cats and dogs", "the dog barks", "tax law of the land", "income tax law"] * 5
    tags = [["pets"], ["pets"], ["law"], ["law", "money"]] * 5
    model = TextClassifier(METHODS[name](n_jobs=1), encoder).fit(texts, tags)
    [explanation] = model.explain(["a dog and its tax"], k=2, n_features=None)
    words = {c.name for step in steps_of(explanation) for c in step.contributions}
    assert words
    assert words <= {"dog", "and", "its", "tax"}
    assert model.explain([""], k=1)


def test_an_unknown_label_is_refused():
    with pytest.raises(LabelwoodError, match="LinearTree: there is no label 'zebra'"):
        by_hand().explain(np.eye(4, dtype=np.float32), missed=["zebra"])


@pytest.mark.parametrize("k", [0, True, 1.5])
def test_k_must_be_a_positive_integer(k):
    with pytest.raises(LabelwoodError, match="k must be an integer, at least 1"):
        by_hand().explain(np.eye(4, dtype=np.float32), k=k)


def test_columns_known_at_fit_name_the_features():
    model = by_hand()
    model.feature_names_in_ = np.array(["w", "x", "y", "z"], dtype=object)
    row = as_features(np.eye(4, dtype=np.float32)[:1], owner="test")
    [explanation] = model.explain(row, k=1)
    assert {c.name for step in steps_of(explanation) for c in step.contributions} == {"w"}


@pytest.mark.parametrize("kind", [OnlineTree, OnlineForest])
def test_a_live_tree_is_explained_like_its_frozen_copy(kind):
    X, Y = make_rows()
    names = [f"label {j}" for j in range(N_LABELS)]
    settings = {"max_leaf": 4} if kind is OnlineTree else {"n_trees": 2, "tree": {"max_leaf": 4}}
    live = kind(n_jobs=1, **settings).fit(X, Y, label_names=names)
    live.labels.merge(names[3], names[4])
    live.labels.retire(names[5])
    for row in range(5):
        asked = {"k": 4, "missed": [names[7], names[5], names[4]], "n_features": None}
        (one,), (other,) = live.explain(X[row : row + 1], **asked), live.freeze().explain(X[row : row + 1], **asked)
        assert [found.label for found in one.suggestions] == [found.label for found in other.suggestions]
        assert list(steps_of(one)) == list(steps_of(other))
        lost = [
            [(lost.tree, lost.reason, lost.step) for lost in missed.lost] for missed in (*one.missed, *other.missed)
        ]
        assert lost[:3] == lost[3:]


@pytest.mark.parametrize("method", [OnlineTree, OnlineForest])
def test_an_explanation_follows_what_was_learned_since_the_last_one(method):
    """The shape of the tree is kept from one explanation to the next."""
    X, Y = make_rows()
    live = method(n_jobs=1).partial_fit(X[:20], Y[:20])

    def assert_current():
        found, wanted = (model.explain(X[:3], 4, n_features=None) for model in (live, live.freeze()))
        assert [list(steps_of(one)) for one in found] == [list(steps_of(one)) for one in wanted]

    assert_current()
    live.partial_fit(X[20:], Y[20:])
    assert_current()
    first = live.predict_topk(X[:1], 1)[0][0][0]
    for change in (live.labels.retire, live.labels.restore):
        change(first)
        assert_current()


def test_explaining_a_live_tree_does_not_pack_all_of_it():
    """Only the weights on the paths to the labels are read for it."""
    random = np.random.default_rng(0)
    X = sp.random_array((4000, 5000), density=0.01, random_state=random, dtype=np.float32, format="csr")
    model = OnlineTree(n_jobs=1).fit(X, [[int(label)] for label in random.integers(0, 2000, 4000)])
    spent = {}
    for name in ("predict_topk", "explain", "freeze"):
        method = getattr(model, name)
        seconds = []
        for row in range(5 if name != "freeze" else 2):
            start = time.process_time()
            method(*(() if name == "freeze" else (X[row : row + 1], 5)))
            seconds.append(time.process_time() - start)
        spent[name] = min(seconds)
    assert spent["explain"] < 0.2 * spent["freeze"]
    assert spent["explain"] < 30 * spent["predict_topk"]


@pytest.mark.parametrize("kind", [LinearTree, CraftForest, OnlineTree, OnlineForest])
def test_a_text_without_a_known_word_says_so(kind):
    texts, Y = ["cats and dogs", "a dog barks", "tax law", "income tax"], [["pets"], ["pets"], ["law"], ["law"]]
    model = TextClassifier(kind(n_jobs=1)).fit(texts, Y)
    known, unknown, empty = model.explain(["my dog", "zebra crossing", ""], 1)
    assert (known.row_is_empty, unknown.row_is_empty, empty.row_is_empty) == (False, True, True)


def test_features_that_an_online_model_never_saw():
    model = OnlineTree(n_jobs=1).partial_fit([{0: 1.0}, {5: 1.0}], [["a"], ["b"]])
    rows = [{0: 1.0, 3: 1.0}, {3: 1.0}, {2**40: 1.0}]
    assert [found.row_is_empty for found in model.explain(rows, 1)] == [False, True, True]


def test_an_unknown_label_gets_the_nearest_one():
    X, Y = make_rows()
    for model in (LinearTree(n_jobs=1), OnlineTree(n_jobs=1)):
        model.fit(X, Y, label_names=[f"label {j}" for j in range(N_LABELS)])
        with pytest.raises(LabelwoodError, match="there is no label 'Labl 3'; did you mean label 3\\?"):
            model.explain(X[:1], missed=["Labl 3"])
    with pytest.raises(LabelwoodError, match="there is no label 'labels 7'; did you mean label 7\\?"):
        model.labels.retire("labels 7")
