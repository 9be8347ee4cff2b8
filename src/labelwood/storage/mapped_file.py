"""Files mapped read-only. A mapped file is closed: a model of a thousand arrays needs no thousand descriptors."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from functools import cache
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

_FAILED = ctypes.c_void_p(-1).value


def map_file(file: BinaryIO, size: int) -> npt.NDArray[np.uint8]:
    """The bytes of an open file of ``size`` bytes, at least 1; the file may be closed afterwards."""
    if os.name != "posix":
        return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ), np.uint8)
    library = _c_library()
    address = library.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    if address == _FAILED:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), getattr(file, "name", None))
    pages = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(pages, library.munmap, address, size).atexit = False  # the end of the process unmaps everything
    return np.frombuffer(memoryview(pages).cast("B").toreadonly(), np.uint8)


@cache
def _c_library() -> ctypes.CDLL:
    """The C library: Python's own mmap keeps a duplicate of the descriptor."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (*(ctypes.c_void_p, ctypes.c_size_t), *(ctypes.c_int,) * 3, ctypes.c_long)
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return library
