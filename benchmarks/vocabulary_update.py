"""`labelwood vocabulary update` of one name in a large model: seconds, and the bytes that are written.

    python benchmarks/vocabulary_update.py [--labels 500000] [--rounds 3]

A LinearTree learns one row per label; its vocabulary is a CSV file with a name and a broader concept for each label.
The newer vocabulary has one other name. The files of the classifiers are linked, not written, so that the time
depends on the vocabulary and not on the model; reading the CSV file is shown apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from labelwood import LinearTree
from labelwood.sparse import CSR
from labelwood.vocabulary import Vocabulary, read_vocabulary
from labelwood.vocabulary.update import update_model

FEATURES, ENTRIES = 20_000, 4


def uri(label: int) -> str:
    return f"http://example.org/{label}"


def write_vocabulary(path: Path, n_labels: int, renamed: int | None) -> Path:
    with path.open("w", encoding="utf-8") as out:
        out.write("uri,label_en,broader\n")
        for label in range(n_labels):
            name = "another name" if label == renamed else f"concept {label}"
            out.write(f"{uri(label)},{name},{uri(label // 10) if label else ''}\n")
    return path


def train(path: Path, vocabulary: Vocabulary, n_labels: int) -> None:
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(FEATURES, size=(n_labels, ENTRIES), dtype=np.int32))
    columns += np.arange(ENTRIES, dtype=np.int32)  # the columns of a row differ
    indptr = np.arange(0, n_labels * ENTRIES + 1, ENTRIES, dtype=np.int64)
    rows = CSR(indptr, columns.ravel(), np.ones(n_labels * ENTRIES, np.float32), FEATURES + ENTRIES)
    model = LinearTree(n_jobs=1, max_passes=2, cluster_rounds=2)
    model.fit(rows, [[uri(label)] for label in range(n_labels)], vocabulary=vocabulary)
    model.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        model = Path(place, "model")
        first = read_vocabulary(write_vocabulary(Path(place, "first.csv"), given.labels, None)).vocabulary
        train(model, first, given.labels)
        size = sum(file.stat().st_size for file in model.iterdir())
        seconds: dict[str, list[float]] = {"read the vocabulary": [], "update the model": []}
        for number in range(given.rounds):
            file = write_vocabulary(Path(place, "new.csv"), given.labels, number)
            before = {one.stat().st_ino for one in model.iterdir()}
            start = time.process_time()
            newer = read_vocabulary(file).vocabulary
            read = time.process_time()
            changes = update_model(model, newer)
            end = time.process_time()
            seconds["read the vocabulary"].append(read - start)
            seconds["update the model"].append(end - read)
            assert uri(number) in changes.renamed, changes
            assert len(changes.renamed) <= 2, changes
            written = sum(one.stat().st_size for one in model.iterdir() if one.stat().st_ino not in before)
        for name, rounds in seconds.items():
            print(f"{name:20} {min(rounds):8.2f} CPU s")
        print(f"{given.labels:,} labels: {written / 1e6:.1f} of {size / 1e6:.1f} MB written")


if __name__ == "__main__":
    main()
