"""Find-as-you-type: every answer equals that of a plain search over all names; a million labels stay fast."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwood.errors import LabelwoodError
from labelwood.vocabulary.name_search import NameSearch, fold


def plain_search(names, owners, ranks, query, limit):
    """The definition, name by name."""
    words = lambda text: re.findall(r"[^\W_]+", fold(text))  # noqa: E731 - a name for a formula
    typed = words(query)[:20]
    if not typed:
        return []
    found = []
    for place, name in enumerate(names):
        own = words(name)
        if not all(any(word.startswith(one) for word in own) for one in typed):
            continue
        first = typed[0]
        tier = min(2 * (at > 0) + (word != first) for at, word in enumerate(own) if word.startswith(first))
        found.append((tier, ranks[place], len(own), len(name), place))
    order = [owners[key[-1]] for key in sorted(found)]
    return list(dict.fromkeys(order))[:limit]


TEXT = st.text("abAÄä -_1é", max_size=10)


@given(
    names=st.lists(TEXT, max_size=30),
    query=TEXT,
    limit=st.integers(1, 8),
    seed=st.integers(0, 9),
    several=st.booleans(),
)
def test_equals_the_plain_search(names, query, limit, seed, several):
    random = np.random.default_rng(seed)
    owners = random.integers(0, 6, len(names)) if several else np.arange(len(names))
    ranks = random.integers(0, 3, len(names))
    found = NameSearch(names, owners, ranks).find(query, limit)
    assert found == plain_search(names, owners.tolist(), ranks.tolist(), query, limit)


def test_accents_and_case_do_not_matter():
    search = NameSearch(["Straße", "Élan vital", "eläin"], np.arange(3))
    assert [search.find(typed, 3) for typed in ("strasse", "elan", "ELÄI", "vit él")] == [[0], [1], [2], [1]]


def test_the_name_that_was_found_is_told():
    search = NameSearch(["cat", "domestic cat", "dog"], np.array([0, 0, 1]), np.array([0, 1, 0]))
    assert search.find_names("dom", 5) == [(0, 1)]
    assert search.find_names("cat", 5) == [(0, 0)]


def test_a_name_with_a_line_break_is_refused():
    with pytest.raises(LabelwoodError, match="line break"):
        NameSearch(["a\nb"], np.arange(1))


def test_a_million_labels_are_searched_within_50_milliseconds():
    random = np.random.default_rng(0)
    parts = np.array(["ta", "ko", "ri", "mu", "se", "lan", "ver", "tin", "pre", "con", "sta", "gra", "lo", "s", "t"])
    words = ["".join(row) for row in parts[random.integers(0, len(parts), (50_000, 3))]]
    names = [" ".join(words[at] for at in row) for row in random.integers(0, len(words), (1_000_000, 2)).tolist()]
    search = NameSearch(names, np.arange(len(names)))
    for query in ("t", "ta", "s k", "tak mu", "xyz", "g l"):
        best = np.inf
        for _ in range(3):
            start = time.process_time()
            search.find(query, 12)
            best = min(best, time.process_time() - start)
        assert best < 0.05, query
