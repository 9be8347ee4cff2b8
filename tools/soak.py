"""Soak test: learn, suggest, save, load and swap models, and fail if memory grows (``make soak MINUTES=60``).

Everything runs in one process:

- An online tree learns texts. It is saved, loaded and replaced by its copy while threads ask for suggestions.
- A service's writer, with its log and snapshots, gets examples and swaps its model from time to time.

Each model is reset to its first state after a few hundred examples, so its size is bounded and any growth of
memory is a leak. The predictions of a saved and loaded model are compared with those of the live model.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
import tempfile
import threading
import time
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import labelwood
from labelwood import HashingEncoder, LinearTree, OnlineTree, TextClassifier
from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.messages import LearnRequest, SuggestRequest
from labelwood.serve.service import Service
from labelwood.serve.state.store import Store
from labelwood.serve.state.writer import Writer
from labelwood.serve.telemetry import Metrics

_WORDS = [f"word{number}" for number in range(400)]
# Memory is not sampled in this first share of the time, while caches and the allocator fill.
_WARM_SHARE = 0.4
_EXAMPLES_PER_LIFE = 300
_PAGE = os.sysconf("SC_PAGE_SIZE")


def text_of(random: Random) -> tuple[str, list[str]]:
    """Draw a text and its labels; the first word determines the labels."""
    words = random.choices(_WORDS, k=12)
    return " ".join(words), [f"label {_WORDS.index(words[0]) % 60}"]


def new_model() -> TextClassifier:
    """An online tree trained on 100 texts."""
    random = Random(0)
    texts, labels = zip(*(text_of(random) for _ in range(100)), strict=True)
    return TextClassifier(OnlineTree(n_jobs=1), HashingEncoder(n_features=2**12, n_jobs=1)).fit(
        list(texts), list(labels)
    )


class Soak:
    """The repeated operations, and a count of each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.random = folder, Random(1)
        self.model, self.still = new_model(), self._still()
        self.model.save(folder / "start")
        again = new_model()  # the writer takes up a model only if it differs from the one in use
        estimator_of(again).partial_fit(again.encode(["again"]), [["again"]])
        again.save(folder / "again")
        self.next_model = cycle([folder / "again", folder / "start"])
        self.counts = dict.fromkeys(("learned", "suggested", "saved", "loaded", "swapped", "served"), 0)
        self.ended = threading.Event()
        self.failed: list[BaseException] = []
        store = Store(folder / "state", model=folder / "start")
        self.writer = Writer(store, n_jobs=1, snapshot_seconds=2.0)
        self.service = Service(store.machine, Metrics(), self.writer)

    def _still(self) -> TextClassifier:
        texts, labels = zip(*(text_of(Random(number)) for number in range(200)), strict=True)
        return TextClassifier(LinearTree(n_jobs=2), HashingEncoder(n_features=2**12, n_jobs=1)).fit(
            list(texts), list(labels)
        )

    def round(self) -> None:
        """One cycle: the model learns, is saved, loaded, compared, swapped, and reset to its first state."""
        for number in range(_EXAMPLES_PER_LIFE):
            text, labels = text_of(self.random)
            estimator_of(self.model).partial_fit(self.model.encode([text]), [labels])
            self.counts["learned"] += 1
            if number % 50 == 0:
                self._save_and_swap()
        self.still.save(self.folder / "still")
        self.still = labelwood.load(self.folder / "still")  # type: ignore[assignment]
        self._serve()
        self.model = labelwood.load(self.folder / "start")  # type: ignore[assignment]

    def _save_and_swap(self) -> None:
        asked = [text_of(self.random)[0] for _ in range(5)]
        self.model.save(self.folder / "copy")
        copy: Any = labelwood.load(self.folder / "copy")
        for live, saved in zip(self.model.predict_topk(asked, 5), copy.predict_topk(asked, 5), strict=True):
            assert np.array_equal(live, saved), "the saved model predicts differently"
        self.model = copy
        for name in ("saved", "loaded", "swapped"):
            self.counts[name] += 1

    def _serve(self) -> None:
        for _ in range(40):
            text, labels = text_of(self.random)
            request = LearnRequest.model_validate({"examples": [{"text": text, "labels": labels}]})
            asyncio.run(self.service.learn(request, None))
            asyncio.run(self.service.suggest(SuggestRequest(text=text)))
            self.counts["served"] += 1
        self.writer.swap(next(self.next_model)).result(timeout=60)

    def suggest(self) -> None:
        """Ask both models for suggestions until the soak ends; runs in other threads."""
        random = Random(2)
        try:
            while not self.ended.is_set():
                for model in (self.model, self.still):
                    scores = model.predict_topk([text_of(random)[0] for _ in range(20)], 5)[1]
                    assert np.isfinite(scores).all()
                    self.counts["suggested"] += 20
        except BaseException as error:
            self.failed.append(error)


def resident_bytes() -> int:
    """The resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def main() -> int:
    """Run the soak and print a JSON report; return 1 if memory grew. A wrong prediction raises."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument(
        "--most-growth", type=float, default=16, help="largest growth of memory allowed after the warm-up, in MB"
    )
    options = parser.parse_args()
    samples: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder))
        readers = [threading.Thread(target=soak.suggest) for _ in range(2)]
        for reader in readers:
            reader.start()
        begun = time.monotonic()
        try:
            while (passed := time.monotonic() - begun) < 60 * options.minutes and not soak.failed:
                soak.round()
                gc.collect()
                if passed > _WARM_SHARE * 60 * options.minutes:
                    samples.append((passed, resident_bytes()))
        finally:
            soak.ended.set()
            for reader in readers:
                reader.join()
            soak.writer.close()
    if soak.failed:
        raise soak.failed[0]
    samples.append((time.monotonic() - begun, resident_bytes()))
    seconds, resident = np.array(samples, np.float64).T
    slope = float(np.polyfit(seconds, resident, 1)[0]) if len(samples) > 2 else 0.0
    grown = slope * float(seconds[-1] - seconds[0])
    report = {
        "minutes": round((time.monotonic() - begun) / 60, 2),
        **soak.counts,
        "resident_mb": round(float(resident[-1]) / 1e6, 1),
        "slope_mb_per_hour": round(slope * 3600 / 1e6, 2),
        "grown_mb": round(grown / 1e6, 2),
        "samples": len(samples),
    }
    print(json.dumps(report))
    return 0 if grown <= options.most_growth * 1e6 else 1


if __name__ == "__main__":
    sys.exit(main())
