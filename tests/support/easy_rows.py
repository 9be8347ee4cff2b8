"""A small data file of vectors that every method learns."""

from pathlib import Path

import numpy as np

N_ROWS, N_FEATURES, N_LABELS = 120, 30, 8


def write_data(path: Path, *, n_rows: int = N_ROWS, seed: int = 0) -> Path:
    """An easy data set: label l comes with features 3l, 3l+1 and 3l+2; a row has one or two labels."""
    random = np.random.default_rng(seed)
    lines = [f"{n_rows} {N_FEATURES} {N_LABELS}"]
    for row in range(n_rows):
        labels = sorted({row % N_LABELS, *random.integers(0, N_LABELS, row % 2).tolist()})
        features = sorted({3 * label + offset for label in labels for offset in range(3)} | {N_FEATURES - 1 - row % 4})
        values = " ".join(f"{feature}:{random.uniform(0.5, 1.5):.3f}" for feature in features)
        lines.append(f"{','.join(map(str, labels))} {values}")
    path.write_text("\n".join(lines) + "\n")
    return path
