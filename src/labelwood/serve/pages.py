"""Large memory pages under the models of the service, which are read all over, a few rows at a time.

With pages of 4 KB nearly every row costs a walk through the page tables; with pages of 2 MB few do. Linux gives them to
whoever asks; elsewhere, and where it refuses, nothing changes but the speed.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator

_PAGE = 2 * 2**20
_LEAST = 16 * 2**20  # smaller regions are not worth the copying
_USE_LARGE, _COLLAPSE = 14, 25  # of madvise: MADV_HUGEPAGE, MADV_COLLAPSE (Linux 6.1)


def use_large_pages() -> None:
    """Move the heap of this process, as it is now, to large pages."""
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for start, size in list(_regions()):
        if advise(start, size, _USE_LARGE) == 0:
            advise(start, size, _COLLAPSE)


def _regions() -> Iterator[tuple[int, int]]:
    """Start and size of the private memory that is no file's, cut to whole large pages."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            bounds, access, _, _, inode, *name = line.split()
            if access != "rw-p" or inode != "0" or (name and name != ["[heap]"]):
                continue
            first, end = (int(bound, 16) for bound in bounds.split("-"))
            start, stop = -(-first // _PAGE) * _PAGE, end // _PAGE * _PAGE
            if stop - start >= _LEAST:
                yield start, stop - start
