"""The rows of the experiment: a part of each data set, drawn by a fixed seed, and the texts that are encoded.

``--share 0.2`` takes a fifth of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.ranker.texts import Texts, read

SETS = {"yso_finna_en": (40_000, 6_000), "tibkat": (10_000, 2_000)}  # rows of training and of testing
LONGEST = 160  # characters of a text that are encoded: all of most titles, the beginning of an abstract


def add_share(parser: Any) -> None:
    """Add the flag for the share of the rows."""
    parser.add_argument("--share", type=float, default=1.0, help="share of the rows")


def counts(name: str, share: float) -> tuple[int, int]:
    """Rows of training and of testing."""
    n_train, n_test = SETS[name]
    return round(share * n_train), round(share * n_test)


def drawn(folder: Path, share: float = 1.0) -> Texts:
    """The drawn rows of a data set, in the order of the files."""
    whole, (n_train, n_test) = read(folder), counts(folder.name, share)
    train, test = _drawn(len(whole.train), n_train), _drawn(len(whole.test), n_test)
    return Texts(
        _of(whole.train, train),
        _of(whole.train_labels, train),
        _of(whole.test, test),
        _of(whole.test_labels, test),
        whole.names,
    )


def encoded_texts(texts: Sequence[Any]) -> list[str]:
    """What the encoder reads of texts and records."""
    plain = [text if isinstance(text, str) else f"{text['title']}. {text['abstract'] or ''}" for text in texts]
    return [text[:LONGEST] for text in plain]


def _drawn(n_rows: int, count: int) -> list[int]:
    rows: list[int] = np.sort(np.random.default_rng(0).permutation(n_rows)[:count]).tolist()
    return rows


def _of(values: list[Any], rows: list[int]) -> list[Any]:
    return [values[row] for row in rows]
