"""Forms of words: stems or lemmas, without accents and without stop words, by the language of each document.

The packages come with ``labelwood[words]``: PyStemmer (stems), simplemma (lemmas), stop-words, and py3langid, which
guesses languages. Kernels list the distinct words of the texts; each is looked up once here, whatever its frequency.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Literal

import numpy as np

from labelwood import _core
from labelwood.errors import LabelwoodError
from labelwood.params import Param
from labelwood.sparse import I64, U8
from labelwood.storage import packed_strings

Words = Annotated[
    Literal["forms", "stems", "lemmas"],
    Param("terms are the words as they are, their stems (Snowball) or their lemmas (simplemma), by language"),
]
Language = Annotated[
    str | None,
    Param("language of the texts: a code such as fi; several such as de,en, or auto, guess that of each text"),
]
StopWords = Annotated[bool, Param("ignore the stop words of the language")]
FoldAccents = Annotated[bool, Param("ignore accents: é counts as e")]

SNOWBALL = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "st": "sesotho", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
AUTO = "auto"
# The languages among which "auto" chooses: those that all packages know.
AUTO_LANGUAGES = (
    "ca", "cs", "da", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "no", "pl", "pt", "ro", "ru", "sv", "tr",
)  # fmt: skip
_LOOKED_AT = 200  # characters of a document by which its language is guessed: 98.6 % right on German and English

Forms = Callable[[list[bytes]], list[bytes]]  # words to their forms, in UTF-8; an empty form drops the word


@dataclass(frozen=True)
class WordReader:
    """What is done to words, and the languages of the texts; ``owner`` opens the error messages."""

    words: str
    languages: tuple[str, ...]
    drop_stop_words: bool
    fold_accents: bool
    owner: str

    @classmethod
    def of(cls, encoder: Any) -> WordReader | None:
        """The reader that the parameters of an encoder describe, checked; None if words stay as they are."""
        owner = type(encoder).__name__
        needs_language = encoder.words != "forms" or encoder.drop_stop_words
        if not (needs_language or encoder.fold_accents):
            if encoder.language is not None:
                raise LabelwoodError(
                    f"{owner}: language must be None without words='stems', words='lemmas' or drop_stop_words; "
                    f"got {encoder.language!r}"
                )
            return None
        if encoder.analyzer != "word":
            raise LabelwoodError(
                f"{owner}: analyzer must be 'word' for stems, lemmas, stop words and fold_accents; "
                f"got {encoder.analyzer!r}"
            )
        if needs_language and encoder.language is None:
            stays, given = ("words", repr(encoder.words)) if encoder.words != "forms" else ("drop_stop_words", "True")
            raise LabelwoodError(
                f"{owner}: {stays} must come with a language: a code such as 'fi', several such as 'de,en', or 'auto'; "
                f"got {given} without one"
            )
        named = tuple(code.strip() for code in (encoder.language or "en").split(","))
        languages = AUTO_LANGUAGES if named == (AUTO,) else named
        unknown = [code for code in languages if code not in SNOWBALL]
        if unknown or len(set(languages)) != len(languages):
            raise LabelwoodError(
                f"{owner}: language must be auto or different codes among {', '.join(SNOWBALL)}; "
                f"got {encoder.language!r}"
            )
        return cls(encoder.words, languages, bool(encoder.drop_stop_words), bool(encoder.fold_accents), owner)

    def languages_of(self, strings: Sequence[str], n_fields: int) -> U8:
        """The place of each document's language in ``languages``; a document has ``n_fields`` strings."""
        n_documents = len(strings) // n_fields
        if len(self.languages) == 1:
            return np.zeros(n_documents, np.uint8)
        classify = _identifier(self.languages, self.owner).classify
        place = {code: number for number, code in enumerate(self.languages)}
        starts = range(0, len(strings), n_fields)
        texts = (" ".join(strings[start : start + n_fields])[:_LOOKED_AT] for start in starts)
        return np.fromiter((place[classify(text)[0]] for text in texts), np.uint8, n_documents)

    def forms_of(
        self, strings: Sequence[str], n_fields: int, packed: tuple[U8, I64], cut: dict[str, Any], threads: int
    ) -> dict[str, Any]:
        """The texts as numbers of words and the form of each word, for the kernels; ``cut`` are their options."""
        ones = np.ones(n_fields, np.int64)
        single = {**cut, "shortest": ones, "longest": ones}
        languages = self.languages_of(strings, n_fields)
        lines, ends, tokens, starts = _core.read_words(*packed, single, languages, len(self.languages), threads)
        words = packed_strings.split_lines(lines)
        forms: list[bytes] = []
        for code, first, last in zip(self.languages, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            forms += self._forms(code)(words[first:last]) if first < last else []
        return {"lines": packed_strings.join_lines(forms), "tokens": tokens, "starts": starts}

    def _forms(self, language: str) -> Forms:
        """The function from words of a language to their forms: without stop words, then form, then accents."""
        change = _CHANGES[self.words](language, self.owner)
        stopped = _stop_words(language, self.owner) if self.drop_stop_words else frozenset()

        def forms(words: list[bytes]) -> list[bytes]:
            kept = [word for word in words if word not in stopped] if stopped else words
            found = change(kept)
            if self.fold_accents:
                found = [form if form.isascii() else _without_accents(form) for form in found]
            if not stopped:
                return found
            form_of = dict(zip(kept, found, strict=True))
            return [form_of.get(word, b"") for word in words]

        return forms


def _unchanged(language: str, owner: str) -> Forms:
    return list


def _stems(language: str, owner: str) -> Forms:
    package = _package("Stemmer", "words='stems' needs PyStemmer", owner)
    name = SNOWBALL[language]
    if name not in package.algorithms():
        raise LabelwoodError(f"{owner}: this PyStemmer has no stemmer for {name}; install a newer PyStemmer")
    stemmer = package.Stemmer(name, 0)  # every word comes once: a cache would not help
    forms: Forms = stemmer.stemWords
    return forms


def _lemmas(language: str, owner: str) -> Forms:
    package = _package("simplemma", "words='lemmas' needs simplemma", owner)
    lemmatizer, code = package.Lemmatizer(cache_max_size=0), "nb" if language == "no" else language
    try:
        lemmatizer.lemmatize("a", lang=code)
    except ValueError:
        raise LabelwoodError(f"{owner}: simplemma has no lemmas for the language {language!r}; try stems") from None
    return lambda words: [lemmatizer.lemmatize(word.decode(), lang=code).encode() for word in words]


_CHANGES: dict[str, Callable[[str, str], Forms]] = {"forms": _unchanged, "stems": _stems, "lemmas": _lemmas}


@cache
def _stop_words(language: str, owner: str) -> frozenset[bytes]:
    package = _package("stop_words", "drop_stop_words=True needs stop-words", owner)
    try:
        words: list[str] = package.get_stop_words("nb" if language in ("no", "nn") else language)
    except package.StopWordError:
        raise LabelwoodError(f"{owner}: stop-words has no list for the language {language!r}") from None
    return frozenset(word.encode() for word in words)


@cache
def _identifier(languages: tuple[str, ...], owner: str) -> Any:
    package = _package("py3langid.langid", "more than one language needs py3langid", owner)
    identifier = package.LanguageIdentifier.from_model_file(package.MODEL_FILE)
    try:
        identifier.set_languages(languages)
    except ValueError as error:
        raise LabelwoodError(f"{owner}: py3langid cannot tell these languages apart ({error})") from None
    return identifier


def _package(name: str, what: str, owner: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise LabelwoodError(f"{owner}: {what}: pip install 'labelwood[words]'") from None


def _without_accents(word: bytes) -> bytes:
    marks = unicodedata.normalize("NFKD", word.decode())
    return "".join(mark for mark in marks if not unicodedata.combining(mark)).encode()
