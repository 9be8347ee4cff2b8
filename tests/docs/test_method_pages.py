"""The pages of the methods are short, and their figures, like those of the guide, are the recorded ones."""

import functools
import json
import re
from statistics import fmean, pstdev

import pytest
from pages import ROOT

LONGEST = 80
PAGES = {page.stem: page for page in sorted((ROOT / "docs" / "methods").glob("*.md"))}
SETS = ("bibtex/xmc_split0", "delicious/xmc_split0", "eurlex57k", "yso_finna_en")


@functools.cache
def records():
    """The figures of all seeds by metric, of every recorded method and data set."""
    found = {}
    for path in (ROOT / "experiments" / "records" / "runs").glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        seeds = record["seeds"].values()
        figures = {metric: [seed[metric] for seed in seeds] for metric in next(iter(seeds))}
        found.setdefault((record["key"]["method"], record["key"]["data"]), figures)
    return found


def recorded(method, name):
    """The figures of all seeds of a method on a data set, by metric."""
    assert (method, name) in records(), f"no record of {method} on {name}"
    return records()[method, name]


def is_measured(method):
    """True if the method has records; the pages must show them then."""
    return any(of == method for of, _ in records())


def rows_of(text):
    """The cells of every table row of a page."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def spread(figures):
    return f"{fmean(figures):.2f} ± {pstdev(figures):.2f}"


def rounded(figures, like):
    """The mean with as many decimals as a cell has."""
    return f"{fmean(figures):.{len(like.partition('.')[2])}f}"


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_method_page_is_short(page):
    assert len(page.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_method_page_begins_with_an_example_and_the_parameters(page):
    before, _, after = page.read_text(encoding="utf-8").partition("\n## ")
    assert re.search("^(```|~~~)python$", before, re.MULTILINE)
    assert "labelwood train" in before
    assert after.startswith("Parameters that matter\n\n| parameter | default | effect |")


@pytest.mark.parametrize("method", PAGES)
def test_the_quality_of_a_method_is_the_recorded_one(method):
    sets = {name.partition("/")[0]: name for name in SETS}
    found = []
    for cells in rows_of(PAGES[method].read_text(encoding="utf-8")):
        of = cells.pop(0).strip("`") if cells[0].startswith("`") else method.replace("_", "-")
        if not cells or cells[0] not in sets:
            continue
        data, *quality, seconds, megabytes = cells
        record = recorded(of, sets[data])
        assert quality == [spread(record[metric]) for metric in ("P@1", "P@3", "P@5")]
        assert seconds == rounded(record["train, CPU s"], seconds)
        assert megabytes == rounded(record["MB"], megabytes)
        found.append((of, data))
    methods = {of for of, _ in found}
    assert sorted(found) == sorted((of, data) for of in methods for data in sets)
    assert method.replace("_", "-") in methods or not is_measured(method.replace("_", "-"))


def test_the_guide_compares_the_methods_by_recorded_figures():
    compared = []
    for first, *cells in rows_of((ROOT / "docs" / "guide.md").read_text(encoding="utf-8")):
        named = re.match(r"\[`([a-z-]+)`\]\(methods/", first)
        if named:
            assert cells == [f"{fmean(recorded(named[1], name)['P@5']):.2f}" for name in SETS]
            compared.append(named[1])
    assert {method for page in PAGES if is_measured(method := page.replace("_", "-"))} <= set(compared)
