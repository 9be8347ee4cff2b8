"""What a fitted model of texts does: it encodes texts and asks its classifier."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from labelwood.estimator import TreeEstimator
from labelwood.estimator.prediction import Kind
from labelwood.explain import Explanation
from labelwood.scoring.thresholds import Objective, Target
from labelwood.sparse import CSR, F32
from labelwood.text import Document, as_encoder

if TYPE_CHECKING:
    import scipy.sparse as sp


class TextPrediction(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The predictions of a fitted :class:`TextClassifier`."""

    classifier_: TreeEstimator
    encoder_: Any  # a TextEncoder, or a transformer of scikit-learn, which has no types

    def encode(self, texts: Iterable[Document]) -> CSR:
        """The vectors of texts."""
        raise NotImplementedError

    def calibrate(
        self, texts: Iterable[Document], Y: Any, *, method: Kind = "auto", by_depth: bool | None = None
    ) -> Self:
        """Turn scores into probabilities, on held-out texts; see the classifier's ``calibrate``."""
        vectors = self.encode(texts)
        self.classifier_.calibrate(vectors, Y, method=method, by_depth=by_depth)
        return self

    def choose_thresholds(
        self,
        texts: Iterable[Document],
        Y: Any,
        *,
        target: Target = "micro-f1",
        level: float = 0.9,
        per_label: bool = False,
    ) -> Self:
        """Choose the thresholds of ``predict``, on held-out texts; see the classifier's ``choose_thresholds``."""
        vectors = self.encode(texts)
        self.classifier_.choose_thresholds(vectors, Y, target=target, level=level, per_label=per_label)
        return self

    def predict_topk(
        self,
        texts: Iterable[Document],
        k: int = 5,
        *,
        objective: Objective | None = None,
        allowed: Iterable[Hashable] | None = None,
    ) -> tuple[npt.NDArray[Any], F32]:
        """The k best labels of each text and their scores, best first: two arrays [texts, k].

        ``allowed`` lists the only labels to predict; see the classifier's ``predict_topk``.
        """
        vectors = self.encode(texts)
        return self.classifier_.predict_topk(vectors, k=k, objective=objective, allowed=allowed)

    def predict(
        self, texts: Iterable[Document], *, k: int | None = None, threshold: float | None = None
    ) -> sp.csr_array[np.float32]:
        """The predicted labels as a sparse 0/1 matrix, texts x labels; see the classifier's ``predict``."""
        vectors = self.encode(texts)
        return self.classifier_.predict(vectors, k=k, threshold=threshold)

    def predict_proba(self, texts: Iterable[Document], *, k: int = 10) -> sp.csr_array[np.float32]:
        """The scores of the k best labels of each text as a sparse matrix, texts x labels.

        They are probabilities after :meth:`calibrate`; see the classifier's ``predict_proba``.
        """
        vectors = self.encode(texts)
        return self.classifier_.predict_proba(vectors, k=k)

    def explain(
        self, texts: Iterable[Document], k: int = 5, *, missed: Sequence[Hashable] = (), n_features: int | None = 10
    ) -> list[Explanation]:
        """Why the k best labels of each text are suggested, by its words; see the classifier's ``explain``."""
        self._check_fitted()
        reader, found = as_encoder(self.encoder_), []
        listed = reader.listed(texts)
        vectors = self.encode(listed)
        for number, text in enumerate(listed):
            found += self.classifier_.explain(
                vectors.rows(number, number + 1),
                k,
                missed=missed,
                n_features=n_features,
                feature_name=reader.term_of(text),
            )
        return found

    def coef_of(self, label: Hashable) -> sp.csr_array[np.float64]:
        """The weights of a label, a sparse row 1 x features; see the classifier's ``coef_of``."""
        self._check_fitted()
        return self.classifier_.coef_of(label)

    def top_features(self, label: Hashable, n: int = 10) -> list[tuple[Any, float]]:
        """The n words that speak most for a label, with their weights; see the classifier's ``top_features``.

        A ``HashingEncoder`` keeps no words: columns stand for them.
        """
        self._check_fitted()
        return self.classifier_.top_features(label, n, feature_name=self.feature_namer())

    def score(self, texts: Iterable[Document], y: Any) -> float:
        """Precision at 1: the share of texts whose best label is right."""
        vectors = self.encode(texts)
        return self.classifier_.score(vectors, y)

    def feature_namer(self) -> Callable[[int], str | None]:
        """A function from a column to its word; None where the encoder keeps no vocabulary."""
        return as_encoder(self.encoder_).term_of("")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("TextClassifier: not fitted yet; call fit(texts, Y) first")

    def __sklearn_is_fitted__(self) -> bool:
        return "classifier_" in vars(self)
