"""Tf-idf: texts to vectors with a vocabulary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from labelwood import _core
from labelwood.errors import FormatError, LabelwoodError
from labelwood.params import Needs, NJobs, Param
from labelwood.progress import Progress
from labelwood.sparse import CSR, F64, I64, MAX_COLUMNS, U8
from labelwood.storage import packed_strings
from labelwood.text.encoder import Analyzer, Binary, Counts, Lowercase, NgramRange, Norm, TextEncoder, TokenLength
from labelwood.text.fields import Document, Fields
from labelwood.text.words import FoldAccents, Language, StopWords, Words

_IDF, _UTF8, _OFFSETS = "idf", "vocabulary.utf8", "vocabulary.offsets"


class TfidfEncoder(TextEncoder):
    """Tf-idf: one column per term of the training texts, weighted by term frequency and rarity.

    The result equals that of scikit-learn's ``TfidfVectorizer`` with the same parameters, in float32. Columns are in
    the order of the terms' code points. ``token_length=2`` corresponds to its default ``token_pattern``. One default
    differs, because it is better for tagging: ``sublinear_tf`` is True.

    Fitted attributes: ``vocabulary_`` (term to column), ``idf_``, ``n_features_``.

    >>> encoder = TfidfEncoder(n_jobs=1)
    >>> encoder.fit_transform(["the cat sat", "the dog sat", "the dogs"]).shape
    (3, 5)
    >>> encoder.get_feature_names_out().tolist()
    ['cat', 'dog', 'dogs', 'sat', 'the']
    """

    encoder_name: ClassVar[str] = "tfidf"

    idf_: F64 | None
    _utf8: U8
    _offsets: I64

    def __init__(
        self,
        *,
        analyzer: Analyzer = "word",
        ngram_range: NgramRange = (1, 1),
        lowercase: Lowercase = True,
        token_length: TokenLength = 2,
        fields: Fields = None,
        words: Words = "forms",
        language: Language = None,
        drop_stop_words: StopWords = False,
        fold_accents: FoldAccents = False,
        min_df: Annotated[
            int | float, Param("ignore terms that occur in fewer texts: a count, or a share such as 0.01", ge=0)
        ] = 1,
        max_df: Annotated[
            int | float, Param("ignore terms that occur in more texts: a count, or a share such as 0.5", ge=0)
        ] = 1.0,
        max_features: Annotated[
            int | None, Param("keep only the most frequent terms, at most this many; None keeps all", ge=1)
        ] = None,
        binary: Binary = False,
        norm: Norm = "l2",
        use_idf: Annotated[bool, Param("weight terms by inverse document frequency")] = True,
        smooth_idf: Annotated[
            bool,
            Param(
                "compute the idf as if one more text contained every term",
                needs=Needs("use_idf", lambda own: bool(own["use_idf"])),
            ),
        ] = True,
        sublinear_tf: Annotated[
            bool,
            Param(
                "replace the term frequency n by 1 + log(n)",
                needs=Needs("counts, which binary takes away", lambda own: not own["binary"]),
            ),
        ] = True,
        n_jobs: NJobs = None,
    ) -> None:
        self.analyzer = analyzer
        self.ngram_range = ngram_range
        self.lowercase = lowercase
        self.token_length = token_length
        self.fields = fields
        self.words = words
        self.language = language
        self.drop_stop_words = drop_stop_words
        self.fold_accents = fold_accents
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.binary = binary
        self.norm = norm
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.sublinear_tf = sublinear_tf
        self.n_jobs = n_jobs

    def fit_encode(self, texts: Iterable[Document], *, progress: Progress = None) -> CSR:
        """Learn the vocabulary and the idf; return the vectors of the texts."""
        self._check()
        (utf8, offsets), forms = self._read(texts)
        n_texts = (len(offsets) - 1) // max(1, len(self._fields()))
        fewest, most = self._document_bounds(n_texts)
        options = {**self._cut(), "min_documents": math.ceil(fewest), "max_documents": math.floor(most)}
        counts, terms_utf8, terms_offsets, n_documents, totals = _core.learn_terms(
            utf8, offsets, options, forms, self._threads(), progress
        )
        if self.max_features is not None and len(n_documents) > self.max_features:
            # NumPy's sort decides among equally frequent terms, as in TfidfVectorizer.
            kept = np.sort((-totals.astype(np.float64)).argsort()[: self.max_features])
            counts = _only_columns(counts, kept, len(totals))
            terms_utf8, terms_offsets = _only_strings(terms_utf8, terms_offsets, kept)
            n_documents = n_documents[kept]
        if len(n_documents) == 0:
            raise LabelwoodError(
                f"TfidfEncoder: the {n_texts} texts have no terms; "
                "if they are not empty, try a lower min_df, a higher max_df or token_length=1."
            )
        idf = np.log((n_texts + self.smooth_idf) / (n_documents + float(self.smooth_idf))) + 1.0
        self._learnt(terms_utf8, terms_offsets, idf if self.use_idf else None)
        return self._weigh(counts)

    def encode(self, texts: Iterable[Document], *, progress: Progress = None) -> CSR:
        """Return the vectors of texts; terms that are not in the vocabulary are ignored."""
        self._check_fitted()
        (utf8, offsets), forms = self._read(texts)
        counts: Counts = _core.find_terms(
            utf8, offsets, self._utf8, self._offsets, self._slots, self._cut(), forms, self._threads(), progress
        )
        return self._weigh(counts)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the terms in the order of their columns."""
        self._check_fitted()
        return np.array(packed_strings.unpack(self._utf8, self._offsets, what="a term"), dtype=object)

    def term_of(self, text: Document) -> Callable[[int], str | None]:
        """Return a function from a column to its term; ``text`` is not used."""
        self._check_fitted()
        return lambda column: packed_strings.unpack(self._utf8, self._offsets, np.array([column]), what="a term")[0]

    @property
    def n_features_(self) -> int:
        """Number of columns."""
        self._check_fitted()
        return len(self._offsets) - 1

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Term to column."""
        return {term: column for column, term in enumerate(self.get_feature_names_out().tolist())}

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the vocabulary and the idf as arrays."""
        self._check_fitted()
        return _arrays(self._utf8, self._offsets, self.idf_)

    @staticmethod
    def state_of(terms: list[str], idf: F64 | None) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of a vocabulary, in the order of its columns, as :meth:`state` does."""
        return _arrays(*packed_strings.pack(terms), idf)

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take the arrays that :meth:`state` returned, checked."""
        self._check()
        utf8, offsets = arrays[_UTF8], arrays[_OFFSETS]
        idf = arrays[_IDF] if self.use_idf else None
        count = len(offsets) - 1
        if not 1 <= count <= MAX_COLUMNS or not packed_strings.are_sound(utf8, offsets, count):
            raise FormatError("the vocabulary of the encoder is damaged: its offsets do not match its text")
        if idf is not None and not (idf.dtype == np.float64 and idf.shape == (count,) and np.isfinite(idf).all()):
            raise FormatError("the idf of the encoder is damaged: it must be one finite number per term")
        self._learnt(utf8, offsets, idf)
        return self

    def _learnt(self, utf8: U8, offsets: I64, idf: F64 | None) -> None:
        self.__dict__.pop("_slots", None)
        self._utf8, self._offsets, self.idf_ = utf8, offsets, idf

    @cached_property
    def _slots(self) -> npt.NDArray[np.uint64]:
        slots = _core.index_terms(self._utf8, self._offsets)
        if len(slots) == 0:
            raise FormatError("the vocabulary of the encoder is damaged: it contains a term twice")
        return slots

    def _document_bounds(self, n_texts: int) -> tuple[float, float]:
        fewest, most = (
            bound if isinstance(bound, int | np.integer) else _share(bound, name) * n_texts
            for name, bound in (("min_df", self.min_df), ("max_df", self.max_df))
        )
        if most < fewest:
            raise LabelwoodError(
                f"TfidfEncoder: max_df must not be below min_df; got {self.max_df} and {self.min_df} "
                f"for {n_texts} texts"
            )
        return fewest, most

    def _weigh(self, counts: Counts) -> CSR:
        binary, norm = bool(self.binary), self.norm or "none"
        weighing = {"sublinear": bool(self.sublinear_tf), "binary": binary, "norm": norm}
        return self._weights(counts, self.idf_, weighing, self.n_features_)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("TfidfEncoder: not fitted yet; call fit(texts) first")

    def __sklearn_is_fitted__(self) -> bool:
        return "_offsets" in vars(self)


def _arrays(utf8: U8, offsets: I64, idf: F64 | None) -> dict[str, npt.NDArray[Any]]:
    return {_UTF8: utf8, _OFFSETS: offsets, **({} if idf is None else {_IDF: idf})}


def _share(bound: float, name: str) -> float:
    if bound > 1:
        raise LabelwoodError(f"TfidfEncoder: {name} must be an integer or a share of at most 1.0; got {bound!r}")
    return bound


def _only_columns(counts: Counts, kept: npt.NDArray[np.intp], n_columns: int) -> Counts:
    indptr, indices, values = counts
    renumbered = np.full(n_columns, -1, np.int32)
    renumbered[kept] = np.arange(len(kept), dtype=np.int32)
    columns = renumbered[indices]
    stays = columns >= 0
    before = np.zeros(len(indices) + 1, np.int64)
    np.cumsum(stays, out=before[1:])
    return before[indptr], columns[stays], values[stays]


def _only_strings(utf8: U8, offsets: I64, kept: npt.NDArray[np.intp]) -> tuple[U8, I64]:
    sizes = np.diff(offsets)
    stays = np.zeros(len(sizes), bool)
    stays[kept] = True
    return utf8[np.repeat(stays, sizes)], np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
