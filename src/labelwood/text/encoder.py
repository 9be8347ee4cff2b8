"""The base of both encoders: their common parameters, the checks of texts, the scikit-learn interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from labelwood.errors import LabelwoodError
from labelwood.params import Needs, Param, check_parameters
from labelwood.progress import Progress
from labelwood.run_context import thread_count
from labelwood.sparse import CSR, I32, I64, U8
from labelwood.storage import packed_strings
from labelwood.validation.column_names import n_dimensions

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

_LONGEST = 1000  # words or characters of the longest term


class TextEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The base of the encoders: ``encode`` returns a :class:`CSR`, ``transform`` a scipy array."""

    encoder_name: ClassVar[str] = ""

    analyzer: str
    ngram_range: tuple[int, int]
    lowercase: bool
    token_length: int
    n_jobs: int | None

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn from texts; ``y`` is not used."""
        self.fit_encode(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> sp.csr_array[np.float32]:
        """Learn from texts and return their vectors, one row per text."""
        return self.fit_encode(texts).to_scipy()

    def transform(self, texts: Iterable[str]) -> sp.csr_array[np.float32]:
        """Return the vectors of texts, one row per text."""
        return self.encode(texts).to_scipy()

    def fit_encode(self, texts: Iterable[str], *, progress: Progress = None) -> CSR:
        """``fit_transform`` to a CSR; ``progress`` is called with millionths of the work."""
        raise NotImplementedError

    def encode(self, texts: Iterable[str], *, progress: Progress = None) -> CSR:
        """``transform`` to a CSR."""
        raise NotImplementedError

    def term_of(self, text: str) -> Callable[[int], str | None]:
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

    def _check(self) -> None:
        check_parameters(self)
        owner, span = type(self).__name__, self.ngram_range
        whole = len(span) == 2 and all(isinstance(n, int | np.integer) for n in span)
        if not whole or not 1 <= span[0] <= span[1] <= _LONGEST:
            raise LabelwoodError(
                f"{owner}: ngram_range must be two integers, 1 <= shortest <= longest <= {_LONGEST}; got {span!r}"
            )

    def _pack(self, texts: Iterable[str]) -> tuple[U8, I64]:
        return packed_strings.pack(list_texts(texts, owner=type(self).__name__))

    def _cut(self) -> dict[str, Any]:
        """The kernels' options for cutting a text into terms."""
        shortest, longest = self.ngram_range
        return {
            "unit": self.analyzer,
            "shortest": shortest,
            "longest": longest,
            "min_length": self.token_length,
            "lowercase": bool(self.lowercase),
        }

    def _threads(self) -> int:
        return thread_count(self.n_jobs, owner=type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def list_texts(texts: Iterable[str], *, owner: str) -> list[str]:
    """Texts as a list; a table of one column gives its column, anything else is refused with advice."""
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
                "Choose a column, or join columns to one text per row first."
            )
        texts = np.asarray(table)[:, 0].tolist()
    listed = texts if isinstance(texts, list) else list(texts)
    for position, text in enumerate(listed):
        if not isinstance(text, str):
            raise LabelwoodError(
                f"{owner}: every text must be a string; got {type(text).__name__} at position {position}"
            )
    return listed
