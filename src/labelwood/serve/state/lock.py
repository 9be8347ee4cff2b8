"""The lock of a directory that one process writes to."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path
from typing import NamedTuple

from labelwood.errors import LabelwoodError

# The file system cannot lock a directory: it wants a file that is open for writing, or has no locks at all.
_NO_DIRECTORY_LOCKS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


class Lock(NamedTuple):
    """The descriptors that hold the lock."""

    descriptors: list[int]

    def release(self) -> None:
        """Give the lock up."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def lock_directory(folder: Path, *, busy: str) -> Lock:
    """Lock a directory; raise with the words of ``busy`` if another process holds the lock.

    The directory and a file ``lock`` in it are locked, for file systems that cannot lock a directory.
    """
    directory = os.open(folder, os.O_RDONLY)
    held = [directory]
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_DIRECTORY_LOCKS:
                raise
        with contextlib.suppress(FileNotFoundError):
            held.append(_lock_file(folder / "lock"))
            fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        for descriptor in held:
            os.close(descriptor)
        raise LabelwoodError(f"{folder}: {busy}") from None
    return Lock(held)


def _lock_file(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        if error.errno == errno.ENOSPC:  # the file is missing and cannot be made: the directory is locked
            raise FileNotFoundError from None
        raise
