"""Bytes as people write them."""

import pytest

from labelwood import LabelwoodError
from labelwood.resources import memory


def test_a_budget_is_read_as_people_write_it():
    def read(text):
        return memory.parse_bytes(text, owner="LinearTree", name="max_memory")

    assert [read(text) for text in ("4GB", "500 mb", "1.5GiB", "2k", 7)] == [
        4 * 10**9, 5 * 10**8, 3 * 2**29, 2000, 7,
    ]  # fmt: skip
    for wrong in ("much", "-1GB", "0", 0, 1.5, True):
        with pytest.raises(LabelwoodError, match="max_memory must be a number of bytes"):
            read(wrong)
