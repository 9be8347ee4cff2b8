"""What both encoders share: their options, the cutting of texts, and what scikit-learn asks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from labelwood import strings
from labelwood.errors import LabelwoodError
from labelwood.params import Param, check_parameters
from labelwood.progress import thread_count
from labelwood.sparse import CSR, I32, I64

if TYPE_CHECKING:
    import scipy.sparse as sp

Progress = Callable[[int], None] | None
Analyzer = Annotated[
    Literal["word", "char", "char_wb"],
    Param("what a term is made of: words, characters, or characters within words (char_wb)"),
]
NgramRange = Annotated[
    tuple[int, int], Param("shortest and longest run of words or characters that is a term, as (1, 2)")
]
Lowercase = Annotated[bool, Param("turn texts into lower case")]
TokenLength = Annotated[int, Param("characters of a word at least; shorter ones are passed over", ge=1)]
Binary = Annotated[bool, Param("count a term once however often a text has it")]
Norm = Annotated[Literal["l2", "l1"] | None, Param("scale every row to this length; None: leave it")]

Counts = tuple[I64, I32, I32]  # indptr, indices, counts

_LONGEST = 1000  # characters or words of a term


class TextEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The base of the encoders: texts in, a :class:`CSR` out of ``encode``, scipy out of ``transform``."""

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
        """Learn from texts and return their vectors, one row each."""
        return self.fit_encode(texts).to_scipy()

    def transform(self, texts: Iterable[str]) -> sp.csr_array[np.float32]:
        """The vectors of texts, one row each."""
        return self.encode(texts).to_scipy()

    def fit_encode(self, texts: Iterable[str], *, progress: Progress = None) -> CSR:
        """As ``fit_transform``, for the rest of the library; ``progress`` is told millionths of the work."""
        raise NotImplementedError

    def encode(self, texts: Iterable[str], *, progress: Progress = None) -> CSR:
        """As ``transform``, for the rest of the library."""
        raise NotImplementedError

    def term_of(self, text: str) -> Callable[[int], str | None]:
        """A function from a column of the text's vector to the term that it stands for."""
        raise NotImplementedError

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What was learnt, as arrays to save."""
        raise NotImplementedError

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Take what :meth:`state` gave; every invariant that a damaged file could break is checked."""
        raise NotImplementedError

    def _check(self) -> None:
        check_parameters(self)
        owner, span = type(self).__name__, self.ngram_range
        whole = len(span) == 2 and all(isinstance(n, int | np.integer) for n in span)
        if not whole or not 1 <= span[0] <= span[1] <= _LONGEST:
            raise LabelwoodError(
                f"{owner}: ngram_range must be two integers, 1 <= shortest <= longest <= {_LONGEST}; got {span!r}"
            )

    def _pack(self, texts: Iterable[str]) -> tuple[strings.U8, I64]:
        owner = type(self).__name__
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise LabelwoodError(
                f"{owner}: texts must be a list of strings; got {type(texts).__name__}. A single text is a list of one."
            )
        listed = texts if isinstance(texts, list) else list(texts)
        for position, text in enumerate(listed):
            if not isinstance(text, str):
                raise LabelwoodError(
                    f"{owner}: every text must be a string; got {type(text).__name__} in place {position}"
                )
        return strings.pack(listed)

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
