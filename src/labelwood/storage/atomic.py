"""Write a file or a directory atomically and durably.

New content goes to a temporary beside the target, is flushed to disk, and takes the name of the target in one step: a
reader finds the old content or the new content, complete, and a failed write leaves the target as it was.

A directory changes places with its predecessor in one system call (``renameat2``) where the system has that call.
Elsewhere the predecessor is renamed first, and a crash between the two renames leaves it complete under its ``.old``
name. A predecessor is removed only after its successor is in place and flushed. A directory is replaced only if all of
its files were written by Labelwood; :class:`OwnDirectory` says which files those are.

A temporary is named ``.NAME.1a2b3c4d.tmp``, a predecessor that was renamed ``.NAME.1a2b3c4d.old``. A crash may leave
either of them; the next write to the same target removes it. The writer of a temporary holds a lock on it, so that no
other process takes it for the remains of a crash.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from labelwood.errors import LabelwoodError

if sys.platform != "win32":
    import fcntl

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
# The C library, the kernel, the file system or a container's system call filter does not know the call.
_NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)


class OwnDirectory(NamedTuple):
    """A kind of directory that may be replaced by one of its kind.

    ``name`` is its name in errors. ``files`` lists the files that a directory of this kind consists of, and raises
    ValueError, TypeError or LookupError if the directory is of another kind.
    """

    name: str
    files: Callable[[Path], Iterable[str]]

    def check(self, target: Path) -> None:
        """Raise unless the target does not exist, is an empty directory, or consists of files of this kind alone."""
        if not os.path.lexists(target):
            return
        advice = "Choose another path or remove it yourself."
        present = {entry.name: entry.is_file() for entry in target.iterdir()} if target.is_dir() else None
        if present == {}:
            return
        try:
            own = set(self.files(target))
        except (ValueError, TypeError, LookupError, RecursionError, OSError):
            present = None
        if present is None:
            raise LabelwoodError(f"{target}: exists and is not a {self.name}. {advice}")
        strange = [name for name, is_file in present.items() if name not in own or not is_file]
        if strange:
            raise LabelwoodError(
                f"{target}: holds a {self.name} and also {min(strange)}, which is not part of it. {advice}"
            )


def _no_files(target: Path) -> Iterable[str]:
    raise ValueError(target)


NEW = OwnDirectory("new or empty directory", _no_files)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file that replaces ``path`` when the block ends without an error.

    A link stays a link: the file it points to is replaced. A device or a pipe, such as ``/dev/stdout``, is written to
    directly.
    """
    given = Path(path)
    if given.exists() and not given.is_file():
        with given.open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(given))
    with _temporary(target, _create_file) as temporary:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        sync_directory(target.parent)


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str], kind: OwnDirectory = NEW) -> Iterator[Path]:
    """Fill the directory that is yielded; it replaces ``path`` when the block ends without an error.

    Missing parents are created. A link stays a link: the directory it points to is replaced. A directory that is not of
    this ``kind`` is refused, before the block and again before it would be replaced.
    """
    target = Path(os.path.realpath(path))
    kind.check(target)
    create_directory(target.parent)
    with _temporary(target, Path.mkdir) as temporary:
        yield temporary
        _sync_tree(temporary)
        kind.check(target)
        _put_in_place(temporary, target)
        sync_directory(target.parent)
    remove_leftovers(target.parent, target.name)


@contextlib.contextmanager
def private_directory(name: str, files: Container[str], *, folder: Path | None = None) -> Iterator[Path]:
    """A directory for the ``files`` of this process that only this user may enter; it is removed at the end.

    It is made in ``folder``, by default the folder for temporary files.

    Directories of this name that killed processes left are removed too, if they hold nothing but such files.
    """
    folder = folder or Path(tempfile.gettempdir())
    leftover = re.compile(rf"{re.escape(name)}-[0-9a-f]{{16}}")
    for path in folder.iterdir():
        if not leftover.fullmatch(path.name) or path.is_symlink() or path.stat().st_uid != os.getuid():
            continue
        lock = _lock(path, wait=False)
        if lock is not None:
            if all(entry.name in files for entry in path.iterdir()):
                _remove(path)
            os.close(lock)

    def name_one() -> Path:
        return folder / f"{name}-{secrets.token_hex(8)}"

    with _locked(name_one, lambda path: path.mkdir(mode=0o700)) as private:
        yield private


