"""What a ranker costs beside its members: training, model bytes, prediction in a batch and alone.

    python -m benchmarks.ranker eurlex57k
    python -m benchmarks.ranker yso_finna_en --rounds 3

The data set is a folder of experiments/ranker/texts.py with texts and names of labels; the ranker is the one of that
script, with one thread. Prints CPU seconds of the trainings, which leave encoding out, and the best CPU milliseconds
a row of the rounds: all test rows in one call, and 300 rows one by one.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from sklearn.base import clone

from experiments.common import ROOT, model_bytes
from experiments.ranker.texts import ENCODERS, load_texts, settings_of
from labelwood import Ranker, TfidfEncoder
from labelwood.validation.label_texts import LabelVectors, read_label_texts


def cpu_seconds(action) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, help="train on the first rows only")
    given = parser.parse_args()
    texts = load_texts(Path(os.environ.get("LABELWOOD_DATA", ROOT.parent / "shared" / "data")), given.data, given.rows)
    described = read_label_texts(texts.names, owner="ranker.py")
    encoder = TfidfEncoder(**{"min_df": 2, **ENCODERS.get(given.data, {})}, n_jobs=1)
    rows = encoder.fit_encode([*texts.train, *described.texts])
    X, names = rows.rows(0, len(texts.train)), rows.rows(len(texts.train), rows.n_rows)
    label_vectors = LabelVectors(described.labels, names)
    ranker = Ranker(**settings_of("ranker", given.data), n_jobs=1)
    trained = cpu_seconds(lambda: ranker.fit(X, texts.train_labels, label_vectors=label_vectors))
    alone = [clone(member) for member in ranker.members_]
    in_members = cpu_seconds(lambda: [one.fit(X, texts.train_labels, label_vectors=label_vectors) for one in alone])
    in_bytes = sum(map(model_bytes, alone))
    vectors = encoder.encode(texts.test)
    n_single = min(300, vectors.n_rows)
    singles = [vectors.rows(row, row + 1) for row in range(n_single)]
    batch = min(cpu_seconds(lambda: ranker.topk_ids(vectors, 10)) for _ in range(given.rounds)) / vectors.n_rows
    single = min(cpu_seconds(lambda: [ranker.topk_ids(row, 10) for row in singles]) for _ in range(given.rounds))
    print(f"training: {trained:.1f} s, members {in_members:.1f} s, ratio {trained / in_members:.2f}")
    own = model_bytes(ranker)
    print(f"model: {own / 1e6:.1f} MB, members {in_bytes / 1e6:.1f} MB, ratio {own / in_bytes:.2f}")
    print(f"prediction: {1e3 * batch:.3f} ms a row in a batch, {1e3 * single / n_single:.3f} ms alone")


if __name__ == "__main__":
    main()
