"""Label texts and the second look on the data sets with texts and names: LinearTree, with names, and the ranker.

    python -m experiments.ranker.texts --sets yso_finna_en
    python -m experiments.ranker.texts --sets eurlex57k --models linear-tree,ranker --held-out
    python -m experiments.ranker.texts --sets eurlex57k --models ranker+names --held-out --set folds=1
    python -m experiments.ranker.texts --sets tibkat --models ranker+names
    python -m experiments.ranker.texts --sets eurlex57k --models ranker+names --hide 0.1

A data set is a folder with texts of training and test rows: ``*.raw.txt.xz`` beside ``*.txt.xz`` and ``labels.txt``,
or ``*.jsonl.xz`` beside ``labels.tsv``. All models read the same tf-idf vectors, those of ``ENCODERS``. With --hide, a
share of the labels has no training row: the rows lose them. With --held-out, a tenth of the training rows replaces the
test rows: everything is chosen on these. --set changes a parameter of the model, --encode one of the encoder. F1@5 and
NDCG are those of ``annif eval``; ``R@10, unseen`` is the share of the true labels without a training row, but with a
name, that are among the first ten; ``P@1, seen`` is the precision of the best label that has training rows, in the rows
with such a label.
"""

from __future__ import annotations

import json
import lzma
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.common import KS, QUALITY, QUICK_ROWS, Options, find, kept, literal, model_bytes, parse
from experiments.report import Report
from experiments.settings import RANKED, key_with, parameters
from labelwood import METHODS, TextClassifier, TfidfEncoder, metrics
from labelwood.data import load
from labelwood.sparse import TopK

HELD_OUT = 0.1
ENCODERS: dict[str, dict[str, Any]] = {
    "tibkat": {"fields": {"title": 3.0, "abstract": 1.0}, "words": "stems", "language": "de", "min_df": 1}
}
TREES = {"method": "linear-tree", "n_trees": 3}
RANKERS: dict[str, dict[str, Any]] = {"tibkat": {"models": [TREES]}, "yso_finna_en": {"models": RANKED}}


@dataclass(frozen=True)
class Texts:
    """Texts and labels of a data set, and what its labels are called."""

    train: list[Any]
    train_labels: list[list[str]]
    test: list[Any]
    test_labels: list[list[str]]
    names: dict[str, list[str]]


class Settings(NamedTuple):
    """Parameters of a model and of its encoder."""

    model: dict[str, Any]
    encoder: dict[str, Any]


def lines_of(path: Path) -> list[str]:
    """The lines of a compressed file."""
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for line in file]


def read(folder: Path) -> Texts:
    """A folder of either shape."""
    if (folder / "labels.tsv").exists():
        rows = {
            part: [json.loads(line) for line in lines_of(folder / f"{part}.jsonl.xz")] for part in ("train", "test")
        }
        texts = {
            part: [{"title": row["title"], "abstract": row["abstract"]} for row in found]
            for part, found in rows.items()
        }
        labels = {part: [row["labels"] for row in found] for part, found in rows.items()}
        known = (folder / "labels.tsv").read_text(encoding="utf-8").splitlines()
        known += lines_of(folder / "vocab_extra.tsv.xz")
        names = {label: [text for text in cells[:2] if text] for label, *cells in (line.split("\t") for line in known)}
        return Texts(texts["train"], labels["train"], texts["test"], labels["test"], names)
    ids = [line.split(maxsplit=1) for line in (folder / "labels.txt").read_text(encoding="utf-8").splitlines()]
    parts = []
    for part in ("train", "test"):
        Y = load(folder / f"{part}.txt.xz", label_names=False).Y
        bounds, columns = Y.indptr.tolist(), Y.indices.tolist()
        parts += [
            lines_of(folder / f"{part}.raw.txt.xz"),
            [[ids[i][0] for i in columns[bounds[row] : bounds[row + 1]]] for row in range(Y.n_rows)],
        ]
    return Texts(*parts, {label: [name] for label, name in ids})


def held_out(texts: Texts, seed: int) -> Texts:
    """A tenth of the training rows in place of the test rows."""
    order = np.random.default_rng(seed).permutation(len(texts.train))
    cut = round(HELD_OUT * len(order))
    out, kept_rows = np.sort(order[:cut]).tolist(), np.sort(order[cut:]).tolist()
    return Texts(
        [texts.train[i] for i in kept_rows],
        [texts.train_labels[i] for i in kept_rows],
        [texts.train[i] for i in out],
        [texts.train_labels[i] for i in out],
        texts.names,
    )


def hiding(texts: Texts, share: float, seed: int) -> Texts:
    """Training rows that lose a share of the labels; rows without any label left are dropped."""
    random = np.random.default_rng([seed, 1])
    hidden = {label for label in sorted(texts.names) if random.random() < share}
    rows = [[label for label in row if label not in hidden] for row in texts.train_labels]
    kept_rows = [at for at, row in enumerate(rows) if row]
    train, labels = [texts.train[at] for at in kept_rows], [rows[at] for at in kept_rows]
    return Texts(train, labels, texts.test, texts.test_labels, texts.names)


def load_texts(data: Path, name: str, n_rows: int | None = None) -> Texts:
    """The texts of a folder below ``data``, or the first rows of them."""
    folder = find(data, name)
    if folder is None:
        raise SystemExit(f"{name}: no such folder below {data}; --data names another place")
    texts = read(folder)
    return texts if n_rows is None else thinned(texts, n_rows)


def thinned(texts: Texts, n_rows: int) -> Texts:
    """The first rows, for a quick run."""
    n_test = n_rows // 2
    return Texts(
        texts.train[:n_rows], texts.train_labels[:n_rows], texts.test[:n_test], texts.test_labels[:n_test], texts.names
    )


