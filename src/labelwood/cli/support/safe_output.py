"""Standard output for names and words that come from data: characters that a terminal would obey are escaped."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from labelwood.progress import SHOWN

# A terminal obeys control characters; the marks at the end change the direction of what follows.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def safe(text: str) -> str:
    """Escape what a terminal would obey instead of showing it; line breaks and tabs stay.

    The escapes are those of JSON strings, so that JSON stays JSON.
    """
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def remark(text: str) -> None:
    """Print a remark on stderr, unless -q is given."""
    if SHOWN.bars:
        print(safe(text), file=sys.stderr, flush=True)


class SafeOutput:
    """Standard output for names and words that come from data.

    Characters that the encoding does not have are escaped. If the output is a terminal, so is what it would obey.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._is_terminal = stream, stream.isatty()

    def write(self, text: str) -> int:
        """Write a text."""
        if not text.isascii():
            encoding = self._stream.encoding or "utf-8"
            text = text.encode(encoding, "backslashreplace").decode(encoding)
        return self._stream.write(safe(text) if self._is_terminal else text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
