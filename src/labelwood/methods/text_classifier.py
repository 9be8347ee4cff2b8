"""TextClassifier: a text encoder and a method in one model, from texts to label names."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy.typing as npt
from sklearn.base import clone

from labelwood.data import Columns
from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.executors import Executor
from labelwood.label_names import LabelNames
from labelwood.methods.text_prediction import TextPrediction
from labelwood.resources.estimate import Estimate
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, TopK
from labelwood.storage import model_directory
from labelwood.text import Document, Embedded, TfidfEncoder, VectorEncoder, as_encoder
from labelwood.text.registry import describe, read_encoder, with_fields
from labelwood.validation.label_texts import LabelVectors, read_label_texts
from labelwood.vocabulary import Vocabulary

if TYPE_CHECKING:
    pass

ENCODER = "encoder"  # a key of the manifest
_COLUMNS = "columns"  # likewise
_PREFIX = ENCODER + "."  # starts the names of the encoder's arrays
_MILLION = 1_000_000


class TextClassifier(TextPrediction):
    """A model of texts: an encoder turns texts into vectors, a classifier learns from the vectors.

    ``classifier`` is any method of the library (default: ``LinearTree()``), ``encoder`` a text encoder (default:
    ``TfidfEncoder()``), a transformer of scikit-learn that takes texts, or an object with ``encode(texts)``, such as a
    ``SentenceTransformer``: the model then reads words and vectors, see :class:`VectorEncoder`. If the vectors are made
    already, pass :class:`Embedded` in place of texts. Both parts stay as they are; ``classifier_`` and ``encoder_`` are
    the fitted copies. The parameters of both are parameters of the model: ``encoder__min_df``.
    ``fields`` are weights of the fields of a record, such as ``{"title": 2.0, "abstract": 1.0}``: texts are then
    records (dicts) or a table, and a plain text is that of the first field. ``columns_`` names the columns of the table
    that the texts came from, if the command line was told them: it reads other tables alike.

    >>> texts = ["cats and dogs", "a dog barks", "tax law", "income tax"]
    >>> model = TextClassifier().fit(texts, [["pets"], ["pets"], ["law"], ["law", "money"]])
    >>> model.predict_topk(["my dog"], k=1)[0].tolist()
    [['pets']]
    """

    takes: ClassVar[Literal["features", "text"]] = "text"

    columns_: Columns = Columns()

    def __init__(self, classifier: TreeEstimator | None = None, encoder: Any = None, fields: Any = None) -> None:
        self.classifier = classifier
        self.encoder = encoder
        self.fields = fields

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
        texts: Iterable[Document],
        Y: Any,
        *,
        label_names: Sequence[Hashable] | None = None,
        label_texts: Mapping[Any, str | Sequence[str]] | None = None,
        vocabulary: Vocabulary | None = None,
        max_memory: str | int | None = None,
        executor: str | Executor | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from texts and Y: lists of label names or a 0/1 matrix.

        ``label_texts`` maps labels to names and descriptions, one text or several for each label. Each text becomes one
        more training row of its label, and labels that no row of Y has can then be suggested, too.

        ``vocabulary`` says what the labels mean; see the classifier's ``fit``. Its ``label_texts()`` are label texts.

        ``max_memory`` is checked after the texts are encoded, before the classifier learns. See the classifier's
        ``fit`` for ``executor``, ``checkpoint`` and ``resume``. Texts are encoded by this process.
        """
        described = None if label_texts is None else read_label_texts(label_texts, owner=type(self).__name__)
        known = [] if described is None else described.texts
        encoder, classifier, features, run = self._encode_first(texts, known)
        n_texts = features.n_rows - len(known)
        vectors = None
        if described is not None:
            vectors = LabelVectors(described.labels, features.rows(n_texts, features.n_rows))
        classifier.fit(
            features.rows(0, n_texts),
            Y,
            label_names=label_names,
            label_vectors=vectors,
            vocabulary=vocabulary,
            max_memory=max_memory,
            executor=executor,
            checkpoint=checkpoint,
            resume=resume,
        )
        classifier.fit_seconds_ = {**run.seconds, **classifier.fit_seconds_}
        self.encoder_, self.classifier_, self.columns_ = encoder, classifier, Columns()
        return self

    def partial_fit(self, texts: Iterable[Document], Y: Any, *, label_names: Sequence[Hashable] | None = None) -> Self:
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
        if not is_fitted:
            encoder = _encoder_for(texts, encoder)
        vectors = self.encode(texts) if is_fitted else as_encoder(encoder).fit_encode(texts)
        classifier.partial_fit(vectors, Y, label_names=label_names)
        self.encoder_, self.classifier_ = encoder, classifier
        return self

    def estimate(self, texts: Iterable[Document], Y: Any, *, label_names: Sequence[Hashable] | None = None) -> Estimate:
        """What fit would need on these texts; see the classifier's ``estimate``. The texts are encoded for it."""
        _, classifier, features, _ = self._encode_first(texts)
        return classifier.estimate(features, Y, label_names=label_names)

    def _encode_first(
        self, texts: Iterable[Document], more: Sequence[str] = ()
    ) -> tuple[Any, TreeEstimator, CSR, RunContext]:
        """A fitted encoder, a classifier to fit, and the encoded texts, with ``more`` texts behind them."""
        encoder, classifier = self._unfitted_parts()
        encoder = _encoder_for(texts, encoder)
        if more:
            listed: Any = as_encoder(encoder).listed(texts)
            texts = listed.followed_by(more) if isinstance(listed, Embedded) else [*listed, *more]
        run = RunContext(verbose=bool(classifier.verbose))
        with run.phase("encode", _MILLION) as progress:
            features = as_encoder(encoder).fit_encode(texts, progress=progress)
        return encoder, classifier, features, run

    def _unfitted_parts(self) -> tuple[Any, TreeEstimator]:
        """Copies of the encoder and the classifier, or the default ones."""
        encoder, classifier = (
            default() if getattr(self, part) is None else getattr(self, part) for part, default in _DEFAULTS.items()
        )
        reader = as_encoder(encoder)
        if isinstance(reader, VectorEncoder):
            encoder = reader
        if not isinstance(classifier, TreeEstimator):
            raise LabelwoodError(
                f"TextClassifier: classifier must be a method of this library, such as LinearTree(); got {classifier!r}"
            )
        return with_fields(clone(encoder), self.fields), clone(classifier)

    def encode(self, texts: Iterable[Document]) -> CSR:
        """The vectors of texts."""
        self._check_fitted()
        run = RunContext(verbose=bool(self.classifier_.verbose))
        with run.phase("encode", _MILLION) as progress:
            return as_encoder(self.encoder_).encode(texts, progress=progress)

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
    def field_names(self) -> tuple[str, ...]:
        """The fields of a record that the model reads; none if it reads plain texts."""
        return as_encoder(self.encoder_).field_names

    @property
    def vector_width(self) -> int:
        """The numbers of the vector that must stand beside each text; 0 if the model reads texts only."""
        return as_encoder(self.encoder_).vector_width

    @property
    def can_learn(self) -> bool:
        """True if the classifier learns from a stream."""
        return self.__sklearn_is_fitted__() and self.classifier_.can_learn

    @property
    def label_names(self) -> LabelNames:
        """The names of the labels, by id and by name."""
        self._check_fitted()
        return self.classifier_.label_names

    def topk_ids(self, texts: Iterable[Document], k: int) -> TopK:
        """The k best label ids of each text, exactly k wide."""
        vectors = self.encode(texts)
        return self.classifier_.topk_ids(vectors, k)

    @property
    def vocabulary_(self) -> Vocabulary | None:
        """What the labels mean, if the model has a vocabulary."""
        return self.classifier_.vocabulary_

    def use_vocabulary(self, vocabulary: Vocabulary | None) -> None:
        """Take a vocabulary, or a newer version of it, without learning anything again; see the classifier's."""
        self.classifier_.use_vocabulary(vocabulary)

    def encode_labels(self, Y: Any) -> CSR:
        """A user's Y with the model's label ids."""
        self._check_fitted()
        return self.classifier_.encode_labels(Y)

    def set_threads(self, n_jobs: int) -> None:
        """Encode and predict with this many threads from here on."""
        self.classifier_.set_threads(n_jobs)
        as_encoder(self.encoder_).set_threads(n_jobs)

    def with_classifier(self, classifier: TreeEstimator) -> Self:
        """A model that reads texts as this one does and predicts by ``classifier``."""
        return self.of(self.encoder_, classifier, self.columns_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags


Model = TreeEstimator | TextClassifier


def _encoder_for(texts: Iterable[Document], encoder: Any) -> Any:
    """The encoder; for texts with vectors, one that puts the vectors beside its words."""
    if not isinstance(texts, Embedded) or isinstance(encoder, VectorEncoder):
        return encoder
    return VectorEncoder(word_encoder=as_encoder(encoder))


def estimator_of(model: Model) -> TreeEstimator:
    """The estimator that takes vectors: the model itself, or the one behind its encoder."""
    return model.classifier_


def _default_classifier() -> TreeEstimator:
    from labelwood.methods.label_tree.linear_tree import LinearTree  # noqa: PLC0415 - loading another method does without it

    return LinearTree()


# What stands for a part that is not given.
_DEFAULTS: dict[str, Callable[[], Any]] = {"encoder": TfidfEncoder, "classifier": _default_classifier}
