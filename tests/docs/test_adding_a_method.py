"""The page on adding a method works to the letter: a copy of the repository gets its blocks and runs its tests."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from pages import ROOT

import labelwood

PAGE = ROOT / "docs" / "develop" / "adding-a-method.md"
NAME, FILE = "frequency-tree", "src/labelwood/methods/label_tree/frequency_tree.py"
COPIED = ("src", "tests", "docs", "notebook", "experiments")
CLI = "import sys; from labelwood.cli import main; sys.exit(main(sys.argv[1:]))"
if not (ROOT / "experiments").is_dir():
    pytest.skip("experiments are not part of this checkout", allow_module_level=True)


def write_new_files(text: str, folder: Path) -> list[str]:
    """Write the blocks that name a file."""
    found = re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', text, flags=re.MULTILINE | re.DOTALL)
    for path, content in found:
        (folder / path).write_text(content, encoding="utf-8")
    return [path for path, _ in found]


def apply_changes(text: str, folder: Path) -> int:
    """Apply the blocks of kind diff: context lines open with a space, new lines with a plus."""
    found = re.findall(r"^```diff\n--- (\S+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    for path, change in found:
        lines = change.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line.startswith(" "))
        after = "".join(line[1:] for line in lines)
        content = (folder / path).read_text(encoding="utf-8")
        assert content.count(before) == 1, f"{path}: the context of the change must occur once:\n{change}"
        (folder / path).write_text(content.replace(before, after), encoding="utf-8")
    return len(found)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A copy of the repository with the method of the page, and a small data file."""
    folder = tmp_path_factory.mktemp("scratch")
    for part in COPIED:  # the core as well, because test_house.py counts its files
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyi"))
    for compiled in Path(labelwood.__file__).parent.glob("_core*"):
        shutil.copy(compiled, folder / "src" / "labelwood")
    for name in ("pyproject.toml", "mkdocs.yml", "README.md"):
        shutil.copy(ROOT / name, folder)
    text = PAGE.read_text(encoding="utf-8")
    assert FILE in write_new_files(text, folder)
    assert apply_changes(text, folder) >= 5
    for part in ("train", "test"):
        rows = "".join(f"{n % 6} {n % 6}:1 {6 + n % 5}:0.5\n" for n in range(120))
        (folder / "data").mkdir(exist_ok=True)
        (folder / "data" / f"{part}.txt").write_text(f"120 11 6\n{rows}")
    return folder


def run(scratch, *words, **environment):
    """Run Python in the copy, whose package comes before the installed one."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=scratch,
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(scratch / "src"), **environment},
    )


def test_the_tests_of_every_method_pass_for_it(scratch):
    made = run(scratch, "tests/golden/make.py")
    assert made.returncode == 0, made.stderr
    folders = ("methods", "golden", "explain", "viz", "resources", "estimator", "threads", "cli", "faults")
    done = run(scratch, "-m", "pytest", "-q", "-p", "no:xdist", "-k", NAME, *(f"tests/{folder}" for folder in folders))
    assert done.returncode == 0, done.stdout[-5000:]
    assert f"{ROOT}/src" not in done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 60, done.stdout[-500:]


def test_the_tests_of_the_whole_pass_with_it(scratch):
    """Tests that look at all methods, names or pages at once."""
    files = (
        "test_house.py",
        "docs/test_names.py",
        "docs/test_method_pages.py",
        "tuning",
        "cli/test_tune.py",
        "experiments",
    )
    done = run(scratch, "-m", "pytest", "-q", "-p", "no:xdist", *(f"tests/{file}" for file in files))
    assert done.returncode == 0, done.stdout[-5000:]


def test_its_example_and_its_page_pass(scratch):
    words = ("tests/docs/test_pages.py", "-k", "navigation or (links and frequency_tree)")
    for more in (("--doctest-modules", FILE), words):
        done = run(scratch, "-m", "pytest", "-q", "-p", "no:xdist", *more)
        assert done.returncode == 0, done.stdout[-5000:]


def test_the_golden_models_that_were_there_are_kept(scratch):
    kept = ROOT / "tests" / "golden" / "format1"
    for path in kept.rglob("*.npy"):
        assert (scratch / path.relative_to(ROOT)).read_bytes() == path.read_bytes()


def test_the_command_line_knows_it(scratch):
    assert NAME in json.loads(run(scratch, "-c", CLI, "methods", "--json").stdout)
    trained = run(scratch, "-c", CLI, "train", "data/train.txt", "-o", "model", "--method", NAME, "--group-size", 2)
    assert trained.returncode == 0, trained.stderr
    assert json.loads(run(scratch, "-c", CLI, "info", "model", "--json").stdout)["method"] == NAME
    tuned = run(scratch, "-c", CLI, "tune", "data/train.txt", "--budget", "10s", "--json")
    assert tuned.returncode == 0, tuned.stderr
    assert NAME in {trial["method"] for trial in json.loads(tuned.stdout)["trials"]}


def test_the_experiments_know_it(scratch):
    words = ("experiments.measure", NAME, "--sets", "data", "--data", ".", "--seeds", 2)
    done = run(scratch, "-m", *words)
    assert done.returncode == 0, done.stderr
    [row] = json.loads((scratch / f"out/experiments/measure/{NAME}.json").read_text())["tables"][0]["rows"]
    assert row["P@1"] == [100.0, 100.0]


CHANGED = (FILE, "src/labelwood/__init__.py", "src/labelwood/methods/registry.py", "src/labelwood/tuning")


@pytest.mark.parametrize(
    "words",
    [
        ("ruff", "format", "--check", *CHANGED),
        ("ruff", "check", *CHANGED),
        ("mypy", "--follow-imports=silent", FILE),
        ("lint-imports",),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_it_passes_the_checks(scratch, words):
    tool = Path(sysconfig.get_path("scripts")) / words[0]
    if not tool.exists():
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run(
        [str(tool), *words[1:]],
        cwd=scratch,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(scratch / "src")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
