"""The wheel of Python 3.12 has the stable ABI: it is installed and used on 3.12 and 3.13; see ``make test-wheels``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USE = """
import sys, labelwood
from labelwood import _core
model = labelwood.LinearTree(n_jobs=1).fit([[1, 0], [0, 1]], [["a"], ["b"]])
assert model.predict_topk([[1, 0]], 1)[0].tolist() == [["a"]]
print(_core.__file__)
"""

wheels = pytest.mark.skipif("LABELWOOD_WHEELS" not in os.environ, reason="takes minutes; run it with make test-wheels")


def interpreter(version: str) -> str:
    """The path of an interpreter of this version on this machine."""
    installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    found = str(installed[-1]) if installed else shutil.which(f"python{version}")
    if found is None:
        pytest.skip(f"there is no Python {version} on this machine")
    return found


def run(*words: str | Path, **options) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(interpreter("3.12"), "-m", "venv", folder / "venv")
    pip = [folder / "venv/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "install", "--upgrade", "pip>=25.1", "abi3audit>=0.0.20")
    build = ["-C", f"build-dir={ROOT}/build/wheel312", "-C", "cmake.define.LABELWOOD_WERROR=ON"]
    run(*pip, "wheel", "--no-deps", "--wheel-dir", folder, *build, ROOT)
    (built,) = folder.glob("*.whl")
    run(folder / "venv/bin/abi3audit", "--strict", "--verbose", built)
    return built


@wheels
@pytest.mark.timeout(1800)
def test_the_name_and_the_content_say_stable_abi(wheel):
    assert "-cp312-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        modules = [name for name in archive.namelist() if name.endswith(".so")]
    assert modules == ["labelwood/_core.abi3.so"]


@wheels
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_the_wheel_of_3_12_is_used_on(version, wheel, tmp_path):
    run(interpreter(version), "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", wheel)
    assert "_core.abi3.so" in run(python, "-c", USE, cwd=tmp_path)
    assert "P@1" in run(tmp_path / "venv/bin/labelwood", "demo", cwd=tmp_path)


def test_free_threaded_python_is_refused_by_the_build(tmp_path):
    cmake = Path(sys.executable).with_name("cmake")
    if not cmake.exists():
        pytest.skip("cmake is not installed beside this Python")
    words = [cmake, "-S", ROOT, "-B", tmp_path, "-DLABELWOOD_GIL_DISABLED=1", f"-DPython_EXECUTABLE={sys.executable}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "does not support free-threaded Python" in " ".join(done.stderr.split())
