"""Names in docstrings are names of the code: modules and classes of the package, headers of the core."""

import importlib
import re

import pytest
from pages import ROOT

SOURCES = sorted([*(ROOT / "src" / "labelwood").rglob("*.py"), *(ROOT / "tests" / "reference").glob("*.py")])
if not (ROOT / "src" / "core").is_dir():
    pytest.skip("the sources are not part of this checkout", allow_module_level=True)
HEADERS = {path.name for path in (ROOT / "src" / "core").rglob("*.?pp")}


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    module, attributes = name.split("."), []
    while module:
        try:
            found = importlib.import_module(".".join(module))
        except ModuleNotFoundError:
            attributes.insert(0, module.pop())
            continue
        for attribute in attributes:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def test_names_of_the_package_in_docstrings_exist():
    named = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in SOURCES
        for pair in re.findall(r":\w+:`~?(labelwood[\w.]*)`|``(labelwood\.[\w.]+)``", path.read_text("utf-8"))
        for name in pair
        if name
    }
    assert len(named) > 10
    assert [pair for pair in sorted(named) if not exists(pair[1])] == []


def test_headers_in_docstrings_exist():
    named = {
        (path.relative_to(ROOT).as_posix(), header)
        for path in SOURCES
        for header in re.findall(r"\b(\w+\.[hc]pp)\b", path.read_text("utf-8"))
    }
    assert named
    assert [pair for pair in sorted(named) if pair[1] not in HEADERS] == []
