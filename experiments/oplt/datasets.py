"""The real data sets, wherever they are: LABELWOOD_DATA, or ../shared/data beside the checkout."""

import os
from pathlib import Path

from labelwood.data import load


def load_part(name, part):
    """The training or the test part of a data set."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    return load(Path(os.environ.get("LABELWOOD_DATA", beside)) / name / f"{part}.txt.xz")


def load_pair(name):
    """Training and test part of a data set; both with the same columns."""
    return load_part(name, "train"), load_part(name, "test")
