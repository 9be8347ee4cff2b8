"""Vectors of texts, such as sentence embeddings: from an encoder that the user brings, or made beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelwood.errors import FormatError, LabelwoodError
from labelwood.hybrid import beside, without_words
from labelwood.progress import Progress
from labelwood.sparse import CSR, F32
from labelwood.text.encoder import TextEncoder, list_texts
from labelwood.text.vector_cache import VectorCache
from labelwood.validation.features import as_vectors

_WORDS = "words."  # starts the names of the arrays of the encoder of words
_MILLION = 1_000_000


@dataclass(frozen=True)
class Embedded:
    """Texts with their vectors, one row each: what a model of texts and vectors takes in place of texts.

    >>> import numpy as np
    >>> from labelwood import TextClassifier
    >>> pets = Embedded(["a cat", "a dog"], np.eye(2, dtype=np.float32))
    >>> model = TextClassifier().fit(pets, [["cats"], ["dogs"]])
    >>> model.predict_topk(Embedded(["it barks"], [[0.1, 0.9]]), k=1)[0].tolist()
    [['dogs']]
    """

    texts: Any
    vectors: Any

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def checked(self, owner: str) -> tuple[list[str], npt.NDArray[Any]]:
        """The texts as a list, and the vectors as an array; both have the same length."""
        listed, vectors = list_texts(self.texts, owner=owner), as_vectors(self.vectors, owner=owner)
        if len(listed) != len(vectors):
            raise LabelwoodError(f"{owner}: every text must have one vector; got {len(listed)} and {len(vectors)}")
        return listed, vectors


class VectorEncoder(TextEncoder):
    """Vectors of texts by ``model``, beside the columns of the encoder ``words``, if there is one.

    ``model`` is anything with ``encode(texts)`` that returns one vector per text: a ``SentenceTransformer``, a
    ``StaticModel`` of model2vec, or an object of your own. Without a model, texts must come with their vectors, as
    :class:`Embedded`. ``cache`` is a file that keeps the vectors of texts: no text is encoded twice. It needs ``name``,
    the name and version of the model, because another model has other vectors.

    The model itself is not saved. After loading, set ``encoder_.model`` to it, or pass texts as :class:`Embedded`.
    """

    encoder_name: ClassVar[str] = "vectors"

    def __init__(
        self,
        model: Any = None,
        *,
        words: TextEncoder | None = None,
        cache: str | None = None,
        name: str | None = None,
        batch_size: int = 256,
    ) -> None:
        self.model, self.words, self.cache, self.name, self.batch_size = model, words, cache, name, batch_size

    def __sklearn_clone__(self) -> VectorEncoder:
        """A copy with the same model: a model may be large, and encoding does not change it."""
        words = None if self.words is None else clone(self.words)
        return VectorEncoder(self.model, words=words, cache=self.cache, name=self.name, batch_size=self.batch_size)

    def fit_encode(self, texts: Iterable[str], *, progress: Progress = None) -> CSR:
        """Fit the encoder of words; return the rows of the texts."""
        listed, vectors = self._read(texts, progress)
        sparse = None if self.words is None else self.words.fit_encode(listed)
        self.width_ = int(vectors.shape[1])
        self.n_features_ = self.width_ + (0 if sparse is None else sparse.n_cols)
        return without_words(vectors) if sparse is None else beside(sparse, vectors)

    def encode(self, texts: Iterable[str], *, progress: Progress = None) -> CSR:
        """The rows of texts."""
        listed, vectors = self._read(texts, progress)
        if vectors.shape[1] != self.width_:
            raise LabelwoodError(f"VectorEncoder: vectors must have {self.width_} columns; got {vectors.shape[1]}")
        return without_words(vectors) if self.words is None else beside(self.words.encode(listed), vectors)

    def term_of(self, text: str) -> Callable[[int], str | None]:
        """Return a function from a column of the row of ``text`` to its word, or to the place in the vector."""
        n_sparse = self.n_features_ - self.width_
        word = None if self.words is None else self.words.term_of(text)

        def named(column: int) -> str | None:
            return f"vector[{column - n_sparse}]" if column >= n_sparse or word is None else word(column)

        return named

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The width of the vectors, and the state of the encoder of words."""
        words = {} if self.words is None else self.words.state()
        return {"width": np.array([self.width_], np.int64), **{_WORDS + name: own for name, own in words.items()}}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The inverse of :meth:`state`."""
        width = arrays["width"]
        if width.dtype != np.int64 or width.shape != (1,) or width[0] < 1:
            raise FormatError("the width of the vectors must be one positive number")
        self.width_ = self.n_features_ = int(width[0])
        if self.words is not None:
            own = {name.removeprefix(_WORDS): array for name, array in arrays.items() if name.startswith(_WORDS)}
            self.words.restore(own)
            self.n_features_ += self.words.n_features_
        return self

    def native(self) -> TextEncoder:
        """The encoder to save."""
        if self.words is None or self.words.native() is self.words:
            return self
        saved: VectorEncoder = clone(self)
        saved.words, saved.width_, saved.n_features_ = self.words.native(), self.width_, self.n_features_
        return saved

    def _read(self, texts: Iterable[str], progress: Progress) -> tuple[list[str], npt.NDArray[Any]]:
        owner = type(self).__name__
        if isinstance(texts, Embedded):
            return texts.checked(owner)
        listed = list_texts(texts, owner=owner)
        if self.model is None:
            told = "" if self.name is None else f" It learned from vectors of {self.name}."
            raise LabelwoodError(
                f"{owner}: every text must come with its vector: pass Embedded(texts, vectors), "
                f"or set encoder_.model to the model that makes them.{told}"
            )
        if not callable(getattr(self.model, "encode", None)):
            raise LabelwoodError(f"{owner}: model must have a method encode(texts); got {self.model!r}")
        if self.cache is None:
            return listed, self._made(listed, progress)
        if self.name is None:
            raise LabelwoodError(f"{owner}: cache needs name, the name and version of the model that makes the vectors")
        return listed, self._cached(listed, VectorCache(self.cache, self.name), progress)

    def _cached(self, texts: list[str], cache: VectorCache, progress: Progress) -> F32:
        known = cache.read(texts)
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            made = self._made(new, progress)
            cache.write(new, made)
            known |= dict(zip(new, made, strict=True))
        return np.stack([known[text] for text in texts]) if texts else self._made(texts, None)

    def _made(self, texts: list[str], progress: Progress) -> F32:
        parts = []
        for start in range(0, max(len(texts), 1), self.batch_size):
            part = as_vectors(self.model.encode(texts[start : start + self.batch_size]), owner=type(self).__name__)
            parts.append(part.astype(np.float32))
            if progress is not None:
                progress(min(_MILLION, _MILLION * (start + self.batch_size) // max(len(texts), 1)))
        vectors = np.concatenate(parts)
        if len(vectors) != len(texts):
            raise LabelwoodError(f"VectorEncoder: model.encode gave {len(vectors)} vectors for {len(texts)} texts")
        return vectors
