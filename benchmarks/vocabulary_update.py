"""`labelwood vocabulary update` of one name in a large model: seconds, and the bytes that are written.

    python benchmarks/vocabulary_update.py [--labels 500000] [--rounds 3]

A LinearTree learns one row per label; its vocabulary is a CSV file with a name and a broader concept for each label.
The newer vocabulary has one other name: once as a file with all concepts, once as a file with the changed concept
only, for --only-changes. The files of the classifiers are linked, not written, so that the time does not depend on
them; reading the CSV file is shown apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

from labelwood import LinearTree
from labelwood.sparse import CSR
from labelwood.vocabulary import Vocabulary, read_vocabulary
from labelwood.vocabulary.update import update_model

FEATURES, ENTRIES = 20_000, 4
RENAMED = 1


def uri(label: int) -> str:
    return f"http://example.org/{label}"


def write_vocabulary(path: Path, labels: Iterable[int], name: Callable[[int], str]) -> Path:
    with path.open("w", encoding="utf-8") as out:
        out.write("uri,label_en,broader\n")
        out.writelines(f"{uri(label)},{name(label)},{uri(label // 10) if label else ''}\n" for label in labels)
    return path


def first_name(label: int) -> str:
    return f"concept {label}"


def newer_name(label: int, number: int) -> str:
    """One label has another name, of another length in every round."""
    return "x" * (number + 1) if label == RENAMED else first_name(label)


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
        first = read_vocabulary(write_vocabulary(Path(place, "first.csv"), range(given.labels), first_name)).vocabulary
        train(model, first, given.labels)
        size = sum(file.stat().st_size for file in model.iterdir())
        print(f"{given.labels:,} labels, {size / 1e6:.1f} MB")
        for only_changes in (False, True):
            labels = [RENAMED] if only_changes else range(given.labels)
            read, update, written = [], [], 0
            for number in range(given.rounds):
                name = partial(newer_name, number=2 * number + only_changes)
                file = write_vocabulary(Path(place, "new.csv"), labels, name)
                before = {one.stat().st_ino for one in model.iterdir()}
                start = time.process_time()
                newer = read_vocabulary(file).vocabulary
                middle = time.process_time()
                changes = update_model(model, newer, only_changes=only_changes)
                update.append(time.process_time() - middle)
                read.append(middle - start)
                assert changes.renamed == [uri(RENAMED)], changes
                written = sum(one.stat().st_size for one in model.iterdir() if one.stat().st_ino not in before)
            print(
                f"{'only the change' if only_changes else 'all concepts':16} reading {min(read):.3f} CPU s, "
                f"update {min(update):.3f} CPU s, {written / 1e6:.1f} MB written"
            )


if __name__ == "__main__":
    main()
