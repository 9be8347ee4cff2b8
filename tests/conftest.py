"""What all tests share: where real data are found, and that no test is a matter of time."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from planted import Planted, make_planted

# Sanitizers are slow and machines are shared: how long an example takes says nothing about it.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

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


@pytest.fixture
def unwatched() -> None:
    """Skips a test where a sanitizer decides it: memory is partly its own, sums are rounded in another order."""
    if "san.so" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("a sanitizer takes memory of its own and rounds otherwise")


@pytest.fixture(scope="session")
def planted() -> Planted:
    return make_planted()


@pytest.fixture(scope="session")
def planted_test() -> Planted:
    return make_planted(n_rows=120, seed=1)


@pytest.fixture(scope="session")
def planted_of() -> Callable[..., Planted]:
    return make_planted
