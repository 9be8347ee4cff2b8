"""One training on texts in a process of its own, for its peak memory: prints quality and cost as JSON.

python -m experiments.texts.training FOLDER '{"encoder": {"words": "stems", "language": "fi"}}' --seed 0 [--held-out]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import KS, QUALITY
from labelwood import METHODS, TextClassifier, TfidfEncoder, metrics
from labelwood.data import load_text
from labelwood.resources.memory import peak_resident

HELD_OUT = 0.1
TEXT = {"tibkat": ("title", "abstract")}  # other sets have one column, text


def read(folder: Path, part: str, *, fields: bool, n_rows: int | None) -> tuple[list[Any], list[Any]]:
    """The texts and the labels of a part of a data set."""
    found = load_text(folder / f"{part}.jsonl.xz", text=TEXT.get(folder.name), fields=fields, max_memory=2**32)
    return found.texts[:n_rows], (found.labels or [])[:n_rows]


def one_training(folder: Path, setting: dict[str, Any], *, seed: int, held_out: bool, threads: int) -> dict[str, float]:
    """Quality, CPU seconds and memory of a model trained on all rows, or on all but the held-out ones."""
    own = {
        name: tuple(value) if isinstance(value, list) else value for name, value in setting.get("encoder", {}).items()
    }
    encoder = TfidfEncoder(**{"min_df": 2, "n_jobs": threads, **own})
    n_rows = setting.get("rows")
    texts, labels = read(folder, "train", fields=encoder.fields is not None, n_rows=n_rows)
    if held_out:
        order = np.random.default_rng(seed).permutation(len(texts))
        cut = round(HELD_OUT * len(order))
        out, kept = np.sort(order[:cut]).tolist(), np.sort(order[cut:]).tolist()
        test, test_labels = [texts[i] for i in out], [labels[i] for i in out]
        texts, labels = [texts[i] for i in kept], [labels[i] for i in kept]
    else:
        test, test_labels = read(folder, "test", fields=encoder.fields is not None, n_rows=n_rows)
    classifier = METHODS[setting.get("method", "linear-tree")](
        **{"n_jobs": threads, "random_state": seed, **setting.get("classifier", {})}
    )
    clock = time.process_time()
    vectors = encoder.fit_encode(texts)
    encoded = time.process_time()
    classifier.fit(vectors, labels)
    fitted = time.process_time()
    model = TextClassifier.of(encoder, classifier)
    top, truth = model.topk_ids(test, 10), model.encode_labels(test_labels)
    found = metrics.evaluate(truth, top, KS)
    return {
        **{metric: 100 * found[metric] for metric in QUALITY},
        "F1@5": metrics.f1_at_k(truth, top, 5),
        "NDCG": metrics.ndcg_of_all_at_k(truth, top, 10),
        "encode, CPU s": encoded - clock,
        "train, CPU s": fitted - encoded,
        "features": float(vectors.n_cols),
        "MB": sum(array.nbytes for array in model.to_saved()[1].values()) / 1e6,
        "peak, MB": (peak_resident() or 0) / 1e6,
    }


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("setting", type=json.loads)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    print(
        json.dumps(
            one_training(given.folder, given.setting, seed=given.seed, held_out=given.held_out, threads=given.threads)
        )
    )


if __name__ == "__main__":
    main()
