"""Writes the missing golden models of the present format version: ``python tests/golden/make.py``.

One small directory for each method and for each way to store one, and what it predicted when it was written. A golden
model is written once for each format version and kept: what a version of Labelwood wrote, all later ones read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import labelwood
from labelwood import METHODS, Embedded, HashingEncoder, LinearTree, OnlineTree, Ranker, TextClassifier, TfidfEncoder
from labelwood.storage.model_directory import FORMAT_VERSION

HERE = Path(__file__).parent
TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax is due", "the court decided", "guilty by law"]
LABELS = [["pets"], ["pets"], ["law"], ["law", "money"], ["court", "law"], ["law"]]
K = 3


def rows() -> Any:
    """Six rows of twelve features; row i has features 2i and 2i + 1, and a little of feature i."""
    return sp.csr_array(np.repeat(np.eye(6, dtype=np.float32), 2, axis=1) + 0.25 * np.eye(6, 12, dtype=np.float32))


def blocks() -> dict[str, Any]:
    """The same six rows, with vectors of four numbers beside them."""
    place = np.arange(24, dtype=np.float32).reshape(6, 4)
    return {"words": rows(), "vectors": (np.cos(place) + 0.5).astype(np.float16)}


def models() -> dict[str, Any]:
    """A model of each method and of each storage variant."""
    X, Y = sp.vstack([rows()] * 4).tocsr(), [["a"], ["b"], ["a", "c"], ["d"], ["e", "b"], ["f"]] * 4
    few: dict[str, dict[str, Any]] = {
        "blend": {"models": ["linear-tree", "one-vs-rest"]},
        "craft-forest": {"n_trees": 3},
        "fastxml-forest": {"n_trees": 3, "C": 10.0},
        "graph-forest": {"n_trees": 3},
        "ldsm-forest": {"n_trees": 2},
        "ranker": {"models": ["linear-tree", "one-vs-rest"], "n_boosted": 3},
    }
    found = {name: METHODS[name](n_jobs=1, **few.get(name, {})).fit(X, Y) for name in METHODS}
    found["linear-tree-dense"] = LinearTree(n_jobs=1, arity=2, max_leaf=2, weight_threshold=0.0).fit(X, Y)
    found["linear-tree-int8"] = LinearTree(n_jobs=1, arity=2, max_leaf=2).fit(X, Y).quantize("int8")
    found["linear-tree-calibrated"] = LinearTree(n_jobs=1).fit(X, Y).calibrate(X, Y).choose_thresholds(X, Y)
    found["craft-forest-rerank"] = labelwood.CraftForest(n_jobs=1, n_trees=3, rerank=True).fit(X, Y)
    found["fastxml-forest-pfastrexml"] = labelwood.FastXmlForest.preset("pfastrexml", n_jobs=1, n_trees=3, C=10.0).fit(
        X, Y
    )
    found["online-tree-frozen"] = OnlineTree(n_jobs=1).fit(X, Y).freeze()
    found["texts-tfidf"] = TextClassifier(LinearTree(n_jobs=1), TfidfEncoder(n_jobs=1)).fit(TEXTS * 3, LABELS * 3)
    hashing = HashingEncoder(n_features=256, n_jobs=1)
    found["texts-hashing"] = TextClassifier(OnlineTree(n_jobs=1), hashing).fit(TEXTS * 3, LABELS * 3)
    named = Ranker(["linear-tree"], n_jobs=1, n_boosted=3)
    found["texts-ranker"] = TextClassifier(named, TfidfEncoder(n_jobs=1)).fit(
        TEXTS * 12, LABELS * 12, label_texts={"pets": ["pets", "dogs and cats"], "zebra": "zebras"}
    )
    found["texts-ranker-rows"] = TextClassifier(clone(named), TfidfEncoder(n_jobs=1)).fit(
        TEXTS * 12, LABELS * 12, label_texts={"pets": ["pets", "dogs and cats"], "zebra": "zebras"}
    )
    both, dense = blocks(), blocks()["vectors"]
    found["linear-tree-vectors"] = LinearTree(n_jobs=1, arity=2, max_leaf=2).fit(np.tile(dense, (4, 1)), Y)
    found["one-vs-rest-vectors-int8"] = labelwood.OneVsRest(n_jobs=1).fit(np.tile(dense, (4, 1)), Y).quantize("int8")
    many = {"words": sp.vstack([both["words"]] * 4).tocsr(), "vectors": np.tile(both["vectors"], (4, 1))}
    found["linear-tree-blocks"] = LinearTree(n_jobs=1, arity=2, max_leaf=2, vector_weight=0.5).fit(many, Y)
    texts = Embedded(TEXTS * 12, np.tile(dense, (12, 1)))
    found["texts-vectors"] = TextClassifier(LinearTree(n_jobs=1, vector_weight="auto"), TfidfEncoder(n_jobs=1)).fit(
        texts, LABELS * 12
    )
    found["ranker-similar"] = Ranker(["linear-tree"], n_jobs=1, n_boosted=3, similar_rows=5).fit(X, Y)
    found["ranker-similar-blocks"] = Ranker(["linear-tree"], n_jobs=1, n_boosted=3, similar_rows=5).fit(many, Y)
    found["blend-similar-blocks"] = labelwood.Blend(["linear-tree"], n_jobs=1, similar_rows=5).fit(many, Y)
    return found


def inputs(name: str) -> Any:
    """The input of a golden model: texts, rows, vectors, or two of these."""
    if name == "texts-vectors":
        return Embedded(TEXTS, blocks()["vectors"])
    if name.endswith("blocks"):
        return blocks()
    if "vectors" in name:
        return blocks()["vectors"]
    return TEXTS if name.startswith("texts") else rows()


def main() -> None:
    """Write the models that are not there, and their answers."""
    folder = HERE / f"format{FORMAT_VERSION}"
    folder.mkdir(exist_ok=True)
    path = folder / "answers.json"
    answers = json.loads(path.read_text()) if path.exists() else {}
    for name, model in models().items():
        if name not in answers:
            model.save(folder / name)
            labels, scores = model.predict_topk(inputs(name), K)
            answers[name] = {"labels": labels.tolist(), "scores": scores.tolist()}
    path.write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main()