def one_run(
    texts: Texts, model: str, settings: Settings, *, with_names: bool, seed: int, threads: int
) -> dict[str, float]:
    """Quality and cost of one training; the encoder is not counted."""
    classifier = METHODS[model](**settings.model, n_jobs=threads, random_state=seed)
    whole = TextClassifier(classifier, TfidfEncoder(**{"min_df": 2, **settings.encoder}, n_jobs=threads))
    start = time.process_time()
    whole.fit(texts.train, texts.train_labels, label_texts=texts.names if with_names else None)
    fitted = time.process_time()
    vectors = whole.encode(texts.test)
    clock = time.process_time()
    top = whole.classifier_.topk_ids(vectors, 10)
    seconds = time.process_time() - clock
    alone = vectors.n_rows if vectors.n_rows < 300 else 300
    clock = time.process_time()
    for row in range(alone):
        whole.classifier_.topk_ids(vectors.rows(row, row + 1), 10)
    single = time.process_time() - clock
    return {
        **quality(texts, whole, top),
        "train, CPU s": fitted - start,
        "predict, ms": 1e3 * seconds / vectors.n_rows,
        "alone, ms": 1e3 * single / alone,
        "MB": model_bytes(whole.classifier_) / 1e6,
    }


def quality(texts: Texts, whole: TextClassifier, top: TopK) -> dict[str, float]:
    """The quality of the ten best labels of the test rows."""
    truth = whole.encode_labels(texts.test_labels)
    counts = np.zeros(truth.n_cols, np.int64)
    counts[: whole.classifier_.n_labels_] = whole.classifier_.label_counts_
    is_named = np.zeros(truth.n_cols, bool)
    is_named[[whole.label_names.index[label] for label in texts.names if label in whole.label_names.index]] = True
    found = metrics.evaluate(truth, top, KS)
    return {
        **{metric: 100 * found[metric] for metric in QUALITY},
        "F1@5": metrics.f1_at_k(truth, top, 5),
        "NDCG": metrics.ndcg_of_all_at_k(truth, top, 10),
        "P@1, seen": 100 * first_of(truth, top, counts > 0),
        "R@10, unseen": 100 * recall_of(truth, top, (counts == 0) & is_named),
        "R@10, 1 to 4 rows": 100 * recall_of(truth, top, (counts > 0) & (counts < 5)),
    }


def settings_of(model: str, name: str) -> dict[str, Any]:
    """The parameters of a model on a data set of texts."""
    return RANKERS.get(name, {}) if model == "ranker" else parameters(model, name)


def first_of(truth: Any, top: TopK, which: np.ndarray) -> float:
    """The share of the rows with a label of some labels whose best one among them is right."""
    wanted = truth.to_scipy()
    mine = np.append(which, False)[top.labels]
    first = np.where(mine.any(axis=1), np.take_along_axis(top.labels, mine.argmax(axis=1)[:, None], 1)[:, 0], 0)
    has = np.asarray(wanted @ which.astype(np.float32)) > 0
    right = np.asarray(wanted[np.arange(truth.n_rows), first]).ravel() > 0
    return float((right & mine.any(axis=1))[has].mean())


def recall_of(truth: Any, top: TopK, which: np.ndarray) -> float:
    """The share of the assignments of some labels that are in the lists."""
    rows = np.repeat(np.arange(truth.n_rows), np.diff(truth.indptr))
    wanted = which[truth.indices]
    pairs = rows[wanted] * truth.n_cols + truth.indices[wanted]
    listed = (np.arange(truth.n_rows)[:, None] * truth.n_cols + top.labels)[top.labels >= 0]
    return float(np.isin(pairs, listed).mean()) if len(pairs) else 0.0


def runs(name: str, texts: Texts, model: str, options: Options, *, with_names: bool) -> Any:
    """The figures of one model, stored by seed."""
    extra = options.extra
    settings = Settings(
        {**settings_of(model, name), **dict(extra.set)}, {**ENCODERS.get(name, {}), **dict(extra.encode)}
    )
    key = {**key_with(model, name, options, **settings.model), "names": with_names}
    key |= {"method": f"{model}-texts", "encoder": settings.encoder}
    if extra.hide:
        key["hidden"] = extra.hide
    if extra.held_out:
        key["held out of"] = len(texts.train)

    def one(seed: int) -> dict[str, float]:
        rows = held_out(texts, seed) if extra.held_out else texts
        rows = hiding(rows, extra.hide, seed) if extra.hide else rows
        return one_run(rows, model, settings, with_names=with_names, seed=seed, threads=options.threads)

    return kept(options, key, one)


def main() -> None:
    """Run every set."""

    def extra(parser: Any) -> None:
        parser.add_argument("--models", default="linear-tree,linear-tree+names,ranker,ranker+names")
        parser.add_argument("--held-out", action="store_true")
        parser.add_argument("--set", action="append", default=[], type=literal, metavar="NAME=VALUE")
        parser.add_argument("--encode", action="append", default=[], type=literal, metavar="NAME=VALUE")
        parser.add_argument("--hide", type=float, default=0.0, metavar="SHARE")

    options = parse(__doc__, sets=("yso_finna_en", "eurlex57k", "tibkat"), extra=extra)
    report = Report("ranker", "texts", "Label texts and the second look", options)
    for name in options.sets:
        texts = load_texts(options.data, name, QUICK_ROWS if options.quick else None)
        rows = []
        for entry in options.extra.models.split(","):
            model, _, names = entry.partition("+")
            found = runs(name, texts, model, options, with_names=bool(names))
            rows.append({"model": model, "names": "yes" if names else "no", **found})
        report.table(name + ", held-out rows" * options.extra.held_out, rows)
    report.write()


if __name__ == "__main__":
    main()
