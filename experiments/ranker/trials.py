"""What was tried beside the ranker, on held-out training rows: each way beside the one that the library takes.

    python -m experiments.ranker.trials clustering --sets eurlex57k,yso_finna_en
    python -m experiments.ranker.trials negatives --sets eurlex57k,yso_finna_en
    python -m experiments.ranker.trials tail --sets bibtex/xmc_split0,delicious/xmc_split0
    python -m experiments.ranker.trials stages --sets bibtex/xmc_split0,delicious/xmc_split0,eurlex57k
    python -m experiments.ranker.trials unseen --sets eurlex57k,tibkat [--hide 0.1] [--hidden 0.1 0.2]

clustering: the tree of LinearTree is grown by the vectors of the labels' rows and names, by names alone, or by the sum
of both; texts and names are those of experiments/ranker/texts.py. negatives: rows that a search leads to a node of the
last level in error are negatives of its labels in a second training. tail: the second look learns with inverse
propensities as weights of right candidates, or of all candidates. stages: the second look is the library's boosted
trees, LightGBM's (pip install lightgbm) with the logistic loss or lambdarank, or a logistic regression on the features
and their logarithms, all on the same candidates. unseen: labels without rows weigh more or less while the second look
learns; with --hide, a share of the labels loses its training rows first, and --hidden is the share that members do not
see. With --rows, the rows are the first or a sample.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from experiments.common import KS, Options, Split, held_out, judged, parse, thinned
from experiments.ranker import texts
from experiments.report import Report
from labelwood import LinearTree, Ranker, TextClassifier, TfidfEncoder, _core, metrics
from labelwood.metrics import inverse_propensities
from labelwood.packed.label_tree import NodeWeights, PackedTree
from labelwood.packed.tree_shape import LabelTree, freeze
from labelwood.scoring import second_look
from labelwood.sparse import CSR, TopK, from_scipy
from labelwood.validation.label_texts import LabelVectors, read_label_texts

Named = Iterator[tuple[str, dict[str, float]]]
SHOWN = ("P@", "PSP@", "R@", "learn, ")  # openings of the figures in the tables
WEIGHTS = (1.0, 0.9, 0.35, 0.0)  # of labels without rows
WRONG = 40  # labels of a training row whose nodes count as reached
LOG_COUNT = second_look.SHARED_FEATURES.index("log count") - len(second_look.SHARED_FEATURES)


def grown_by(names: CSR, *, with_rows: bool) -> type[LinearTree]:
    """LinearTree that grows its tree by vectors of names, alone or added to those of the rows."""

    class TextTree(LinearTree):
        def _grower(self, rows: Any, Y: CSR, run: Any) -> Callable[[int], LabelTree]:
            vectors = names
            if with_rows:
                own = rows.label_vectors(Y, self.cluster_features or 0, run)
                vectors = from_scipy((own.unit_rows().to_scipy() + names.to_scipy()).tocsr()).unit_rows()
            options = {
                "balanced": True, "arity": self.arity, "max_leaf": self.max_leaf, "max_depth": self.max_depth,
                "max_rounds": self.cluster_rounds,
            }  # fmt: skip
            return lambda seed: freeze(*_core.grow_tree(vectors, {**options, "seed": seed}, run.n_threads, None))

    return TextTree


def shaped_as(tree: LabelTree) -> type[LinearTree]:
    """LinearTree that learns the weights of a given tree."""

    class GivenTree(LinearTree):
        def _grower(self, rows: Any, Y: CSR, run: Any) -> Callable[[int], LabelTree]:
            return lambda seed: tree

    return GivenTree


def clustering(name: str, seed: int, options: Options) -> Named:
    """Trees grown by rows and names, by names, by both alike; all learn the names as training rows."""
    found = texts.held_out(texts.load_texts(options.data, name, options.extra.rows), seed)
    described = read_label_texts(found.names, owner="trials")
    encoder = TfidfEncoder(**{"min_df": 2, **texts.ENCODERS.get(name, {})}, n_jobs=options.threads)
    vectors = encoder.fit_encode([*found.train, *described.texts])
    X, of_names = vectors.rows(0, len(found.train)), vectors.rows(len(found.train), vectors.n_rows)
    rows = encoder.encode(found.test)
    common: dict[str, Any] = {"n_jobs": options.threads, "random_state": seed}
    base = LinearTree(**common)
    base.fit(X, found.train_labels, label_vectors=LabelVectors(described.labels, of_names))
    ids = [base.label_names.index[label] for label in described.labels]
    places = sp.csr_array((np.ones(len(ids)), (ids, np.arange(len(ids)))), shape=(base.n_labels_, len(ids)))
    by_label = from_scipy((places @ of_names.to_scipy()).astype(np.float32).tocsr()).unit_rows()
    truth = base.encode_labels(found.test_labels)

    def figures(model: LinearTree) -> dict[str, float]:
        return {metric: 100 * value for metric, value in metrics.evaluate(truth, model.topk_ids(rows, 5), KS).items()}

    yield "rows and names", figures(base)
    for title, with_rows in (("names", False), ("both alike", True)):
        model = grown_by(by_label, with_rows=with_rows)(**common)
        model.fit(X, found.train_labels, label_vectors=LabelVectors(described.labels, of_names))
        yield title, figures(model)


def negatives(name: str, seed: int, options: Options) -> Named:
    """One tree, and the same tree whose last level learned again, with the rows that were led there in error."""
    split = held_out(rows_of(name, options), seed)
    common: dict[str, Any] = {"n_jobs": options.threads, "random_state": seed}
    X, Y = split.train.X, split.train.Y.to_scipy().tocsr()
    first = LinearTree(**common).fit(X, Y)
    yield "rows of the node", judged(split, first.topk_ids(split.test.X, max(KS)))
    tree = first.trees_[0].tree
    node_of = np.empty(Y.shape[1], np.int64)
    leaves = np.flatnonzero(tree.label >= 0)
    node_of[tree.label[leaves]] = tree.parent[leaves]
    nodes = np.unique(node_of)
    place = np.searchsorted(nodes, node_of)
    is_below = sp.csr_array((np.ones(len(place)), (np.arange(len(place)), place)), shape=(len(place), len(nodes)))
    top = first.topk_ids(X, WRONG)
    listed = top.labels >= 0
    reached = sp.csr_array((np.ones(listed.sum()), (np.nonzero(listed)[0], top.labels[listed])), shape=Y.shape)
    wrong = ((reached @ is_below > 0).astype(np.int8) - (Y @ is_below > 0).astype(np.int8)) > 0
    parents, labels = np.concatenate([tree.parent, nodes]), np.arange(Y.shape[1], Y.shape[1] + len(nodes))
    second = shaped_as(freeze(parents, np.concatenate([tree.label, labels])))(**common)
    second.fit(X, sp.hstack([Y, wrong.astype(Y.dtype)]).tocsr())
    second.trees_ = [with_last_level(first.trees_[0], second.trees_[0])]
    found = second.topk_ids(split.test.X, max(KS) + len(nodes))
    yield "and rows led there in error", judged(split, labels_below(found, Y.shape[1]))


def with_last_level(upper: PackedTree, last: PackedTree) -> PackedTree:
    """The tree of ``last`` with the weights of ``upper`` wherever all children of a node are inner nodes."""
    own, tree = (upper.node_weights, last.node_weights), last.tree
    parts: dict[str, list[Any]] = {name: [] for name in ("features", "row_start", "child", "weights")}
    bias = own[1].bias.copy()
    for number, node in enumerate(tree.inner.tolist()):
        children = slice(*tree.child_ptr[node : node + 2].tolist())
        is_upper = bool((tree.label[children] < 0).all())
        taken = own[0] if is_upper else own[1]
        if is_upper:
            there = upper.tree.inner[number]
            bias[children] = taken.bias[slice(*upper.tree.child_ptr[there : there + 2].tolist())]
        columns = slice(*taken.feature_ptr[number : number + 2].tolist())
        pairs = slice(*taken.weight_ptr[number : number + 2].tolist())
        for key, part in (("features", columns), ("row_start", columns), ("child", pairs), ("weights", pairs)):
            parts[key].append(getattr(taken, key)[part].astype(getattr(own[1], key).dtype))
    bounds = {
        pointer: np.concatenate([[0], np.cumsum([len(part) for part in parts[key]])]).astype(np.int64)
        for pointer, key in (("feature_ptr", "features"), ("weight_ptr", "weights"))
    }
    joined = {key: np.concatenate(found) for key, found in parts.items()}
    weights = NodeWeights(**bounds, **joined, bias=bias)
    return replace(last, node_weights=weights.check(tree, last.n_features))


def labels_below(top: TopK, n_labels: int) -> TopK:
    """The best five of the labels below ``n_labels``."""
    is_in = (top.labels >= 0) & (top.labels < n_labels)
    order = np.argsort(~is_in, axis=1, kind="stable")[:, : max(KS)]
    labels = np.take_along_axis(np.where(is_in, top.labels, -1), order, 1)
    return TopK(labels, np.take_along_axis(np.where(is_in, top.scores, 0), order, 1).astype(np.float32))


def tail(name: str, seed: int, options: Options) -> Named:
    """Rankers whose second look learns unweighted or with inverse propensities, for both objectives."""
    split = held_out(rows_of(name, options), seed)
    n_rows, learn = split.train.n_rows, second_look.learn_trees

    def weighted(features: Any, hits: Any, *, everywhere: bool, **given: Any) -> Any:
        inverse = inverse_propensities(np.expm1(features[:, LOG_COUNT]), n_rows)
        weights = inverse if everywhere else np.where(hits, inverse, 1)
        return learn(features, hits, **{**given, "weights": (weights / weights.mean()).astype(np.float32)})

    ways: dict[str, Callable[..., Any]] = {
        "unweighted": learn,
        "right candidates weighted": lambda *given, **more: weighted(*given, everywhere=False, **more),
        "all candidates weighted": lambda *given, **more: weighted(*given, everywhere=True, **more),
    }
    for title, way in ways.items():
        with patch("labelwood.methods.ranker.learn_trees", way):
            model = Ranker(n_jobs=options.threads, random_state=seed).fit(split.train.X, split.train.Y.to_scipy())
        for objective in ("precision", "tail"):
            top = model.topk_ids(split.test.X, max(KS), objective)
            yield f"{title}, objective {objective}", judged(split, top)


def stages(name: str, seed: int, options: Options) -> Named:
    """Ways to learn from the same candidates which are right."""
    split = held_out(rows_of(name, options), seed)
    n_candidates: list[np.ndarray] = []
    learned: dict[str, Any] = {}

    class Watched(Ranker):
        def _held_out_part(self, *given: Any) -> Any:
            found = super()._held_out_part(*given)
            n_candidates.extend([] if found is None else [np.diff(found[0].ptr)])
            return found

    def learn(features: Any, hits: Any, **given: Any) -> Any:
        learned.update(features=features, hits=hits, run=given["run"])
        return second_look.learn_trees(features, hits, **given)

    with patch("labelwood.methods.ranker.learn_trees", learn):
        model = Watched(n_jobs=options.threads, random_state=seed).fit(split.train.X, split.train.Y.to_scipy())
    look, run, features, hits = model.second_look_, learned["run"], learned["features"], learned["hits"]
    described = look.describe(split.test.X, model._lists(split.test.X, run), run)
    for title, way in ways_to_learn(model, run).items():
        start = time.process_time()
        score = way(features, hits, np.concatenate(n_candidates))
        spent = time.process_time() - start
        top = best_of(described, np.asarray(score(described.features)))
        yield title, {**judged(split, top), "learn, CPU s": spent}


def ways_to_learn(model: Ranker, run: Any) -> dict[str, Callable[..., Callable[[Any], Any]]]:
    """For each way, what learns from features, hits and the numbers of candidates of rows, and returns what scores."""
    import lightgbm

    def trees(features: Any, hits: Any, n_candidates: Any) -> Callable[[Any], Any]:
        return second_look.learn_trees(features, hits, n_trees=model.n_boosted, run=run).sums

    def like_ours(hits: Any) -> dict[str, Any]:
        is_small = np.count_nonzero(hits) < second_look._FEW_HITS
        return {
            "n_estimators": model.n_boosted, "learning_rate": 0.05 if is_small else 0.1,
            "num_leaves": 8 if is_small else 31, "min_child_samples": 50, "reg_lambda": 10.0, "verbose": -1,
            "n_jobs": run.n_threads, "random_state": run.seed,
        }  # fmt: skip

    def logistic(features: Any, hits: Any, n_candidates: Any) -> Callable[[Any], Any]:
        fitted = lightgbm.LGBMClassifier(**like_ours(hits)).fit(features, hits)
        return lambda given: fitted.predict(given, raw_score=True)

    def lambdarank(features: Any, hits: Any, n_candidates: Any) -> Callable[[Any], Any]:
        return lightgbm.LGBMRanker(**like_ours(hits)).fit(features, hits, group=n_candidates).predict

    def linear(features: Any, hits: Any, n_candidates: Any) -> Callable[[Any], Any]:
        both = FunctionTransformer(lambda given: np.hstack([given, np.log(np.maximum(given, 1e-6))]))
        fitted = make_pipeline(both, StandardScaler(), LogisticRegression(max_iter=300)).fit(features, hits)
        return fitted.decision_function

    return {
        "the library's trees": trees, "LightGBM, logistic loss": logistic, "LightGBM, lambdarank": lambdarank,
        "logistic regression": linear,
    }  # fmt: skip


def best_of(described: Any, scores: np.ndarray) -> TopK:
    """The candidates of each row with the highest scores."""
    n_rows, k = len(described.ptr) - 1, max(KS)
    rows = np.repeat(np.arange(n_rows), np.diff(described.ptr))
    order = np.lexsort((described.labels, -scores, rows))
    places = np.arange(len(order)) - described.ptr[rows]
    first = places < k
    top = TopK(np.full((n_rows, k), -1, np.int32), np.zeros((n_rows, k), np.float32))
    top.labels[rows[first], places[first]] = described.labels[order[first]]
    top.scores[rows[first], places[first]] = scores[order[first]]
    return top


def unseen(name: str, seed: int, options: Options) -> Named:
    """Weights of labels without rows while the second look learns, and shares of labels that members do not see."""
    found = texts.held_out(texts.load_texts(options.data, name, options.extra.rows), seed)
    found = texts.hiding(found, options.extra.hide, seed) if options.extra.hide else found
    for hidden in options.extra.hidden:
        learned: dict[str, Any] = {}

        def learn(features: Any, hits: Any, *, into: dict[str, Any] = learned, **given: Any) -> Any:
            into.update(features=features, hits=hits, given=given)
            return second_look.learn_trees(features, hits, **given)

        settings = {**texts.settings_of("ranker", name), "hidden": hidden, "unseen": 0.5}
        ranker = Ranker(**settings, n_jobs=options.threads, random_state=seed)
        encoder = TfidfEncoder(**{"min_df": 2, **texts.ENCODERS.get(name, {})}, n_jobs=options.threads)
        whole = TextClassifier(ranker, encoder)
        with patch("labelwood.methods.ranker.learn_trees", learn):
            whole.fit(found.train, found.train_labels, label_texts=found.names)
        model = whole.classifier_
        has_name, counts = np.diff(model.second_look_.tables.name_ptr) > 0, model.label_counts_
        n_hidden, n_unseen = hidden * (has_name & (counts > 0)).sum(), (has_name & (counts == 0)).sum()
        rows = whole.encode(found.test)
        given = learned["given"]
        has_no_rows = given.pop("weights") < 1
        for weight in WEIGHTS:
            weights = np.where(has_no_rows, weight, 1).astype(np.float32)
            trees = second_look.learn_trees(learned["features"], learned["hits"], **given, weights=weights)
            model.second_look_ = replace(model.second_look_, trees=trees)
            title = f"hidden {hidden} ({n_hidden:.0f} labels, {n_unseen} without rows), unseen {weight}"
            yield title, texts.quality(found, whole, model.topk_ids(rows, 10))


def rows_of(name: str, options: Options) -> Split:
    """A data set, or a sample of its rows."""
    split = options.load(name)
    return split if options.extra.rows is None else thinned(split, options.extra.rows)


TRIALS: dict[str, Callable[[str, int, Options], Named]] = {
    "clustering": clustering, "negatives": negatives, "tail": tail, "stages": stages, "unseen": unseen
}  # fmt: skip


def main() -> None:
    """Run one trial on every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("trial", choices=TRIALS)
        parser.add_argument("--rows", type=int, help="rows of each set, instead of all")
        parser.add_argument("--hide", type=float, default=0.0, metavar="SHARE", help="of the labels, for unseen")
        parser.add_argument("--hidden", type=float, nargs="*", default=[0.1], help="parameter of Ranker, for unseen")

    options = parse(__doc__, sets=("eurlex57k", "yso_finna_en"), seeds=1, extra=extra)
    trial = options.extra.trial
    report = Report("ranker", trial, f"{trial}, held-out rows", options)
    for name in options.sets:
        by_way: dict[str, dict[str, list[float]]] = {}
        for seed in options.seeds:
            for way, found in TRIALS[trial](name, seed, options):
                print(f"{name}, seed {seed}, {way}: {found}", file=sys.stderr)
                for metric in (metric for metric in found if metric.startswith(SHOWN)):
                    by_way.setdefault(way, {}).setdefault(metric, []).append(found[metric])
        report.table(name, [{"way": way, **figures} for way, figures in by_way.items()])
    report.write()


if __name__ == "__main__":
    main()
