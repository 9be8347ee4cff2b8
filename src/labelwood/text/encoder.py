"""The base of both encoders: their common parameters, the checks of texts, the scikit-learn interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from labelwood import _core
from labelwood.errors import LabelwoodError
from labelwood.params import Needs, Param, check_parameters
from labelwood.progress import Progress
from labelwood.run_context import thread_count
from labelwood.sparse import CSR, F64, I32, I64, U8
from labelwood.storage import packed_strings
from labelwood.text.fields import Document, Field, list_records, read_fields, strings_of, weights_of
from labelwood.text.words import WordReader
from labelwood.validation.column_names import is_missing, n_dimensions
from labelwood.validation.embedded import Embedded

if TYPE_CHECKING:
    import scipy.sparse as sp

Analyzer = Annotated[
    Literal["word", "char", "char_wb"], Param("unit of a term: words, characters, or characters within words (char_wb)")
]
NgramRange = Annotated[tuple[int, int], Param("shortest and longest term, in words or characters")]
Lowercase = Annotated[bool, Param("convert texts to lower case")]
TokenLength = Annotated[
    int,
    Param(
        "shorter words are ignored, in characters",
        ge=1,
        needs=Needs("analyzer=word", lambda own: own["analyzer"] == "word"),
    ),
]
Binary = Annotated[bool, Param("count every term of a text once")]
Norm = Annotated[Literal["l2", "l1"] | None, Param("norm to which every row is scaled; None does not scale")]

Counts = tuple[I64, I32, I32]  # indptr, indices, counts


class TextEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The base of the encoders: ``encode`` returns a :class:`CSR`, ``transform`` a scipy array."""

    encoder_name: ClassVar[str] = ""

    analyzer: str
    ngram_range: tuple[int, int]
    lowercase: bool
    token_length: int
    fields: dict[str, Any] | None = None
    words: str
    language: str | None
    drop_stop_words: bool
    fold_accents: bool
    n_jobs: int | None

    def fit(self, texts: Iterable[Document], y: Any = None) -> Self:
        """Learn from texts; ``y`` is not used."""
        self.fit_encode(texts)
        return self

    def fit_transform(self, texts: Iterable[Document], y: Any = None) -> sp.csr_array[np.float32]:
        """Learn from texts and return their vectors, one row per text."""
        return self.fit_encode(texts).to_scipy()

    def transform(self, texts: Iterable[Document]) -> sp.csr_array[np.float32]:
        """Return the vectors of texts, one row per text."""
        return self.encode(texts).to_scipy()

    def fit_encode(self, texts: Iterable[Document], *, progress: Progress = None) -> CSR:
        """``fit_transform`` to a CSR; ``progress`` is called with millionths of the work."""
        raise NotImplementedError

    def encode(self, texts: Iterable[Document], *, progress: Progress = None) -> CSR:
        """``transform`` to a CSR."""
        raise NotImplementedError

    def term_of(self, text: Document) -> Callable[[int], str | None]:
        """Return a function from a column of the vector of ``text`` to the term of that column."""
        raise NotImplementedError

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the fitted state as arrays."""
        raise NotImplementedError

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take the arrays that :meth:`state` returned, and check them, because the file may be damaged."""
        raise NotImplementedError

    def native(self) -> TextEncoder:
        """Return the encoder of this library that gives the same vectors: itself."""
        return self

    def listed(self, texts: Iterable[Document]) -> list[Document]:
        """The texts, or the records if the encoder has fields, as a list."""
        fields = self._fields()
        owner = type(self).__name__
        return list_records(texts, fields, owner=owner) if fields else [*list_texts(texts, owner=owner)]

    def check_texts(self, texts: Iterable[Document]) -> None:
        """Raise if one of the texts is none that the encoder takes."""
        self._strings(texts)

    def described(self) -> dict[str, Any]:
        """The parameters as JSON has them."""
        given = self.get_params().items()
        return {name: value.item() if isinstance(value, np.generic) else value for name, value in given}

    def with_fields(self, fields: Mapping[str, Any]) -> Self:
        """The encoder, told the fields of a record."""
        self.set_params(fields=dict(fields))
        return self

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields of a record that are read; none if the encoder reads plain texts."""
        return tuple(self.fields or ())

    @property
    def vector_width(self) -> int:
        """The numbers of a vector that must stand beside each text: none."""
        return 0

    def set_threads(self, n_jobs: int) -> None:
        """Encode with this many threads from here on."""
        self.n_jobs = n_jobs

    def _check(self) -> None:
        check_parameters(self)
        self._fields()
        WordReader.of(self)

    def _fields(self) -> tuple[Field, ...]:
        return read_fields(self.fields, self.ngram_range, owner=type(self).__name__)

    def _strings(self, texts: Iterable[Document]) -> list[str]:
        """The strings of the texts: one for each field of a record."""
        fields = self._fields()
        owner = type(self).__name__
        if not fields:
            return list_texts(texts, owner=owner)
        return strings_of(list_records(texts, fields, owner=owner), fields, owner=owner)

    def _read(self, texts: Iterable[Document]) -> tuple[tuple[U8, I64], dict[str, Any] | None]:
        """The strings of the texts, packed, and the forms of their words, if words change."""
        strings = self._strings(texts)
        packed, reader = packed_strings.pack(strings), WordReader.of(self)
        if reader is None:
            return packed, None
        n_fields = max(1, len(self._fields()))
        return packed, reader.forms_of(strings, n_fields, packed, self._cut(), self._threads())

    def _cut(self) -> dict[str, Any]:
        """The kernels' options for cutting a text into terms."""
        spans = np.array([field.ngram_range for field in self._fields()] or [self.ngram_range], np.int64)
        return {
            "unit": self.analyzer,
            "shortest": np.ascontiguousarray(spans[:, 0]),
            "longest": np.ascontiguousarray(spans[:, 1]),
            "min_length": self.token_length,
            "lowercase": bool(self.lowercase),
        }

    def _weights(self, counts: Counts, scale: F64 | None, how: dict[str, Any], n_columns: int) -> CSR:
        """The vectors of documents from the counts of their strings."""
        fields, threads = self._fields(), self._threads()
        if fields:
            indptr, indices, data = _core.weigh_fields(*counts, scale, weights_of(fields), how, threads)
            return CSR(indptr, indices, data, n_columns)
        return CSR(counts[0], counts[1], _core.weigh_counts(*counts, scale, how, threads), n_columns)

    def _threads(self) -> int:
        return thread_count(self.n_jobs, owner=type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def list_texts(texts: Iterable[Any], *, owner: str) -> list[str]:
    """Texts as a list; a table of one column gives its column, anything else is refused with advice."""
    Embedded.refuse(texts, owner)
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise LabelwoodError(
            f"{owner}: texts must be a list of strings; got {type(texts).__name__}. "
            "Pass a single text as a list of one."
        )
    if n_dimensions(texts) == 2:
        table: Any = texts
        if table.shape[1] != 1:
            raise LabelwoodError(
                f"{owner}: texts must be one column of a table; got {table.shape[1]} columns. "
                "Choose a column, name the columns as fields, or join them to one text per row first."
            )
        texts = np.asarray(table)[:, 0].tolist()
    listed = texts if isinstance(texts, list) else list(texts)
    for position, text in enumerate(listed):
        if not isinstance(text, str):
            if is_missing(text):
                raise LabelwoodError(
                    f"{owner}: every text must be a string; the one at position {position} is missing ({text}). "
                    "Fill missing texts with '', as in texts.fillna('')."
                )
            raise LabelwoodError(
                f"{owner}: every text must be a string; got {type(text).__name__} at position {position}"
                + ". Records need fields." * isinstance(text, Mapping)
            )
    return listed
