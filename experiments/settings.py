"""The parameters that each method is run with on the data sets at hand.

They were chosen on held-out training rows, by the scripts that the notebook names. Parameters and data sets that are
not listed have the defaults.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

from experiments.common import Options, Runs, Split, held_out, kept, measured
from labelwood import METHODS, TreeEstimator
from labelwood.methods.forest.base import ForestEstimator

N_TREES = 50  # of an instance forest
UNTOLD = ("random_state", "n_jobs", "verbose")  # parameters that are no part of a key

BLENDED = [
    {"method": "linear-tree", "n_trees": 3},
    {"method": "one-vs-rest"},
    {"method": "craft-forest", "n_trees": 30, "centroid_size": 200, "centroid_rows": 100},
]

RANKED = [
    {"method": "linear-tree", "n_trees": 3},
    {"method": "craft-forest", "n_trees": 20, "idf": True, "feature_columns": 46761, "arity": 20},
]

CHOSEN: dict[str, dict[str, dict[str, Any]]] = {
    "linear-tree": {
        "bibtex": {"n_trees": 3, "C": 0.5},
        "delicious": {"n_trees": 3, "C": 0.5, "score_power": 2},
        "eurlex57k": {"n_trees": 3},
        "yso_finna_en": {"n_trees": 3},
    },
    "one-vs-rest": {"bibtex": {"C": 0.5}, "delicious": {"C": 0.5}},
    "online-tree": {
        "bibtex": {"epochs": 3, "learning_rate": 0.5, "max_leaf": 200},
        "delicious": {"epochs": 3, "learning_rate": 0.5, "max_leaf": 200},
        "eurlex57k": {"max_leaf": 200},
        "yso_finna_en": {"learning_rate": 1.5},
    },
    "ldsm-forest": {
        "delicious": {"weight_threshold": 0.0},
        "eurlex57k": {"weight_threshold": 0.03, "normalize": True, "leaf_size": 100},
        "yso_finna_en": {
            "max_nodes": 32000, "weight_threshold": 0.1, "loss": "squared", "idf": True, "normalize": True,
            "leaf_size": 100,
        },
    },
    "craft-forest": {
        "delicious": {"centroid_share": 1.0, "centroid_size": 60, "centroid_rows": 100, "max_leaf": 30},
        "yso_finna_en": {"idf": True, "feature_columns": 46761, "arity": 20},
    },
    "graph-forest": {
        "bibtex": {"epochs": 2, "rerank": True, "feature_rows": 5},
        "delicious": {"graph": "tail", "epochs": 1, "l1": 0.5},
        "eurlex57k": {"epochs": 1, "l1": 0.5},
        "yso_finna_en": {"epochs": 1, "l1": 0.5},
    },
    "blend": {},
    "ranker": {
        "bibtex": {"models": BLENDED, "similar_rows": 0},
        "delicious": {"models": BLENDED, "similar_rows": 0},
        "eurlex57k": {"similar_rows": 0, "folds": 2},
        "yso_finna_en": {"models": RANKED, "similar_rows": 0},
    },
}  # fmt: skip


def is_forest(method: str) -> bool:
    """Whether a method is an instance forest."""
    return issubclass(METHODS[method], ForestEstimator)


def parameters(method: str, data: str) -> dict[str, Any]:
    """The parameters of a method on a data set, the number of trees among them."""
    name = data.partition("/")[0]
    found = dict(CHOSEN.get(method, {}).get(name, {}))
    if is_forest(method):
        found["n_trees"] = N_TREES
    if method == "blend":
        found["models"] = BLENDED
    return found


def model(method: str, data: str, **changes: Any) -> TreeEstimator:
    """The estimator of a method as it is run on a data set, with changes."""
    return METHODS[method](**{**parameters(method, data), **changes})


def runs(method: str, split: Split, options: Options, **changes: Any) -> Runs:
    """A method with its settings for a data set and changes: trained and evaluated once per seed, and stored."""
    return alone(method, split, options, **{**parameters(method, split.name), **changes})


def alone(method: str, split: Split, options: Options, **given: Any) -> Runs:
    """A method with these parameters alone: trained and evaluated once per seed, and stored."""

    def one(seed: int) -> dict[str, float]:
        return measured(METHODS[method](**given, n_jobs=options.threads, random_state=seed), split)

    return kept(options, key_with(method, split.name, options, **given), one)


def tried(method: str, split: Split, options: Options, **given: Any) -> Runs:
    """A method with these parameters alone, evaluated on a fifth of the training rows (by seed), and stored."""

    def one(seed: int) -> dict[str, float]:
        own = METHODS[method](**given, n_jobs=options.threads, random_state=seed)
        return measured(own, held_out(split, seed))

    key = key_with(method, split.name, options, **given)
    return kept(options, {**key, "held out of": split.train.n_rows}, one)


def key_of(method: str, data: str, options: Options, **changes: Any) -> dict[str, Any]:
    """The key under which the runs of a method with its settings for a data set and changes are stored."""
    return key_with(method, data, options, **{**parameters(method, data), **changes})


def key_with(method: str, data: str, options: Options, **given: Any) -> dict[str, Any]:
    """The key of a method with these parameters alone; it holds every parameter, given or default.

    A parameter that a method gained later is left out at its default, if older models acted by that value: their runs
    stay found.
    """
    found, declared = METHODS[method](**given).get_params(deep=False), signature(METHODS[method]).parameters
    later = METHODS[method].ADDED_LATER.items()
    old = {name for name, value in later if found[name] == value == declared[name].default}
    own = {name: found[name] for name in sorted(found) if name not in UNTOLD and name not in old}
    return {"data": data, "method": method, "parameters": own, "quick": options.quick}
