"""The encoders that tuning tries on texts, and the vectors that they give; candidates share them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.sparse import CSR
from labelwood.text import Document, TextEncoder, TfidfEncoder
from labelwood.text.words import AUTO_LANGUAGES, WordReader

_SAMPLE = 400  # texts by which the languages are guessed
_COMMON = 0.2  # share of the texts from which on a language counts
_FIELD_FACTORS = (2.0, 0.5)  # of the weight of the first field

Parameters = dict[str, Any]


class Rows(Protocol):
    """The rows to tune on, as vectors: of training rows in the order of the trials, and of the held-out rows."""

    def vectors(self, encoder: Parameters, n_rows: int) -> tuple[CSR, CSR]:
        """The first training rows and the held-out rows, encoded with these parameters."""

    def forget(self) -> None:
        """Drop vectors that are kept for other candidates."""


@dataclass
class VectorRows:
    """Rows that are vectors already."""

    X: CSR
    X_out: CSR

    def vectors(self, encoder: Parameters, n_rows: int) -> tuple[CSR, CSR]:
        """The rows as they are."""
        return self.X.rows(0, n_rows), self.X_out

    def forget(self) -> None:
        """Keep everything."""


@dataclass
class TextRows:
    """Texts, which an encoder of a class with fixed parameters turns into vectors; every encoding is made once."""

    texts: Sequence[Document]
    texts_out: Sequence[Document]
    encoder: type[TextEncoder]
    fixed: Mapping[str, Any]
    _kept: dict[tuple[str, int], tuple[CSR, CSR]] = field(default_factory=dict)

    def vectors(self, encoder: Parameters, n_rows: int) -> tuple[CSR, CSR]:
        """The vectors by an encoder that is fitted to the first training texts."""
        key = (json.dumps(encoder, sort_keys=True), n_rows)
        if key not in self._kept:
            made = made_encoder(self.encoder, self.fixed, encoder)
            self._kept[key] = (made.fit_encode(self.texts[:n_rows]), made.encode(self.texts_out))
        return self._kept[key]

    def forget(self) -> None:
        """Drop all vectors."""
        self._kept.clear()


@dataclass(frozen=True)
class Texts:
    """Texts to tune on: the encoder's class, its fixed parameters, and the parameters to try beside them."""

    texts: Sequence[Document]
    encoder: type[TextEncoder] = TfidfEncoder
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of texts."""
        return len(self.texts)

    def split(self, rest: npt.NDArray[np.intp], out: npt.NDArray[np.intp]) -> TextRows:
        """The training texts in the order of ``rest``, and the held-out texts."""
        train, held_out = ([self.texts[row] for row in rows.tolist()] for rows in (rest, out))
        return TextRows(train, held_out, self.encoder, self.fixed)

    def variants(self) -> list[Parameters]:
        """The parameters to try beside the fixed ones, cheap ones first."""
        return list(_variants(self))

    def fitted(self, chosen: Parameters) -> tuple[TextEncoder, CSR]:
        """The encoder with the chosen parameters, fitted to all texts, and their vectors."""
        encoder = made_encoder(self.encoder, self.fixed, chosen)
        return encoder, encoder.fit_encode(self.texts)


def made_encoder(encoder: type[TextEncoder], fixed: Mapping[str, Any], chosen: Parameters) -> TextEncoder:
    """The encoder with fixed and chosen parameters; a fixed language has an effect on stems and stop words only."""
    given = {**fixed, **chosen}
    if given.get("words", "forms") == "forms" and not given.get("drop_stop_words"):
        given.pop("language", None)
    return encoder(**given)


def _variants(texts: Texts) -> Iterable[Parameters]:
    """Changes of the encoder that touch no fixed parameter."""
    known = texts.encoder().get_params()
    tried: list[Parameters] = []
    language = texts.fixed.get("language") or languages_of(texts.texts)
    if language is not None and texts.fixed.get("analyzer", "word") == "word":
        told = {} if "language" in texts.fixed else {"language": language}
        tried += [{"words": words, **told} for words in ("stems", "lemmas")]
    tried.append({"min_df": 2})
    fields = texts.fixed.get("fields")
    if fields is not None:
        first = next(iter(fields))
        for factor in _FIELD_FACTORS:
            own = fields[first]
            changed = {**own, "weight": factor * own.get("weight", 1.0)} if isinstance(own, dict) else factor * own
            tried.append({"fields": {**fields, first: changed}})
    tried.append({"ngram_range": (1, 2), **({"min_df": 2} if "min_df" not in texts.fixed else {})})
    pieces: Parameters = {"analyzer": "char_wb", "ngram_range": (3, 5)}
    tried.append({**pieces, **({"min_df": 2} if "min_df" in known and "min_df" not in texts.fixed else {})})
    for parameters in tried:
        touches = [name for name in parameters if name in texts.fixed and name != "fields"]
        if not touches and parameters.keys() <= known.keys() and _is_possible(texts, parameters):
            yield parameters


def _is_possible(texts: Texts, parameters: Parameters) -> bool:
    """True if the encoder takes the parameters, and the packages that it needs are installed."""
    try:
        made_encoder(texts.encoder, {**texts.fixed, "fields": None}, {**parameters, "fields": None}).fit(
            ["some text"] * 3
        )
    except LabelwoodError:
        return False
    return True


def languages_of(texts: Sequence[Document]) -> str | None:
    """The languages that are common in texts, separated by commas; None if they cannot be guessed."""
    step = max(1, len(texts) // _SAMPLE)
    sample = [
        text if isinstance(text, str) else " ".join(value for value in text.values() if isinstance(value, str))
        for text in texts[::step]
    ]
    reader = WordReader("stems", AUTO_LANGUAGES, drop_stop_words=False, fold_accents=False, owner="tune")
    try:
        places = reader.languages_of(sample, 1)
    except LabelwoodError:  # the package is not installed
        return None
    counts = Counter(places.tolist()).most_common()
    return ",".join(AUTO_LANGUAGES[place] for place, count in counts if count >= _COMMON * len(sample)) or None


def as_flags(parameters: Parameters) -> str:
    """Parameters as flags of the command line."""
    return " ".join(f"--{name.replace('_', '-')} {_shown(value)}" for name, value in parameters.items())


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, dict | list):
        return f"'{json.dumps(value)}'"
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
