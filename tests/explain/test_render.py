"""Explanations in words: as text, and as HTML of the same lines."""

import re
from html.parser import HTMLParser

import pytest

from labelwood import METHODS, LinearTree, TextClassifier

WILD = "<script>alert('x')</script>"
TEXTS = ["cats and dogs", "the dog barks", "tax law of the land", "income tax law"] * 5
TAGS = [["pets"], ["pets"], [WILD], [WILD, "money & more"]] * 5


class Page(HTMLParser):
    """The words of a page, its elements, and whether every element is closed in turn."""

    def __init__(self, page):
        super().__init__()
        self.words, self.elements, self.open = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize("method", METHODS)
def test_text_and_html_have_the_same_lines(method):
    model = TextClassifier(METHODS[method](n_jobs=1, random_state=0)).fit(TEXTS, TAGS)
    found = model.explain(["my dog and the tax <b>", "unknown"], 2, missed=["money & more", WILD])
    for explanation in found:
        page = Page(explanation._repr_html_())
        assert not page.open
        assert set(page.elements) <= {"div", "details", "summary", "b"}
        assert page.words == [line.strip() for line in str(explanation).splitlines() if line]
        assert WILD in "".join(page.words)
    assert "\n\nmoney & more: " in str(found[0])
    assert str(found[1]).startswith("the model knows no word or feature of this input")


def test_a_path_in_words():
    model = TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS, TAGS)
    (found,) = model.explain(["my dog barks"], 1)
    title, step = str(found).splitlines()
    best = found.suggestions[0]
    assert title == f"pets  {best.score:.4g}"
    assert re.fullmatch(r"    pets: \d+\.\d%, place 1 of 3, score \S+ = \S+(  [+-]\d+\.\d\d (dog|barks)){2}", step)
    assert repr(found).startswith("Explanation(suggestions=(Suggestion(label='pets'")
