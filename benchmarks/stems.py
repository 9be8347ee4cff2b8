"""The encoder with stems against scikit-learn's vectorizer with PyStemmer in its analyser, on one thread.

    python benchmarks/stems.py [--texts FILE] [--rows 100000] [--language fi] [--rounds 5]

FILE holds JSON lines with texts; by default the Finnish titles of LABELWOOD_DATA. The matrices must be the same. Rounds
are interleaved; CPU seconds of fit_transform, the least of the rounds.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import Stemmer
from sklearn.feature_extraction.text import TfidfVectorizer

from labelwood.data import load_text
from labelwood.text import TfidfEncoder
from labelwood.text.words import SNOWBALL


def analyser(language: str) -> Any:
    stemmer = Stemmer.Stemmer(SNOWBALL[language])
    tokenize = TfidfVectorizer().build_tokenizer()
    return lambda text: stemmer.stemWords(tokenize(text.lower()))


def timed(encoder: Any, texts: list[Any]) -> tuple[float, Any]:
    start = time.process_time()
    rows = encoder.fit_transform(texts)
    return time.process_time() - start, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(os.environ.get("LABELWOOD_DATA", "../shared/data"), "yso_finna_fi_full", "train.jsonl.xz")
    parser.add_argument("--texts", type=Path, default=beside)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--language", default="fi")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    texts = load_text(given.texts, needs_labels=False, max_memory=2**32).texts[: given.rows]
    common = {"sublinear_tf": True, "min_df": 2}
    seconds: dict[str, list[float]] = {"labelwood": [], "scikit-learn": [], "labelwood, words": []}
    for _ in range(given.rounds):
        spent, ours = timed(TfidfEncoder(words="stems", language=given.language, n_jobs=1, **common), texts)
        seconds["labelwood"].append(spent)
        spent, theirs = timed(TfidfVectorizer(analyzer=analyser(given.language), **common), texts)
        seconds["scikit-learn"].append(spent)
        seconds["labelwood, words"].append(timed(TfidfEncoder(n_jobs=1, **common), texts)[0])
        theirs.sort_indices()
        assert np.array_equal(ours.indptr, theirs.indptr)
        assert np.array_equal(ours.indices, theirs.indices)
        np.testing.assert_allclose(ours.data, theirs.data, rtol=1e-5)
    least = {name: min(all_rounds) for name, all_rounds in seconds.items()}
    for name, spent in least.items():
        print(f"{name:20} {spent:8.2f} s  {1e6 * spent / len(texts):8.1f} us per text")
    times = least["scikit-learn"] / least["labelwood"]
    print(f"{len(texts):,} texts, {ours.shape[1]:,} stems, the same matrix; {times:.1f} times as fast")


if __name__ == "__main__":
    main()
