"""Bytes: how people write them, what this process holds, what the machine still has."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from labelwood import _core
from labelwood.errors import LabelwoodError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)


class Limit(NamedTuple):
    """The most memory that a process may come to hold, and the words for where that comes from."""

    bytes: int
    words: str


def parse_bytes(text: str | int, *, owner: str, name: str) -> int:
    """A number of bytes from an integer or from words such as ``4GB``, ``500 MB``, ``1.5GiB``.

    >>> parse_bytes("4GB", owner="LinearTree", name="max_memory")
    4000000000
    """
    if isinstance(text, int) and not isinstance(text, bool) and text > 0:
        return text
    found = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    if found is None or float(found[1]) <= 0:
        raise LabelwoodError(
            f"{owner}: {name} must be a number of bytes, at least 1, such as 4GB or 500MiB; got {text!r}"
        )
    base = _UNITS[found[2].lower()]
    return int(float(found[1]) * (base if not found[3] else 2 ** (10 * (len(str(base)) // 3))))


def shown_bytes(count: float) -> str:
    """A number of bytes for people.

    >>> shown_bytes(999), shown_bytes(1_234_567)
    ('999 B', '1.2 MB')
    """
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def resident() -> int:
    """Bytes of memory that this process holds now; its peak where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return peak_resident() or 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def give_back() -> None:
    """Return to the system what the allocator keeps of memory that was freed, where it can."""
    _core.give_back()


def peak_resident() -> int | None:
    """The most memory this process has held, in bytes; None where the system does not tell."""
    try:  # what getrusage tells on Linux is at least what the parent held when it started this process
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        import resource  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def available() -> int | None:
    """Bytes this process can still get: of the machine, or of its container if that is less; None if unknown."""
    found = [count for count in (_of_machine(), _of_container()) if count is not None]
    return min(found, default=None)


def limit_of(max_memory: str | int | None, *, owner: str) -> Limit | None:
    """The limit that ``max_memory`` sets, or the free memory if it is None; None if that is unknown."""
    if max_memory is not None:
        limit = parse_bytes(max_memory, owner=owner, name="max_memory")
        return Limit(limit, "max_memory allows")
    free = available()
    return None if free is None else Limit(resident() + free, "this machine has free")


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _of_container() -> int | None:
    folder = Path("/sys/fs/cgroup")
    try:
        most = (folder / "memory.max").read_text(encoding="ascii").strip()
        used = (folder / "memory.current").read_text(encoding="ascii").strip()
        return None if most == "max" else max(0, int(most) - int(used))
    except (OSError, ValueError):
        return None
