"""The work whose instructions are counted, on small generated data; run by count.py under callgrind.

    python work.py COUNTING.so

Each task runs once before it is counted, so that imports, caches and lazy arrays are not part of it.
"""

from __future__ import annotations

import ctypes
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import labelwood
from labelwood import LinearTree, OnlineTree, TfidfEncoder
from labelwood.data.synth import Shape, synth


def tasks(folder: Path) -> dict[str, Callable[[], object]]:
    """Name to work; every call does the same."""
    made = synth(Shape(n_rows=1500, n_labels=200, n_features=2000, branching=4, levels=2), seed=0)
    X, Y = made.X.to_scipy(), made.Y.to_scipy()
    model = LinearTree(n_jobs=1, max_leaf=20).fit(X, Y)
    model.save(folder / "model")
    singles = [X[row : row + 1] for row in range(20)]
    draw = random.Random(0)
    words = [f"word{number}" for number in range(3000)]
    texts = [" ".join(draw.choices(words, k=60)) for _ in range(300)]

    def single() -> None:
        for row in singles:
            model.predict_topk(row, 5)

    def load() -> None:
        for _ in range(3):
            labelwood.load(folder / "model").predict_topk(singles[0], 5)

    return {
        "train": lambda: LinearTree(n_jobs=1, max_leaf=20).fit(X, Y),
        "batch": lambda: model.predict_topk(X, 5),
        "single": single,
        "load": load,
        "encode": lambda: TfidfEncoder(n_jobs=1).fit_encode(texts),
        "learn": lambda: OnlineTree(n_jobs=1).partial_fit(X[:300], Y[:300]),
    }


def main() -> None:
    """Count every task between begin and end."""
    counting = ctypes.CDLL(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        for name, work in tasks(Path(folder)).items():
            work()
            counting.begin()
            work()
            counting.end(name.encode())


if __name__ == "__main__":
    main()
