"""Words, vectors, or both, by LinearTree and by the ranker: P@1, P@3, P@5 on test rows.

    build/embeddings/bin/python -m experiments.vectors.encode  # makes the vectors, once
    python -m experiments.vectors.table --seeds 1

Words are tf-idf vectors of terms in at least two texts; vectors are MiniLM-L6 sentence embeddings as they come. The
weight of the vectors beside the words is chosen by ``vector_weight="auto"``: on held-out training rows, by single
trees. The ranker's member is the same LinearTree, with the weight that LinearTree chose.
"""

from __future__ import annotations

import time
from typing import Any

from experiments.common import KS, QUALITY, Options, find, kept, model_bytes, parse
from experiments.ranker.texts import Texts
from experiments.report import Report
from experiments.vectors.encode import vector_file
from experiments.vectors.rows import SETS, add_share, counts, drawn
from labelwood import Embedded, LinearTree, Ranker, TfidfEncoder, TreeEstimator, VectorEncoder, data, metrics
from labelwood.hybrid import Hybrid, without_words
from labelwood.sparse import CSR

FIELDS: dict[str, dict[str, float]] = {"tibkat": {"title": 3.0, "abstract": 1.0}}
N_TREES = 3
INPUTS = ("words", "vectors", "both")
QUICK_ROWS = 1000


def encoded(name: str, texts: Texts, *, quick: bool) -> tuple[Hybrid, Hybrid]:
    """Training and test rows with words and vectors."""
    stop = QUICK_ROWS if quick else None
    encoder = VectorEncoder(word_encoder=TfidfEncoder(min_df=2, fields=FIELDS.get(name)))
    parts = {"train": texts.train, "test": texts.test}
    train, test = (data.load_vectors(vector_file(name, part, len(own))) for part, own in parts.items())
    rows = encoder.fit_encode(Embedded(texts.train, train)[:stop]), encoder.encode(Embedded(texts.test, test)[:stop])
    assert isinstance(rows[0], Hybrid)
    assert isinstance(rows[1], Hybrid)
    return rows


def part_of(rows: Hybrid, given: str) -> CSR:
    """The words, the vectors, or both."""
    return {"words": rows.sparse, "vectors": without_words(rows.vectors), "both": rows}[given]


def one_run(model: TreeEstimator, rows: tuple[Hybrid, Hybrid], texts: Texts, given: str) -> dict[str, float]:
    """Quality and cost of one training."""
    train, test = (part_of(each, given) for each in rows)
    start = time.process_time()
    model.fit(train, texts.train_labels[: train.n_rows])
    fitted = time.process_time()
    top, truth = model.topk_ids(test, max(KS)), model.encode_labels(texts.test_labels[: test.n_rows])
    predicted = time.process_time()
    found = metrics.evaluate(truth, top, KS)
    weight = {"vector weight": model.vector_weight_} if isinstance(model, LinearTree) else {}
    return {
        **{metric: 100 * found[metric] for metric in QUALITY},
        **weight,
        "train, CPU s": fitted - start,
        "predict, ms": 1e3 * (predicted - fitted) / test.n_rows,
        "MB": model_bytes(model) / 1e6,
    }


def rows_of(name: str, options: Options) -> list[dict[str, Any]]:
    """The rows of the table of one data set."""
    folder = find(options.data, name)
    if folder is None:
        raise SystemExit(f"{name}: no such folder below {options.data}; --data names another place")
    texts = drawn(folder, options.extra.share)
    rows = encoded(name, texts, quick=options.quick)
    found = []
    for given in options.extra.inputs.split(","):
        common = {"n_jobs": options.threads}

        def tree(seed: int, given: str = given, common: dict[str, Any] = common) -> dict[str, float]:
            model = LinearTree(n_trees=N_TREES, vector_weight="auto", random_state=seed, **common)
            return one_run(model, rows, texts, given)

        key = {"data": name, "rows": rows[0].n_rows, "test": rows[1].n_rows, "given": given, "trees": N_TREES}
        trees = kept(options, {**key, "method": "linear-tree-vectors"}, tree)
        weights = dict(zip(options.seeds, trees["vector weight"], strict=True))

        def ranker(
            seed: int, given: str = given, common: dict[str, Any] = common, weights: dict[int, float] = weights
        ) -> dict[str, float]:
            member = {"method": "linear-tree", "n_trees": N_TREES, "vector_weight": weights[seed]}
            return one_run(Ranker([member], random_state=seed, **common), rows, texts, given)

        ranked = kept(options, {**key, "method": "ranker-vectors"}, ranker)
        found.append({"model": "LinearTree", "input": given, **trees})
        found.append({"model": "Ranker", "input": given, **ranked, "vector weight": trees["vector weight"]})
    return sorted(found, key=lambda row: row["model"])


def main() -> None:
    """Run every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--inputs", default=",".join(INPUTS), help="inputs to learn from")
        add_share(parser)

    options = parse(__doc__, sets=tuple(SETS), seeds=1, extra=extra)
    report = Report("vectors", "table", "Words, vectors, or both", options)
    for name in options.sets:
        n_train, n_test = counts(name, options.extra.share)
        rows = rows_of(name, options)
        report.table(f"{name}, {n_train:,} training rows and {n_test:,} test rows", rows)
    report.write()


if __name__ == "__main__":
    main()
