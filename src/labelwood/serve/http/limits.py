"""The limits of the service, and how many connections the process has file descriptors for."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from labelwood.errors import LabelwoodError

MAX_HEADERS = 100
_FEWEST_CONNECTIONS = 8
_SPARE_DESCRIPTORS = 48  # for files that are open for a moment, and connections that are being closed


@dataclass(frozen=True)
class Limits:
    """Limits of one request, and of all requests and connections of a process."""

    body_bytes: int = 4 * 2**20
    seconds: float = 30.0  # to answer a request, from the end of its body
    at_once: int = 256  # requests being answered; a request that is still arriving does not count
    header_bytes: int = 16 * 2**10  # with the path
    header_seconds: float = 10.0  # from the start of a request, or of the connection, to the end of the headers
    body_seconds: float = 30.0  # from the end of the headers to the end of the body
    idle_seconds: float = 75.0  # between two requests on a connection; longer than proxies keep theirs
    bodies_bytes: int = 64 * 2**20  # of all bodies in memory
    connections: int = 1000
    per_address: int = 500

    def within_descriptors(self) -> Limits:
        """These limits with as many connections as there are file descriptors for.

        Raises the process's soft limit of descriptors if that is too low. Every open file may be opened once more: a
        new model is mapped before the old one is given up.
        """
        try:
            import resource  # noqa: PLC0415 - POSIX only
        except ImportError:
            return self
        others = 2 * _open_files() + _SPARE_DESCRIPTORS
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = others + self.connections
        if soft != resource.RLIM_INFINITY and soft < wanted:
            soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        room = self.connections if soft == resource.RLIM_INFINITY else min(self.connections, soft - others)
        if room < min(_FEWEST_CONNECTIONS, self.connections):
            raise LabelwoodError(
                f"serve: {soft} file descriptors leave none for connections; raise the limit (ulimit -n) to {wanted}"
            )
        return replace(self, connections=room)


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.is_dir() else _SPARE_DESCRIPTORS
