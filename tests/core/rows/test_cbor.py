"""The reader of CBOR against its twin."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import cbor

from labelwood import _core

HEADS = st.builds(
    lambda major, more, rest: bytes([major << 5 | more]) + rest,
    st.integers(0, 7),
    st.integers(0, 31),
    st.binary(max_size=9),
)


def assert_same(content):
    kinds, values, bad = _core.cbor_tokens(np.frombuffer(content, np.uint8))
    wanted = cbor.tokens(content)
    assert bad == wanted[2]
    assert kinds.tolist() == wanted[0]
    np.testing.assert_array_equal(values, np.array(wanted[1]))


@settings(max_examples=400)
@given(st.lists(HEADS, max_size=8).map(b"".join))
@example(b"\xf9\x00\x01\xf9\x7c\x00\xf9\xfc\x00\xf9\x7e\x00\xf9\x3c\x00")  # halves: tiny, infinite, NaN, one
@example(b"\x1b" + b"\xff" * 8)
@example(b"\x7b" + b"\xff" * 8)
@example(b"\x9b" + b"\xff" * 8)
def test_tokens(content):
    assert_same(content)


def test_a_small_tree():
    content = b"\xa1\x64Leaf\x82\x01\xf9\x38\x00"
    kinds, values, bad = _core.cbor_tokens(np.frombuffer(content, np.uint8))
    assert (kinds.tolist(), values.tolist(), bad) == ([3, 1, 2, 0, 0], [1, 256 * 2 + 4, 2, 1, 0.5], -1)
