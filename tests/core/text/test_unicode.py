"""The kernel's tables of every code point against those of this Python."""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwood import _core

VERSION, FLAGS, LOWER = _core.unicode_properties()
WORD, SPACE = 1, 2
EVERY = range(sys.maxunicode + 1)
same_unicode = pytest.mark.skipif(
    unicodedata.unidata_version != VERSION,
    reason=f"this Python has Unicode {unicodedata.unidata_version}, the tables have {VERSION}",
)


def lower(text: str) -> str:
    utf8 = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    return _core.lower_text(utf8).tobytes().decode("utf-8", "surrogatepass")


def mismatches() -> list[int]:
    return [
        code
        for code in EVERY
        if bool(FLAGS[code] & WORD) != (chr(code).isalnum() or chr(code) == "_")
        or bool(FLAGS[code] & SPACE) != chr(code).isspace()
        or (code != 0x130 and chr(LOWER[code]) != chr(code).lower())
    ]


@same_unicode
def test_every_code_point_is_as_in_python():
    assert mismatches() == []


def test_other_pythons_differ_in_few_and_late_code_points():
    different = mismatches()
    assert len(different) < 20_000  # a version of Unicode adds a script of ideographs at most every few years
    assert all(code > 0x7FF for code in different)


@same_unicode
def test_every_code_point_lowers_as_in_python_beside_a_sigma():
    step = 512
    for start in range(0, sys.maxunicode + 1, step):
        text = " ".join(f"a{chr(c)}Σ {chr(c)}Σ aΣ{chr(c)} aΣ{chr(c)}a" for c in range(start, start + step))
        assert lower(text) == text.lower()


sigmas = st.text(st.one_of(st.sampled_from("ΣσΑα1 '.\u0301\u00ad:İI"), st.characters(max_codepoint=0x7FF)))


@given(sigmas)
def test_lower_case_is_that_of_python(text):
    assert lower(text) == text.lower()


@given(st.text(st.characters(max_codepoint=127), min_size=20))
def test_ascii_takes_the_fast_path_to_the_same_place(text):
    assert lower(text) == text.lower()