def create_directory(path: Path) -> None:
    """Create a directory and its missing parents, and flush their names to disk; an existing one is left alone."""
    if path.is_dir():
        return
    create_directory(path.parent)
    path.mkdir(exist_ok=True)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Flush the names in a directory to disk."""
    if os.name == "posix":  # other systems cannot open a directory
        _sync(path, os.O_RDONLY)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what crashed writes to ``folder / name`` left; of writes to any name in the folder if ``name`` is None.

    A predecessor that was renamed is kept as long as its name is free: it is then the only copy.
    """
    stem = "(.+)" if name is None else f"({re.escape(name)})"
    leftover = re.compile(rf"\.{stem}\.[0-9a-f]{{8}}\.(tmp|old)", re.DOTALL)
    try:
        paths = list(folder.iterdir())
    except OSError:  # the folder cannot be listed; if it cannot be written to either, the write fails
        return
    for path in paths:
        found = leftover.fullmatch(path.name)
        if found is None or (found[2] == "old" and not (folder / found[1]).exists()):
            continue
        lock = _lock(path, wait=False)
        if lock is not None:
            _remove(path)
            os.close(lock)


@contextlib.contextmanager
def _temporary(target: Path, create: Callable[[Path], None]) -> Iterator[Path]:
    """Create a temporary for the target, locked; what bears its name at the end is removed."""
    remove_leftovers(target.parent, target.name)

    def create_or_say(path: Path) -> None:
        try:
            create(path)
        except OSError as error:
            error.filename = str(target)  # the temporary's name would mean nothing to the caller
            raise

    with _locked(lambda: target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp"), create_or_say) as path:
        yield path


@contextlib.contextmanager
def _locked(name_one: Callable[[], Path], create: Callable[[Path], None]) -> Iterator[Path]:
    """Create a file or a directory and hold a lock on it; what bears its name at the end is removed."""
    while True:
        path = name_one()
        create(path)
        lock = _lock(path, wait=True)
        if path.exists():
            break
        if lock is not None:  # another writer removed the temporary before it was locked
            os.close(lock)
    try:
        yield path
    finally:
        _remove(path)
        if lock is not None:
            os.close(lock)


def _create_file(path: Path) -> None:
    path.touch(exist_ok=False)


def _lock(path: Path, *, wait: bool) -> int | None:
    """Lock a temporary and return the descriptor that holds the lock; None if that is not possible."""
    if sys.platform == "win32":
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # the writer holds the lock, or the file system has no locks
        os.close(descriptor)
        return None
    return descriptor


def _remove(path: Path) -> None:
    """Remove a file or a directory as far as possible; the next write removes the rest."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _put_in_place(temporary: Path, target: Path) -> None:
    """Give the temporary directory the name of the target; the predecessor, if any, gets the temporary's name."""
    if not target.exists():
        try:
            temporary.rename(target)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise  # else another writer was faster: replace its directory
    if not target.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(target))
    if exchange(temporary, target):
        return
    aside = temporary.with_suffix(".old")
    target.rename(aside)
    try:
        temporary.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    aside.rename(temporary)


def exchange(one: Path, other: Path) -> bool:
    """Let two directories change places in one step; return False if the system cannot do that."""
    if sys.platform != "linux":
        return False
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    renameat2.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_SUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _sync_tree(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            _sync_tree(entry)
        else:
            _sync(entry, os.O_RDWR)  # Windows flushes only files that are open for writing
    sync_directory(folder)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
