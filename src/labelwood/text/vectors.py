"""Vectors beside words: from a model that the user brings, such as a sentence transformer, or made beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelwood.errors import FormatError, LabelwoodError
from labelwood.hybrid import beside, without_words
from labelwood.progress import Progress
from labelwood.sparse import CSR, F32
from labelwood.text.encoder import TextEncoder, list_texts
from labelwood.text.fields import Document
from labelwood.text.tfidf import TfidfEncoder
from labelwood.text.vector_cache import VectorCache
from labelwood.validation.embedded import Embedded
from labelwood.validation.features import as_vectors

DEFAULT_WORDS = "tfidf"
_WORDS = "words."  # starts the names of the arrays of the encoder of words
_AT_ONCE = 1024  # texts that the model encodes between two steps of the progress bar
_MILLION = 1_000_000


class VectorEncoder(TextEncoder):
    """Vectors of texts by ``model``, beside the columns of an encoder of words.

    ``model`` is anything with ``encode(texts)`` that returns one vector per text: a ``SentenceTransformer``, a
    ``StaticModel`` of model2vec, or an object of your own. Without a model, every text must come with its vector, as
    :class:`Embedded`. ``word_encoder`` reads the words: ``"tfidf"``, an encoder, or None for vectors alone.

    ``cache`` is a file that keeps the vectors: no text is encoded twice. It needs ``name``, the name and version of the
    model, because another model makes other vectors. Fields of a record are joined for the model.

    The model itself is not saved. After loading, set ``encoder_.model``, or pass :class:`Embedded`.

    >>> class Lengths:
    ...     def encode(self, texts):
    ...         return [[len(text), 1.0] for text in texts]
    >>> VectorEncoder(Lengths(), word_encoder=None).fit_transform(["a", "a cat"]).toarray().tolist()
    [[1.0, 1.0], [5.0, 1.0]]
    """

    encoder_name: ClassVar[str] = "vectors"
    word_encoder_: TextEncoder | None
    width_: int

    def __init__(
        self, model: Any = None, *, word_encoder: Any = DEFAULT_WORDS, cache: str | None = None, name: str | None = None
    ) -> None:
        self.model, self.word_encoder, self.cache, self.name = model, word_encoder, cache, name

    def __sklearn_clone__(self) -> VectorEncoder:
        """A copy with the same model: it may be large, and encoding does not change it."""
        words = clone(self.word_encoder) if isinstance(self.word_encoder, TextEncoder) else self.word_encoder
        return VectorEncoder(self.model, word_encoder=words, cache=self.cache, name=self.name)

    def fit_encode(self, texts: Iterable[Document], *, progress: Progress = None) -> CSR:
        """Fit the encoder of words; return the rows of the texts."""
        words = self._unfitted_words()
        rows = self._with_vectors(texts, words, progress, None)
        if not len(rows):
            raise LabelwoodError("VectorEncoder: there must be at least one text with its vector; got none")
        sparse = None if words is None else words.fit_encode(rows.texts)
        self.word_encoder_, self.width_ = words, int(rows.vectors.shape[1])
        self.n_features_ = self.width_ + (0 if sparse is None else sparse.n_cols)
        return without_words(rows.vectors) if sparse is None else beside(sparse, rows.vectors)

    def encode(self, texts: Iterable[Document], *, progress: Progress = None) -> CSR:
        """The rows of texts."""
        words = self.word_encoder_
        rows = self._with_vectors(texts, words, progress, self.width_)
        return without_words(rows.vectors) if words is None else beside(words.encode(rows.texts), rows.vectors)

    def term_of(self, text: Document) -> Callable[[int], str | None]:
        """Return a function from a column of the row of ``text`` to its word, or to the place in the vector."""
        n_sparse = self.n_features_ - self.width_
        word = None if self.word_encoder_ is None else self.word_encoder_.term_of(text)

        def named(column: int) -> str | None:
            return f"vector[{column - n_sparse}]" if column >= n_sparse or word is None else word(column)

        return named

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The width of the vectors, and the state of the encoder of words."""
        words = {} if self.word_encoder_ is None else self.word_encoder_.state()
        return {"width": np.array([self.width_], np.int64), **{_WORDS + name: own for name, own in words.items()}}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The inverse of :meth:`state`; ``word_encoder`` is the encoder of words, not restored."""
        width = arrays["width"]
        if width.dtype != np.int64 or width.shape != (1,) or width[0] < 1:
            raise FormatError("the width of the vectors must be one positive number")
        self.width_ = self.n_features_ = int(width[0])
        self.word_encoder_ = self._unfitted_words()
        if self.word_encoder_ is not None:
            own = {name.removeprefix(_WORDS): array for name, array in arrays.items() if name.startswith(_WORDS)}
            self.word_encoder_.restore(own)
            self.n_features_ += self.word_encoder_.n_features_
        return self

    def described(self) -> dict[str, Any]:
        """The parameters, without the model and the place of its cache, which belong to this machine."""
        words = self.word_encoder_
        inner = None if words is None else {"name": words.encoder_name, "parameters": words.described()}
        return {"word_encoder": inner, "name": self.name}

    def native(self) -> TextEncoder:
        """The encoder to save: its encoder of words is one of this library."""
        words = self.word_encoder_
        if words is None or words.native() is words:
            return self
        saved = VectorEncoder(self.model, word_encoder=words.native(), cache=self.cache, name=self.name)
        saved.word_encoder_, saved.width_, saved.n_features_ = words.native(), self.width_, self.n_features_
        return saved

    def listed(self, texts: Iterable[Document]) -> Any:
        """The texts as a list; texts with vectors stay together."""
        if isinstance(texts, Embedded):
            return texts.checked(type(self).__name__)
        return self._listed(texts, self._unfitted_words())

    def check_texts(self, texts: Iterable[Document]) -> None:
        """Raise if one of the texts is none that the encoder takes."""
        rows = self._with_vectors(texts, self.word_encoder_, None, self.width_)
        if self.word_encoder_ is not None:
            self.word_encoder_.check_texts(rows.texts)

    def with_fields(self, fields: Mapping[str, Any]) -> Self:
        """The encoder, with words of the fields of a record."""
        words = self._unfitted_words()
        if words is None:
            raise LabelwoodError("VectorEncoder: fields need an encoder of words; got word_encoder=None")
        self.word_encoder = words.with_fields(fields)
        return self

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields of a record that the words come from."""
        return () if self.word_encoder_ is None else self.word_encoder_.field_names

    @property
    def vector_width(self) -> int:
        """The numbers of a vector that must stand beside each text; 0 if the model of this process makes them."""
        return self.width_ if self.model is None else 0

    def set_threads(self, n_jobs: int) -> None:
        """Read words with this many threads from here on."""
        if self.word_encoder_ is not None:
            self.word_encoder_.set_threads(n_jobs)

    def _unfitted_words(self) -> TextEncoder | None:
        if isinstance(self.word_encoder, TextEncoder):
            made: TextEncoder = clone(self.word_encoder)
            return made
        if self.word_encoder not in (None, DEFAULT_WORDS):
            raise LabelwoodError(
                "VectorEncoder: word_encoder must be 'tfidf', a TfidfEncoder, a HashingEncoder or None; "
                f"got {self.word_encoder!r}"
            )
        return None if self.word_encoder is None else TfidfEncoder()

    def _listed(self, texts: Iterable[Document], words: TextEncoder | None) -> list[Document]:
        return [*list_texts(texts, owner=type(self).__name__)] if words is None else words.listed(texts)

    def _with_vectors(
        self, texts: Iterable[Document], words: TextEncoder | None, progress: Progress, width: int | None
    ) -> Embedded:
        """Checked texts with their vectors; ``width`` is the width that the vectors must have."""
        owner = type(self).__name__
        rows = texts.checked(owner) if isinstance(texts, Embedded) else self._encoded(texts, words, progress)
        if not len(rows):
            return Embedded([], np.empty((0, width or 1), np.float32))
        if width not in (None, rows.vectors.shape[1]):
            raise LabelwoodError(f"{owner}: vectors must have {width} columns; got {rows.vectors.shape[1]}")
        return rows

    def _encoded(self, texts: Iterable[Document], words: TextEncoder | None, progress: Progress) -> Embedded:
        owner = type(self).__name__
        if self.model is None:
            made_by = "" if self.name is None else f" of {self.name}"
            raise LabelwoodError(
                f"{owner}: every text must come with its vector{made_by}: pass labelwood.Embedded(texts, vectors), "
                "--vectors FILE on the command line, or set encoder_.model"
            )
        if not callable(getattr(self.model, "encode", None)):
            raise LabelwoodError(f"{owner}: model must have a method encode(texts); got {self.model!r}")
        if self.cache is not None and self.name is None:
            raise LabelwoodError(f"{owner}: a cache needs name, the name and version of the model; got None")
        listed = self._listed(texts, words)
        plain = [text if isinstance(text, str) else "\n".join(filter(None, text.values())) for text in listed]
        distinct = list(dict.fromkeys(plain))
        cache = None if self.cache is None or self.name is None else VectorCache(self.cache, self.name)
        known: dict[str, F32] = {} if cache is None else cache.read(distinct)
        new = [text for text in distinct if text not in known]
        for start in range(0, len(new), _AT_ONCE):
            part = new[start : start + _AT_ONCE]
            made = self._made(part)
            if cache is not None:
                cache.write(part, made)
            known.update(zip(part, made, strict=True))
            if progress is not None:
                progress(_MILLION * min(start + _AT_ONCE, len(new)) // len(new))
        if not plain:
            return Embedded([], [])
        widths = sorted({len(vector) for vector in known.values()})
        if len(widths) > 1:
            raise LabelwoodError(f"{owner}: all vectors of {self.name} must have the same width; got {widths}")
        return Embedded(listed, np.stack([known[text] for text in plain]))

    def _made(self, texts: list[str]) -> F32:
        owner = type(self).__name__
        vectors = as_vectors(self.model.encode(texts), owner=f"{owner}: model.encode", what="vectors")
        if len(vectors) != len(texts) or vectors.shape[1] == 0:
            raise LabelwoodError(
                f"{owner}: model.encode must return one vector per text; got an array of shape {vectors.shape} "
                f"for {len(texts)} texts"
            )
        return vectors.astype(np.float32)
