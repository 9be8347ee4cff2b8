"""Fixtures of all tests: real data sets, generated data, and no time limit on hypothesis examples."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from injection import Faults, build_injector
from planted import Planted, make_planted

# Under sanitizers and on busy machines, a slow example is not a failure.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def real_data() -> Callable[[str], Path]:
    """A function that maps the name of a real data set to its folder; it skips the test if there is none."""

    def find(name: str) -> Path:
        folder = Path(os.environ.get("LABELWOOD_DATA", ROOT.parent / "shared" / "data")) / name
        if not folder.is_dir():
            pytest.skip(f"data set {name} is not in {folder.parent}; set LABELWOOD_DATA to the folder that has it")
        return folder

    return find


@pytest.fixture
def no_sanitizer() -> None:
    """Skip the test under a sanitizer, which uses memory of its own and changes the rounding of sums."""
    if "san.so" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("a sanitizer changes memory use and rounding")


@pytest.fixture(scope="session")
def injector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that lets system calls go wrong, for LD_PRELOAD."""
    return build_injector(tmp_path_factory.mktemp("inject"))


@pytest.fixture
def faults(injector: Path, tmp_path: Path) -> Faults:
    """Rules for processes that are started with ``faults.environment``."""
    return Faults(injector, tmp_path / "rules")


@pytest.fixture(scope="session")
def planted() -> Planted:
    return make_planted()


@pytest.fixture(scope="session")
def planted_test() -> Planted:
    return make_planted(n_rows=120, seed=1)


@pytest.fixture(scope="session")
def planted_of() -> Callable[..., Planted]:
    return make_planted
