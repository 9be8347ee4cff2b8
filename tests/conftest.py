"""What all tests share: where real data are found."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def real_data() -> Callable[[str], Path]:
    """A function from the name of a real data set to its directory; skips the test where it is absent."""

    def find(name: str) -> Path:
        folder = Path(os.environ.get("LABELWOOD_DATA", ROOT.parent / "shared" / "data")) / name
        if not folder.is_dir():
            pytest.skip(f"real data set {name} is absent; LABELWOOD_DATA names the folder that holds it")
        return folder

    return find
