"""TextClassifier: a text encoder and a method in one model, from texts to label names."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from labelwood.data import Columns
from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.estimator.prediction import Kind
from labelwood.executors import Executor
from labelwood.explain import Explanation
from labelwood.label_names import LabelNames
from labelwood.resources.estimate import Estimate
from labelwood.run_context import RunContext
from labelwood.scoring.thresholds import Objective, Target
from labelwood.sparse import CSR, F32, TopK
from labelwood.storage import model_directory
from labelwood.text import TfidfEncoder, as_encoder
from labelwood.text.registry import describe, read_encoder
from labelwood.validation.label_texts import LabelVectors, read_label_texts

if TYPE_CHECKING:
    import scipy.sparse as sp

ENCODER = "encoder"  # a key of the manifest
_COLUMNS = "columns"  # likewise
_PREFIX = ENCODER + "."  # starts the names of the encoder's arrays
_MILLION = 1_000_000


class TextClassifier(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A model of texts: an encoder turns texts into vectors, a classifier learns from the vectors.

    ``classifier`` is any method of the library (default: ``LinearTree()``), ``encoder`` a text encoder (default:
    ``TfidfEncoder()``) or a transformer of scikit-learn that takes texts, such as a ``TfidfVectorizer``.
    Both stay as they are; ``classifier_`` and ``encoder_`` are the fitted copies. They are saved together in one
    directory. The parameters of both are parameters of the model: ``encoder__min_df``, ``classifier__n_trees``.
    ``columns_`` names the columns of the table that the texts came from, if the command line was told them: it reads
    other tables alike.

    >>> texts = ["cats and dogs", "a dog barks", "tax law", "income tax"]
    >>> model = TextClassifier().fit(texts, [["pets"], ["pets"], ["law"], ["law", "money"]])
    >>> model.predict_topk(["my dog"], k=1)[0].tolist()
    [['pets']]
    """

    takes: ClassVar[Literal["features", "text"]] = "text"

    classifier_: TreeEstimator
    encoder_: Any  # a TextEncoder, or a transformer of scikit-learn, which has no types
    columns_: Columns = Columns()

    def __init__(self, classifier: TreeEstimator | None = None, encoder: Any = None) -> None:
        self.classifier = classifier
        self.encoder = encoder

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with ``deep`` also those of the parts, of the default part where none is given."""
        found: dict[str, Any] = super().get_params(deep=deep)
        absent = [part for part in _DEFAULTS if deep and found[part] is None]
        for part in absent:
            found |= {f"{part}__{name}": value for name, value in _DEFAULTS[part]().get_params().items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters; one of a part that is not given, such as ``encoder__min_df``, makes the default part."""
        for part, default in _DEFAULTS.items():
            named = any(name.startswith(f"{part}__") for name in params)
            if named and params.get(part, getattr(self, part)) is None:
                params[part] = default()
        super().set_params(**params)
        return self

    def fit(
        self,
        texts: Iterable[str],
        Y: Any,
        *,
        label_names: Sequence[Hashable] | None = None,
        label_texts: Mapping[Any, str | Sequence[str]] | None = None,
        max_memory: str | int | None = None,
        executor: str | Executor | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from texts and Y: lists of label names or a 0/1 matrix.

        ``label_texts`` maps labels to names and descriptions, one text or several for each label. Each text becomes one
        more training row of its label, and labels that no row of Y has can then be suggested, too.

        ``max_memory`` is checked after the texts are encoded, before the classifier learns. See the classifier's
        ``fit`` for ``executor``, ``checkpoint`` and ``resume``. Texts are encoded by this process.
        """
        described = None if label_texts is None else read_label_texts(label_texts, owner=type(self).__name__)
        known = [] if described is None else described.texts
        encoder, classifier, features, run = self._encode_first(chain(texts, known) if known else texts)
        n_texts = features.n_rows - len(known)
        vectors = None
        if described is not None:
            vectors = LabelVectors(described.labels, features.rows(n_texts, features.n_rows))
        classifier.fit(
            features.rows(0, n_texts),
            Y,
            label_names=label_names,
            label_vectors=vectors,
            max_memory=max_memory,
            executor=executor,
            checkpoint=checkpoint,
            resume=resume,
        )
        classifier.fit_seconds_ = {**run.seconds, **classifier.fit_seconds_}
        self.encoder_, self.classifier_, self.columns_ = encoder, classifier, Columns()
        return self

    def partial_fit(self, texts: Iterable[str], Y: Any, *, label_names: Sequence[Hashable] | None = None) -> Self:
        """Learn some texts on top of what is known; the classifier learns from a stream, as ``OnlineTree`` does.

        The first call fits the encoder. A ``TfidfEncoder`` then knows the words of these texts only; a
        ``HashingEncoder`` takes up new words at any time.
        """
        is_fitted = self.__sklearn_is_fitted__()
        encoder, classifier = (self.encoder_, self.classifier_) if is_fitted else self._unfitted_parts()
        if not hasattr(classifier, "partial_fit"):
            raise LabelwoodError(
                f"TextClassifier: {type(classifier).__name__} does not learn from a stream; "
                "for partial_fit, classifier must be a LivingTree, an OnlineTree or an OnlineForest"
            )
        vectors = self.encode(texts) if is_fitted else as_encoder(encoder).fit_encode(texts)
        classifier.partial_fit(vectors, Y, label_names=label_names)
        self.encoder_, self.classifier_ = encoder, classifier
        return self

    def estimate(self, texts: Iterable[str], Y: Any, *, label_names: Sequence[Hashable] | None = None) -> Estimate:
        """What fit would need on these texts; see the classifier's ``estimate``. The texts are encoded for it."""
        _, classifier, features, _ = self._encode_first(texts)
        return classifier.estimate(features, Y, label_names=label_names)

    def _encode_first(self, texts: Iterable[str]) -> tuple[Any, TreeEstimator, CSR, RunContext]:
        """A fitted encoder, a classifier to fit, and the encoded texts."""
        encoder, classifier = self._unfitted_parts()
        run = RunContext(verbose=bool(classifier.verbose))
        with run.phase("encode", _MILLION) as progress:
            features = as_encoder(encoder).fit_encode(texts, progress=progress)
        return encoder, classifier, features, run

    def _unfitted_parts(self) -> tuple[Any, TreeEstimator]:
        """Copies of the encoder and the classifier, or the default ones."""
        encoder, classifier = (
            default() if getattr(self, part) is None else getattr(self, part) for part, default in _DEFAULTS.items()
        )
        as_encoder(encoder)
        if not isinstance(classifier, TreeEstimator):
            raise LabelwoodError(
                f"TextClassifier: classifier must be a method of this library, such as LinearTree(); got {classifier!r}"
            )
        return clone(encoder), clone(classifier)

    def encode(self, texts: Iterable[str]) -> CSR:
        """The vectors of texts."""
        self._check_fitted()
        run = RunContext(verbose=bool(self.classifier_.verbose))
        with run.phase("encode", _MILLION) as progress:
            return as_encoder(self.encoder_).encode(texts, progress=progress)

    def calibrate(self, texts: Iterable[str], Y: Any, *, method: Kind = "auto", by_depth: bool | None = None) -> Self:
        """Turn scores into probabilities, on held-out texts; see the classifier's ``calibrate``."""
        vectors = self.encode(texts)
        self.classifier_.calibrate(vectors, Y, method=method, by_depth=by_depth)
        return self

    def choose_thresholds(
        self, texts: Iterable[str], Y: Any, *, target: Target = "micro-f1", level: float = 0.9, per_label: bool = False
    ) -> Self:
        """Choose the thresholds of ``predict``, on held-out texts; see the classifier's ``choose_thresholds``."""
        vectors = self.encode(texts)
        self.classifier_.choose_thresholds(vectors, Y, target=target, level=level, per_label=per_label)
        return self

    def predict_topk(
        self,
        texts: Iterable[str],
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
        self, texts: Iterable[str], *, k: int | None = None, threshold: float | None = None
    ) -> sp.csr_array[np.float32]:
        """The predicted labels as a sparse 0/1 matrix, texts x labels; see the classifier's ``predict``."""
        vectors = self.encode(texts)
        return self.classifier_.predict(vectors, k=k, threshold=threshold)

    def predict_proba(self, texts: Iterable[str], *, k: int = 10) -> sp.csr_array[np.float32]:
        """The scores of the k best labels of each text as a sparse matrix, texts x labels.

        They are probabilities after :meth:`calibrate`; see the classifier's ``predict_proba``.
        """
        vectors = self.encode(texts)
        return self.classifier_.predict_proba(vectors, k=k)

    def explain(
        self, texts: Iterable[str], k: int = 5, *, missed: Sequence[Hashable] = (), n_features: int | None = 10
    ) -> list[Explanation]:
        """Why the k best labels of each text are suggested, by its words; see the classifier's ``explain``."""
        listed = list(texts)
        vectors, reader = self.encode(listed), as_encoder(self.encoder_)
        found = []
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

    def score(self, texts: Iterable[str], y: Any) -> float:
        """Precision at 1: the share of texts whose best label is right."""
        vectors = self.encode(texts)
        return self.classifier_.score(vectors, y)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The label names in the order of their ids."""
        self._check_fitted()
        return self.classifier_.classes_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write encoder and classifier to one directory, replacing a model that is already there.

        A vectorizer of scikit-learn is saved as the encoder of this library that gives the same vectors. Another
        transformer cannot be saved without pickle and is refused.
        """
        model_directory.write_model(path, *self.to_saved())

    def to_saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The manifest and the arrays that :meth:`save` writes and :meth:`from_saved` reads."""
        self._check_fitted()
        encoder = as_encoder(self.encoder_).native()
        manifest, arrays = self.classifier_.to_saved()
        manifest |= {"class": type(self).__name__, "classifier": manifest["class"], ENCODER: describe(encoder)}
        if self.columns_ != Columns():
            manifest[_COLUMNS] = self.columns_.saved()
        learnt = {_PREFIX + name: array for name, array in encoder.state().items()}
        return manifest, {**arrays, **learnt}

    @classmethod
    def of(cls, encoder: Any, classifier: TreeEstimator, columns: Columns | None = None) -> Self:
        """The model of a fitted encoder and of a classifier fitted to its vectors; ``columns`` are kept."""
        model = cls(clone(classifier), clone(encoder))
        model.classifier_, model.encoder_, model.columns_ = classifier, encoder, columns or Columns()
        return model

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool | None = None) -> Self:
        """Load a model of texts; ``labelwood.load`` takes any model."""
        from labelwood.methods import load  # noqa: PLC0415 - the list of methods imports this module

        model = load(path, verify=verify)
        if not isinstance(model, cls):
            raise FormatError(f"{path}: holds a {type(model).__name__} without an encoder; use labelwood.load")
        return model

    @classmethod
    def from_saved(
        cls,
        classifier: type[TreeEstimator],
        manifest: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
        *,
        where: str | os.PathLike[str],
    ) -> Self:
        """The model that a manifest and its arrays describe; ``where`` opens the error messages."""
        learnt = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
        own = {name: array for name, array in arrays.items() if not name.startswith(_PREFIX)}
        fitted = classifier.from_saved(manifest, own, where=where)
        try:
            encoder = read_encoder(manifest[ENCODER], learnt)
            columns = Columns.restore(manifest.get(_COLUMNS, {}))
            if encoder.n_features_ != fitted.n_features_in_:
                raise FormatError(
                    f"the encoder has {encoder.n_features_} columns, the classifier {fitted.n_features_in_}"
                )
        except KeyError as error:
            raise FormatError(f"{where}: the model lacks {error}") from None
        except model_directory.UNSOUND as error:
            raise FormatError(f"{where}: {' '.join(str(error).split())}") from error
        return cls.of(encoder, fitted, columns)

    @property
    def can_learn(self) -> bool:
        """True if the classifier learns from a stream."""
        return self.__sklearn_is_fitted__() and self.classifier_.can_learn

    @property
    def label_names(self) -> LabelNames:
        """The names of the labels, by id and by name."""
        self._check_fitted()
        return self.classifier_.label_names

    def topk_ids(self, texts: Iterable[str], k: int) -> TopK:
        """The k best label ids of each text, exactly k wide."""
        vectors = self.encode(texts)
        return self.classifier_.topk_ids(vectors, k)

    def encode_labels(self, Y: Any) -> CSR:
        """A user's Y with the model's label ids."""
        self._check_fitted()
        return self.classifier_.encode_labels(Y)

    def feature_namer(self) -> Callable[[int], str | None]:
        """A function from a column to its word; None where the encoder keeps no vocabulary."""
        return as_encoder(self.encoder_).term_of("")

    def set_threads(self, n_jobs: int) -> None:
        """Encode and predict with this many threads from here on."""
        self.classifier_.set_threads(n_jobs)
        if hasattr(self.encoder_, "n_jobs"):
            self.encoder_.n_jobs = n_jobs

    def with_classifier(self, classifier: TreeEstimator) -> Self:
        """A model that reads texts as this one does and predicts by ``classifier``."""
        return self.of(self.encoder_, classifier, self.columns_)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("TextClassifier: not fitted yet; call fit(texts, Y) first")

    def __sklearn_is_fitted__(self) -> bool:
        return "classifier_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags


Model = TreeEstimator | TextClassifier


def estimator_of(model: Model) -> TreeEstimator:
    """The estimator that takes vectors: the model itself, or the one behind its encoder."""
    return model.classifier_


def _default_classifier() -> TreeEstimator:
    from labelwood.methods.label_tree.linear_tree import LinearTree  # noqa: PLC0415 - loading another method does without it

    return LinearTree()


# What stands for a part that is not given.
_DEFAULTS: dict[str, Callable[[], Any]] = {"encoder": TfidfEncoder, "classifier": _default_classifier}
