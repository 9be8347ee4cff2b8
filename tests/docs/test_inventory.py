"""The inventory of the papers: no item is missing, and every place that it names exists."""

import re

import pytest
from pages import ROOT

PAGE = ROOT / "notebook" / "papers" / "inventory.md"
# The numbered items of each paper, besides those of proofs.
ITEMS = {
    "LdSM": {"Algorithm": 5, "Definition": 2, "Lemma": 6, "Theorem": 2, "Table": 7, "Figure": 7},
    "OPLT": {"Algorithm": 8, "Definition": 2, "Theorem": 2, "Table": 3, "Figure": 2},
    "CRAFTML": {"Algorithm": 2, "Lemma": 1, "Proposition": 2, "Table": 3, "Figure": 4},
    "Linear tree size": {"Equation": 26, "Theorem": 3, "Table": 5, "Figure": 8},
    "GPT": {"Table": 2},
}
if not (ROOT / "experiments").is_dir():
    pytest.skip("experiments are not part of this checkout", allow_module_level=True)


def sections():
    """The table of each paper: pairs of items and places."""
    found = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title = part.partition(" (")[0]
        lines = [line.strip("| ").split(" | ", 1) for line in part.splitlines() if line.startswith("| ")]
        found[title] = [tuple(line) for line in lines if line[0] != "item"]
    return found


@pytest.mark.parametrize("paper", ITEMS)
def test_no_item_is_missing(paper):
    listed = [item for items, _ in sections()[paper] for item in items.split(", ")]
    assert len(listed) == len(set(listed)), "an item has one line"
    wanted = {f"{kind} {number}" for kind, count in ITEMS[paper].items() for number in range(1, count + 1)}
    assert wanted - set(listed) == set()


@pytest.mark.parametrize("paper", ITEMS)
def test_every_place_exists(paper):
    """A name belongs to the last file before it."""
    for items, place in sections()[paper]:
        said = re.findall(r"`([^`]+)`", place)
        assert said or place.startswith(("none: ", "the two definitions")), f"{items}: names no place and no reason"
        text = ""
        for word in sorted(said, key=lambda word: "/" not in word) if place.startswith("the parameter") else said:
            if "/" in word:
                assert (ROOT / word).is_file(), f"{items}: there is no {word}"
                text = (ROOT / word).read_text(encoding="utf-8")
            else:
                assert re.search(rf"\b{word}\b", text), f"{items}: {word} is not in its file"
