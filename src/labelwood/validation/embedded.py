"""Texts with their vectors: the rows of a model that reads both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.errors import LabelwoodError
from labelwood.validation.features import as_vectors


@dataclass(frozen=True, eq=False)
class Embedded:
    """Texts with one vector each, such as a sentence embedding: :class:`TextClassifier` takes them in place of texts.

    ``vectors`` is an array of numbers, texts x columns; it may be a mapped file.

    >>> from labelwood import TextClassifier
    >>> pets = Embedded(["a cat", "a dog"], [[1.0, 0.0], [0.0, 1.0]])
    >>> model = TextClassifier().fit(pets, [["cats"], ["dogs"]])
    >>> model.predict_topk(Embedded(["it barks"], [[0.1, 0.9]]), k=1)[0].tolist()
    [['dogs']]
    """

    texts: Any
    vectors: Any

    def __iter__(self) -> Iterator[Any]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, rows: slice) -> Embedded:
        return type(self)(self.texts[rows], self.vectors[rows])

    def checked(self, owner: str) -> Embedded:
        """The same with a list of texts and an array of as many finite vectors."""
        listed = list(self.texts)
        vectors = as_vectors(self.vectors, owner=owner, what="vectors")
        if len(listed) != len(vectors):
            raise LabelwoodError(
                f"{owner}: every text must have one vector; got {len(listed)} texts and {len(vectors)} vectors"
            )
        if vectors.shape[1] == 0:
            raise LabelwoodError(f"{owner}: vectors must have at least one column; got 0")
        return CheckedEmbedded(listed, vectors)

    @staticmethod
    def refuse(texts: Any, owner: str) -> None:
        """Raise if texts come with vectors, where only texts are read."""
        if isinstance(texts, Embedded):
            raise LabelwoodError(f"{owner}: reads texts without vectors: the model was trained without them")

    def followed_by(self, more: Sequence[str]) -> Embedded:
        """The texts with more texts behind them, which have vectors of zeros: only their words count."""
        vectors: npt.NDArray[Any] = np.asarray(self.vectors)
        blank = np.zeros((len(more), vectors.shape[1]), vectors.dtype)
        return type(self)([*self.texts, *more], np.concatenate([vectors, blank]))


class CheckedEmbedded(Embedded):
    """Texts with vectors that are checked: bfloat16 became bits, which must not be read as integers."""

    def checked(self, owner: str) -> Embedded:
        """The same."""
        return self
