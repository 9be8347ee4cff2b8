"""Bearer tokens and their roles, from a file or the environment.

A line is ``read TOKEN`` or ``write TOKEN``. A word that begins with ``#`` opens a comment. A write token also allows
reading. Tokens are stored as digests. Every request is compared with all of them, so that the time of a comparison
tells nothing about a token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from labelwood.errors import LabelwoodError

Role = Literal["open", "read", "write"]
ENVIRONMENT = "LABELWOOD_TOKENS"
_SHORTEST = 16
_RANK: dict[Role, int] = {"open": 0, "read": 1, "write": 2}


class Tokens:
    """The tokens of a service. Without tokens everybody may read and write, on loopback only: :func:`check_host`."""

    def __init__(self, lines: Iterable[str] = (), *, where: str = "tokens") -> None:
        self._digests: list[tuple[bytes, Role]] = []
        for number, line in enumerate(lines, 1):
            words = list(itertools.takewhile(lambda word: not word.startswith("#"), line.split()))
            if not words:
                continue
            if len(words) != 2 or words[0] not in ("read", "write"):
                raise LabelwoodError(f"{where}, line {number}: a line must be: read TOKEN, or write TOKEN")
            role: Role = "read" if words[0] == "read" else "write"
            if len(words[1]) < _SHORTEST:
                raise LabelwoodError(f"{where}, line {number}: a token must have at least {_SHORTEST} characters")
            if not (words[1].isascii() and words[1].isprintable()):
                raise LabelwoodError(f"{where}, line {number}: a token must consist of printable ASCII characters")
            self._digests.append((_digest(words[1]), role))

    @classmethod
    def find(cls, path: Path | None) -> Tokens:
        """The tokens of a file, or of the environment variable LABELWOOD_TOKENS, separated by commas or lines."""
        if path is not None:
            tokens = cls(path.read_text(encoding="utf-8").splitlines(), where=str(path))
            if not tokens:
                raise LabelwoodError(f"{path}: there is no token in the file")
            return tokens
        return cls(os.environ.get(ENVIRONMENT, "").replace(",", "\n").splitlines(), where=ENVIRONMENT)

    def __bool__(self) -> bool:
        return bool(self._digests)

    def role_of(self, authorization: str | None) -> Role:
        """The role of a request with this Authorization header."""
        if not self._digests:
            return "write"
        given = _digest(_token_in(authorization or ""))
        role: Role = "open"
        for digest, granted in self._digests:
            if hmac.compare_digest(digest, given) and _RANK[granted] > _RANK[role]:
                role = granted
        return role


def allows(role: Role, needed: Role) -> bool:
    """True if a role includes the needed one."""
    return _RANK[role] >= _RANK[needed]


def is_loopback(host: str) -> bool:
    """True if a host name or address means this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_host(host: str, tokens: Tokens) -> None:
    """Raise if the service would listen to the network without tokens."""
    if not tokens and not is_loopback(host):
        raise LabelwoodError(
            f"serve: --host must be loopback (127.0.0.1, ::1, localhost) unless there are tokens; got {host!r}. "
            f"Give --tokens FILE or set {ENVIRONMENT}."
        )


def names_loopback(header: str) -> bool:
    """True if a Host header names this machine. A page of another site cannot send such a header (DNS rebinding)."""
    host = header.rsplit(":", 1)[0] if not header.endswith("]") else header
    return is_loopback(host.strip("[]"))


def _token_in(authorization: str) -> str:
    """The token of a header: Bearer, or the password of Basic for clients that only support user:password@host."""
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).decode("latin-1").partition(":")[2]
        except ValueError:
            return ""
    return rest.strip() if scheme.lower() == "bearer" else ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
