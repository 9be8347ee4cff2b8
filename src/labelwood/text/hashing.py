"""Hashing: texts to vectors without a vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self

import numpy.typing as npt
from sklearn.utils import murmurhash3_32

from labelwood import _core
from labelwood.errors import LabelwoodError
from labelwood.params import NJobs, Param
from labelwood.progress import Progress
from labelwood.sparse import CSR, MAX_COLUMNS
from labelwood.text.encoder import Analyzer, Binary, Counts, Lowercase, NgramRange, Norm, TextEncoder, TokenLength
from labelwood.text.fields import Document, Fields
from labelwood.text.tfidf import TfidfEncoder
from labelwood.text.words import FoldAccents, Language, StopWords, Words

_CUT = (  # parameters that decide the terms
    "analyzer", "ngram_range", "lowercase", "token_length", "fields", "words", "language", "drop_stop_words",
    "fold_accents",
)  # fmt: skip


class HashingEncoder(TextEncoder):
    """Hash terms to a fixed number of columns; there is no vocabulary, so a stream may always bring new words.

    The result equals that of scikit-learn's ``HashingVectorizer`` with the same parameters, in float32. Two terms may
    share a column; random signs let such collisions cancel on average.

    >>> HashingEncoder(n_features=1000, n_jobs=1).transform(["a new word", "another"]).shape
    (2, 1000)
    """

    encoder_name: ClassVar[str] = "hashing"

    def __init__(
        self,
        *,
        n_features: Annotated[int, Param("number of columns", ge=1, le=MAX_COLUMNS)] = 2**20,
        analyzer: Analyzer = "word",
        ngram_range: NgramRange = (1, 1),
        lowercase: Lowercase = True,
        token_length: TokenLength = 2,
        fields: Fields = None,
        words: Words = "forms",
        language: Language = None,
        drop_stop_words: StopWords = False,
        fold_accents: FoldAccents = False,
        alternate_sign: Annotated[bool, Param("give half of the terms a negative sign")] = True,
        binary: Binary = False,
        norm: Norm = "l2",
        n_jobs: NJobs = None,
    ) -> None:
        self.n_features = n_features
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.lowercase = lowercase
        self.token_length = token_length
        self.fields = fields
        self.words = words
        self.language = language
        self.drop_stop_words = drop_stop_words
        self.fold_accents = fold_accents
        self.alternate_sign = alternate_sign
        self.binary = binary
        self.norm = norm
        self.n_jobs = n_jobs

    def fit_encode(self, texts: Iterable[Document], *, progress: Progress = None) -> CSR:
        """Return the vectors of texts; there is nothing to learn."""
        return self.encode(texts, progress=progress)

    def encode(self, texts: Iterable[Document], *, progress: Progress = None) -> CSR:
        """Return the vectors of texts."""
        self._check()
        (utf8, offsets), forms = self._read(texts)
        options = {**self._cut(), "n_columns": self.n_features, "signed_counts": bool(self.alternate_sign)}
        counts: Counts = _core.hash_terms(utf8, offsets, options, forms, self._threads(), progress)
        weighing = {"sublinear": False, "binary": bool(self.binary), "norm": self.norm or "none"}
        return self._weights(counts, None, weighing, int(self.n_features))

    def term_of(self, text: Document) -> Callable[[int], str | None]:
        """Return a function from a column to the terms of ``text`` in that column, joined by +."""
        cut = {name: getattr(self, name) for name in _CUT}
        found: dict[int, list[str]] = {}
        try:
            terms = TfidfEncoder(**cut, n_jobs=1).fit([text]).get_feature_names_out().tolist()
        except LabelwoodError:  # a text without terms
            terms = []
        for term in terms:
            found.setdefault(abs(murmurhash3_32(term, seed=0)) % int(self.n_features), []).append(term)
        return lambda column: " + ".join(found[column]) if column in found else None

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return no arrays: there is no fitted state."""
        return {}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Check the parameters: there is no fitted state."""
        self._check()
        return self

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        return int(self.n_features)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
