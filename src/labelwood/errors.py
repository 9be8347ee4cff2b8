"""The two errors that Labelwood raises for bad input, and its warning.

Both errors are a ``ValueError``, as scikit-learn tools expect. A message has the form ``Class: name must be <rule>; got
<value>``, or names the file, the line and the token.
"""

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Any

_LONGEST_WORD, _MOST_WORDS = 200, 2000  # a comparison takes tens of microseconds


class LabelwoodError(ValueError):
    """Bad parameters or bad data were passed to the library."""


class FormatError(LabelwoodError):
    """A file is malformed or damaged: data that cannot be parsed, a model that fails its checks."""


class LabelwoodWarning(UserWarning):
    """Something that was asked for is done, but probably not what is wanted."""


def nearest(word: Any, known: Iterable[Any]) -> str:
    """Return ``; did you mean X?`` if a known word is close, else an empty string."""
    if not isinstance(word, str) or not 0 < len(word) <= _LONGEST_WORD:
        return ""
    words = [one for one in known if isinstance(one, str) and one]
    if len(words) > _MOST_WORDS:
        first, n = word[0].casefold(), len(word)
        alike = (one for one in words if one[0].casefold() == first and n / 2 <= len(one) <= 2 * n)
        words = list(islice(alike, _MOST_WORDS))
    by_fold = {one.casefold(): one for one in words}
    close = difflib.get_close_matches(word.casefold(), list(by_fold), n=1)
    return f"; did you mean {by_fold[close[0]]}?" if close else ""
