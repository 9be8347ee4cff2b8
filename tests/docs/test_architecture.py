"""The pictures of the architecture page are true: layers, folders, includes and the way of a row."""

import re
import tomllib
from pathlib import Path

import pytest
from pages import ROOT, blocks

PACKAGE, CORE = ROOT / "src" / "labelwood", ROOT / "src" / "core"
PAGE = (ROOT / "docs" / "develop" / "architecture.md").read_text(encoding="utf-8")
if not CORE.is_dir():
    pytest.skip("the sources are not part of this checkout", allow_module_level=True)
HOUSE, WAYS = blocks(PAGE, "text")
PYTHON, CPP = HOUSE.split("------------------ the border")


def layers_of(picture: str) -> list[list[str]]:
    """The names of each layer, the highest first; a line is a number, names, and what they are for."""
    rows = re.findall(r"^ +\d +((?:[a-z_]+/?(?:  )?)+)", picture, flags=re.MULTILINE)
    return [row.split() for row in rows]


def folders_of(root: Path) -> set[str]:
    """Folders with sources, as paths from the root of the repository."""
    sources = (path for path in root.rglob("*") if path.suffix in {".py", ".hpp", ".cpp"})
    return {path.parent.relative_to(ROOT).as_posix() for path in sources} - {root.relative_to(ROOT).as_posix()}


def test_the_layers_are_those_of_the_import_contract():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    *layers, border = [re.findall(r"labelwood\.(\w+)", layer) for layer in contract["layers"]]
    assert border == ["_core"]
    assert [{name.rstrip("/") for name in layer} for layer in layers_of(PYTHON)] == list(map(set, layers))


def test_the_layers_name_what_is_on_disk():
    shown = {name for layer in layers_of(PYTHON) for name in layer}
    there = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    there |= {path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    assert shown == there
    assert {name for layer in layers_of(CPP) for name in layer} == {f"{path.name}/" for path in CORE.iterdir()}


def test_the_core_includes_downward():
    height = {name: row for row, layer in enumerate(reversed(layers_of(CPP))) for name in layer}  # the lowest first
    upward = [
        f"{path.relative_to(CORE)}: {target}"
        for path in CORE.rglob("*.?pp")
        for target in re.findall(r'^#include "([^"]+/[^"]+)"', path.read_text(), flags=re.MULTILINE)
        if (here := f"{path.relative_to(CORE).parts[0]}/") != (there := f"{target.split('/')[0]}/")
        and height[there] >= height[here]
    ]
    assert upward == []


def test_every_step_of_a_way_exists():
    steps = re.findall(r"^  ([\w/]+) ", WAYS, flags=re.MULTILINE)
    assert len(steps) == 18
    for step in steps:
        path = ROOT / "src" / step if step.startswith("core/") else PACKAGE / step
        assert path.with_suffix(".py").exists() or path.with_suffix(".hpp").exists(), step


def test_every_folder_has_its_line():
    named = set(re.findall(r"^\| `(src/[\w/]+)` \|", PAGE, flags=re.MULTILINE))
    assert named == folders_of(PACKAGE) | folders_of(CORE)


def test_no_folder_has_more_than_15_sources():
    for folder in folders_of(PACKAGE) | folders_of(CORE):
        sources = [path for path in (ROOT / folder).iterdir() if path.suffix in {".py", ".hpp", ".cpp"}]
        assert len(sources) <= 15, folder


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "develop").glob("*.md")), ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page):
    """Paths from the root of the repository, of the package, and names of headers."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headers = {path.name for path in CORE.rglob("*.?pp")}
    for name in re.findall(r"`([\w./-]+)`", text):
        if re.match(r"(src|tests|docs|experiments|benchmarks|tools|fuzz|notebook)/", name):
            assert (ROOT / name).exists(), name
        elif re.fullmatch(r"(\w+/)+\w+\.py", name):
            assert (PACKAGE / name).exists(), name
        elif re.fullmatch(r"\w+\.[hc]pp", name):
            assert name in headers, name
