"""Vectors of texts on disk, so that no text is encoded twice by the same model."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing

import numpy as np

from labelwood.errors import FormatError
from labelwood.sparse import F32

_COLUMNS = "encoder TEXT, text BLOB, vector BLOB, PRIMARY KEY (encoder, text)"
_TABLE = f"CREATE TABLE IF NOT EXISTS vectors ({_COLUMNS})"
_PAGE = "PRAGMA page_size = 16384"  # of a new file: about ten vectors of a sentence model fit in a page
_QUESTION = "SELECT text, vector FROM vectors WHERE encoder = ? AND text IN ({})"
_AT_ONCE = 500  # keys of one question
_WAIT_SECONDS = 60  # for another process that writes


class VectorCache:
    """An SQLite file of vectors, by the name of the encoder and the text; several processes may share it."""

    def __init__(self, path: str | os.PathLike[str], encoder: str) -> None:
        self._path, self._encoder = os.fspath(path), encoder

    def read(self, texts: Sequence[str]) -> dict[str, F32]:
        """The vectors that are known, by text."""
        keys = {_key(text): text for text in texts}
        listed, found = list(keys), {}
        with closing(self._open()) as database:
            for start in range(0, len(listed), _AT_ONCE):
                asked = listed[start : start + _AT_ONCE]
                question = _QUESTION.format(",".join("?" * len(asked)))
                for key, vector in database.execute(question, (self._encoder, *asked)):
                    found[keys[key]] = np.frombuffer(vector, np.float32)
        return found

    def write(self, texts: Sequence[str], vectors: F32) -> None:
        """Keep the vectors of texts."""
        rows = [(self._encoder, _key(text), vector.tobytes()) for text, vector in zip(texts, vectors, strict=True)]
        with closing(self._open()) as database, database:
            database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def _open(self) -> sqlite3.Connection:
        try:
            database = sqlite3.connect(self._path, timeout=_WAIT_SECONDS)
        except sqlite3.Error as error:
            raise FormatError(f"{self._path}: the cache of vectors cannot be opened ({error})") from None
        try:
            database.execute(_PAGE)
            database.execute(_TABLE)
        except sqlite3.Error as error:
            database.close()
            raise FormatError(f"{self._path}: is no cache of vectors ({error})") from None
        return database


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
