"""Random requests that change the state of a service: examples and labels of every kind, some of them to be refused."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st

NAMES = ["law", "money", "pets", "new one", "Ünï", "0", 0, 1, 7, 900, 2**31, -1]
TEXT = st.sampled_from(["tax law", "a dog", "the court", "dogs and cats and tax", "x", ""])
EXAMPLE = st.fixed_dictionaries({"text": TEXT, "labels": st.lists(st.sampled_from(NAMES), max_size=3, unique=True)})
EXAMPLES = st.lists(EXAMPLE, min_size=1, max_size=3)
SAFE = st.lists(  # examples that a model of any kind takes
    st.fixed_dictionaries({"text": TEXT, "labels": st.lists(st.sampled_from([0, 1]), max_size=2, unique=True)}),
    min_size=1,
    max_size=2,
)
KEYS = st.sampled_from([None, None, "a", "b", "c"])
ONE, TWO = st.sampled_from(NAMES), st.sampled_from(NAMES)
CHANGE = st.one_of(
    st.builds(lambda action, label: {"action": action, "label": label}, st.sampled_from(["retire", "restore"]), ONE),
    st.builds(
        lambda action, label, to: {"action": action, "label": label, "to": to},
        st.sampled_from(["rename", "merge"]),
        ONE,
        TWO,
    ),
)


def request(kind: str, contents: Any, key: str | None) -> tuple[str, str, Any, dict[str, str]]:
    """A request that changes the state, as method, path, body and headers."""
    headers = {} if key is None else {"Idempotency-Key": key}
    if kind == "learn":
        return "POST", "/learn", {"examples": contents}, headers
    return "PATCH", "/labels", contents, headers
