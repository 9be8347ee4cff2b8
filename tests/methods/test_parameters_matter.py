"""Every parameter of every method and encoder changes the model or its answers, or is listed with the reason."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood.methods import METHODS
from labelwood.params import declared
from labelwood.text import ENCODERS

# Parameters without which the others would not matter on little data.
BASE = {
    "linear-tree": {"max_leaf": 3, "arity": 3, "cluster_features": 5, "weight_threshold": 0.3},
    "online-tree": {"max_leaf": 4},
    "craft-forest": {"n_trees": 2, "max_leaf": 5, "arity": 3, "feature_columns": 40, "label_columns": 10},
    "ldsm-forest": {"n_trees": 2, "epochs": 3},
    "fastxml-forest": {"n_trees": 2, "max_leaf": 5},
    "graph-forest": {"n_trees": 2, "max_leaf": 5, "n_neighbors": 3},
    "blend": {"models": ["linear-tree", {"method": "craft-forest", "n_trees": 2}]},
    "ranker": {"models": ["linear-tree", {"method": "craft-forest", "n_trees": 2}], "n_boosted": 5, "candidates": 10},
}
# Other values than those that are made of the declaration, and what else a parameter needs to matter.
CHANGED = {
    ("linear-tree", "max_depth"): ({"tree": "kmeans", "max_depth": 2}, {"tree": "kmeans"}),
    ("linear-tree", "hierarchy"): ({"hierarchy": [[0, 1, 2], list(range(3, 24))]}, {}),
    ("linear-tree", "cluster_rounds"): (
        {"cluster_rounds": 1},
        {"cluster_features": None, "arity": 2, "max_leaf": 6, "random_state": 1},
    ),
    ("linear-tree", "max_passes"): ({"max_passes": 1}, {}),
    ("one-vs-rest", "max_passes"): ({"max_passes": 1}, {}),
    ("linear-tree", "search"): ({"search": "exact", "beam_width": 1}, {"beam_width": 1}),
    "beam_width": ({"beam_width": 1}, {}),
    ("online-forest", "tree"): ({"tree": {"max_leaf": 3}}, {}),
    ("craft-forest", "centroid_rows"): ({"centroid_size": 2, "centroid_rows": 2}, {"centroid_size": 2}),
    ("craft-forest", "centroid_size"): ({"centroid_size": 1, "centroid_rows": 1000}, {"centroid_rows": 1000}),
    ("craft-forest", "cap_columns"): ({"cap_columns": True, "feature_columns": 100}, {"feature_columns": 100}),
    ("craft-forest", "idf"): ({"idf": True}, {}),
    ("craft-forest", "sample"): ({"sample": 20}, {}),
    ("ldsm-forest", "max_nodes"): ({"max_nodes": 5}, {}),
    ("ldsm-forest", "weight_threshold"): ({"weight_threshold": 0.5}, {}),
    ("graph-forest", "label_threshold"): ({"label_threshold": 4}, {}),
    ("graph-forest", "fill_neighbors"): (
        {"graph": "tail", "label_threshold": 4, "fill_neighbors": True},
        {"graph": "tail", "label_threshold": 4},
    ),
    ("graph-forest", "feature_rows"): ({"feature_rows": 30}, {}),
    ("graph-forest", "tolerance"): ({"tolerance": 0.5}, {}),
    ("graph-forest", "l1"): ({"l1": 50.0}, {}),
    ("living-tree", "batch"): ({"batch": {"C": 0.05}}, {}),
    ("living-tree", "online"): ({"online": {"max_leaf": 3}}, {}),
    ("fastxml-forest", "leaf_size"): ({"leaf_size": 2}, {}),
    ("fastxml-forest", "idf"): ({"idf": True}, {}),
    ("fastxml-forest", "tree_share"): ({"rerank": True, "tree_share": 0.1}, {"rerank": True}),
    ("fastxml-forest", "tail_means"): ({"rerank": True, "tail_means": "plain"}, {"rerank": True}),
    ("fastxml-forest", "propensity_A"): ({"propensity": True, "propensity_A": 2.0}, {"propensity": True}),
    ("fastxml-forest", "propensity_B"): ({"propensity": True, "propensity_B": 6.0}, {"propensity": True}),
    **{(one, "drop_stop_words"): ({"drop_stop_words": True, "language": "en"}, {}) for one in ("tfidf", "hashing")},
    ("blend", "models"): ({"models": ["one-vs-rest"]}, {}),
    ("blend", "mode"): ({"mode": "rank"}, {}),
    ("blend", "weights"): ({"weights": [1.0, 5.0]}, {}),
    ("blend", "similar_rows"): ({"similar_rows": 20}, {}),
    ("ranker", "models"): ({"models": ["one-vs-rest"]}, {}),
    ("ranker", "folds"): ({"folds": 1}, {}),
    ("tfidf", "max_features"): ({"max_features": 5}, {}),
    ("tfidf", "max_df"): ({"max_df": 0.4}, {}),
    ("tfidf", "min_df"): ({"min_df": 3}, {}),
    ("tfidf", "ngram_range"): ({"ngram_range": (1, 2)}, {}),
    ("hashing", "ngram_range"): ({"ngram_range": (1, 2)}, {}),
}
UNSEEN = {
    "n_jobs": "the result is always the same",
    "verbose": "it shows progress",
    "vector_weight": "for rows with vectors; tests/test_hybrid.py has its test",
    **dict.fromkeys(
        [
            f"living-tree {name}"
            for name in (
                *("refits", "refit_growth", "refit_rows", "refit_fall", "recent", "keep", "half_life"),
                *("neighbors", "neighbor_rows"),
            )
        ],
        "it matters when the model learns on; see tests/methods/online",
    ),
    "linear-tree candidates": "few labels are all proposed",
    "words": "stems and lemmas are an extra; see tests/text",
    "drop_stop_words": "likewise",
    "language": "it matters beside words and drop_stop_words",
    "fields": "for documents of several fields; tests/text has its tests",
    "online-tree search": "a live model searches exactly",
    "online-tree beam_width": "likewise",
    "one-vs-rest random_state": "the order of rows is not drawn",
    "ranker unseen": "for labels with texts and without rows; test_ranker.py has its test",
    "ranker text_rows": "for labels with texts; test_ranker.py has its test",
    "ranker hidden": "for labels with texts and without rows; test_ranker.py has its test",
    "row_share": "rows of at most 100 entries are not cut; test_row_share.py has its test",
    "craft-forest centroid_share": "centroids of at most 100 entries are not cut",
}
TEXTS = [
    "A cat and a dog",
    "a dog, a Dog, a dog barks",
    "the tax court of café",
    "income Tax is due",
    "the court",
    "tax law cafe",
]


def rows():
    random = np.random.default_rng(0)
    Y = random.random((160, 24)) < 0.08
    Y[np.arange(160), np.arange(160) % 24] = True
    words = random.random((24, 60)) * (random.random((24, 60)) < 0.15)
    X = Y @ words + random.random((160, 60)) * (random.random((160, 60)) < 0.1)
    return sp.csr_array(X.astype(np.float32)), sp.csr_array(Y.astype(np.float32))


X, Y = rows()


def changed(owner, parameter, base):
    """Parameters by which one differs from the others, and those others."""
    for key in ((owner, parameter.name), parameter.name):
        if key in CHANGED:
            return CHANGED[key]
    default = base.get(parameter.name, parameter.default)
    if parameter.kinds == (bool,) or default is True or default is False:
        return {parameter.name: not default}, {}
    if parameter.choices:
        return {parameter.name: next(one for one in parameter.choices if one != default)}, {}
    if float in parameter.kinds:
        most = parameter.param.le
        value = 0.3 if default is None else default * 3 if most is None or default * 3 <= most else default / 3
        return {parameter.name: value or (0.5 if most else 2.0)}, {}
    return {parameter.name: 2 if default is None else default + 1}, {}


def answers(model):
    labels, scores = model.predict_topk(X[:40] * np.float32(0.5), k=5)
    _, arrays = model.to_saved()
    decided = model.predict(X[:40]).toarray().tolist()
    saved = {name: (str(one.dtype), one.tobytes()) for name, one in arrays.items()}
    return labels.tolist(), scores.tolist(), decided, model.threshold_, saved


CASES = [(method, name) for method, cls in METHODS.items() for name in declared(cls)]


@pytest.mark.parametrize(("method", "name"), CASES)
def test_a_parameter_of_a_method_matters(method, name):
    if name in UNSEEN or f"{method} {name}" in UNSEEN:
        pytest.skip(UNSEEN.get(name) or UNSEEN[f"{method} {name}"])
    cls, base = METHODS[method], {"n_jobs": 1, **BASE.get(method, {})}
    change, around = changed(method, declared(cls)[name], base)
    before = answers(cls(**{**base, **around}).fit(X, Y))
    assert answers(cls(**{**base, **around, **change}).fit(X, Y)) != before


@pytest.mark.parametrize(("encoder", "name"), [(one, name) for one, cls in ENCODERS.items() for name in declared(cls)])
def test_a_parameter_of_an_encoder_matters(encoder, name):
    if name in UNSEEN:
        pytest.skip(UNSEEN[name])
    cls = ENCODERS[encoder]
    change, around = changed(encoder, declared(cls)[name], {})
    before, after = (cls(**own).fit_transform(TEXTS) for own in (around, {**around, **change}))
    assert before.shape != after.shape or abs(before - after).sum() > 0
