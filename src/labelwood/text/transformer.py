"""Any scikit-learn transformer of texts as an encoder: a vectorizer, or a pipeline that begins with one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, ClassVar

from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from labelwood.errors import LabelwoodError
from labelwood.params import declared
from labelwood.progress import Progress
from labelwood.sparse import CSR
from labelwood.text.encoder import TextEncoder, list_texts
from labelwood.text.fields import Document
from labelwood.text.hashing import HashingEncoder
from labelwood.text.tfidf import TfidfEncoder
from labelwood.validation.features import as_features

_COUNTS = {"use_idf": False, "sublinear_tf": False, "norm": None}  # what TfidfEncoder calls a CountVectorizer
_ENCODERS: dict[type, tuple[type[TextEncoder], dict[str, Any]]] = {
    TfidfVectorizer: (TfidfEncoder, {}),
    CountVectorizer: (TfidfEncoder, _COUNTS),
    HashingVectorizer: (HashingEncoder, {}),
}
_TOKEN_LENGTHS = {r"(?u)\b\w+\b": 1, r"(?u)\b\w\w+\b": 2}
_WITHOUT_EFFECT = {"encoding", "decode_error", "vocabulary", "token_pattern"}  # on strings, after fit


class TransformerEncoder(TextEncoder):
    """The encoder that a transformer is; it holds the transformer and no state of its own."""

    encoder_name: ClassVar[str] = "transformer"

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit_encode(self, texts: Iterable[Document], *, progress: Progress = None) -> CSR:
        """Fit the transformer; return the vectors of the texts."""
        listed = list_texts(texts, owner=self._owner)
        if hasattr(self.transformer, "fit_transform"):
            return as_features(self.transformer.fit_transform(listed), owner=self._owner)
        return as_features(self.transformer.fit(listed).transform(listed), owner=self._owner)

    def encode(self, texts: Iterable[Document], *, progress: Progress = None) -> CSR:
        """Return the vectors of texts."""
        return as_features(self.transformer.transform(list_texts(texts, owner=self._owner)), owner=self._owner)

    def term_of(self, text: Document) -> Callable[[int], str | None]:
        """Return a function from a column of the vector of ``text`` to its name, where the transformer has names."""
        if self._equal is not None:
            return self._equal.term_of(text)
        names = self._feature_names
        return lambda column: names[column] if column < len(names) else None

    def native(self) -> TextEncoder:
        """Return the encoder of this library that gives the same vectors."""
        if self._equal is None:
            raise LabelwoodError(
                f"TextClassifier: a model with this {self._owner} cannot be saved without pickle. Pickle the model, or "
                "encode by TfidfEncoder, HashingEncoder, or a vectorizer with parameters that these have."
            )
        return self._equal

    def listed(self, texts: Iterable[Document]) -> list[Document]:
        """The texts as a list."""
        return [*list_texts(texts, owner=self._owner)]

    def check_texts(self, texts: Iterable[Document]) -> None:
        """Raise if one of the texts is no string."""
        list_texts(texts, owner=self._owner)

    def set_threads(self, n_jobs: int) -> None:
        """Encode with this many threads from here on, if the transformer has threads."""
        if hasattr(self.transformer, "n_jobs"):
            self.transformer.n_jobs = n_jobs

    @property
    def _owner(self) -> str:
        return type(self.transformer).__name__

    @cached_property
    def _equal(self) -> TextEncoder | None:
        """The encoder of this library that gives the same vectors, if there is one."""
        if type(self.transformer) not in _ENCODERS:
            return None
        encoder, changes = _ENCODERS[type(self.transformer)]
        given, defaults = self.transformer.get_params(), type(self.transformer)().get_params()
        token_length = _TOKEN_LENGTHS.get(given["token_pattern"]) if given["analyzer"] == "word" else 2
        shared = {name: given[name] for name in declared(encoder) if name in given}
        without_effect = _WITHOUT_EFFECT | shared.keys()
        if given["analyzer"] != "word" or (encoder is TfidfEncoder and given["ngram_range"] == (1, 1)):
            without_effect = without_effect | {"stop_words"}  # single words that are not in the vocabulary
        same = all(value == defaults[name] for name, value in given.items() if name not in without_effect)
        if not same or token_length is None or callable(given["analyzer"]):
            return None
        made = encoder(**{**shared, **changes, "token_length": token_length})
        if encoder is HashingEncoder:
            return made.restore({})
        idf = self.transformer.idf_ if made.use_idf else None
        return made.restore(TfidfEncoder.state_of(self.transformer.get_feature_names_out().tolist(), idf))

    @cached_property
    def _feature_names(self) -> list[str]:
        try:
            names: list[str] = self.transformer.get_feature_names_out().tolist()
        except (AttributeError, NotImplementedError, ValueError):  # a step of a pipeline has no names
            return []
        return names
