"""The Annif backends, subclasses of Annif's classes; importing this module imports Annif."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from sklearn.feature_extraction.text import HashingVectorizer

from labelwood.adapters._required import required
from labelwood.data.dataset import Dataset
from labelwood.data.npz import read_npz, write_npz
from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.methods.label_tree.linear_tree import LinearTree
from labelwood.methods.online.living_tree import LivingTree
from labelwood.methods.online.online_tree import OnlineTree
from labelwood.params import check_parameters, declared
from labelwood.sparse import from_lists, from_scipy
from labelwood.validation.targets import named_rows

annif_backend = required("annif.backend.backend", extra="annif")
annif_exception = required("annif.exception", extra="annif")
annif_mixins = required("annif.backend.mixins", extra="annif")
annif_suggestion = required("annif.suggestion", extra="annif")

_MODEL, _TRAIN = "labelwood-model", "labelwood-train.npz"
_OWN = ("n_jobs", "verbose")  # Annif decides: --jobs, --verbosity


class _Backend(annif_backend.AnnifBackend):  # type: ignore[misc,name-defined]  # Annif is absent here
    """What both backends share: a method, its parameters from the project, its model in Annif's data directory."""

    method: ClassVar[type[TreeEstimator]]
    _model: Any = None

    def initialize(self, parallel: bool = False) -> None:
        """Load the trained model."""
        if self._model is None:
            path = self._path(_MODEL)
            if not path.exists():
                raise annif_exception.NotInitializedException(f"model {path} not found", backend_id=self.backend_id)
            self.debug(f"loading model from {path}")
            try:
                self._model = self.method.load(path)
            except LabelwoodError as error:
                raise annif_exception.OperationFailedException(str(error), backend_id=self.backend_id) from error

    def _vectors(self, texts: Any) -> Any:
        """The vectors of texts, rows x words; the backend must be initialized."""
        raise NotImplementedError

    def _learn_vectors(self, texts: Any, params: dict[str, Any]) -> Any:
        """The vectors of training texts."""
        raise NotImplementedError

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        model = self._new_model(params, jobs)
        if corpus == "cached":
            self.info("Reusing cached training data from previous run.")
            dataset = self._cached()
        else:
            if corpus.is_empty():
                raise annif_exception.NotSupportedException(f"Cannot train {self.name} project with no documents")
            subjects: list[list[int]] = []
            vectors = self._learn_vectors(_texts(corpus, subjects), params)
            dataset = Dataset(from_scipy(vectors), from_lists(subjects, len(self.project.subjects)))
            write_npz(self._path(_TRAIN), dataset)
        self.info(f"training on {dataset.n_rows} documents")
        try:
            model.fit(dataset.X, named_rows(dataset.Y, range(dataset.Y.n_cols)))
        except LabelwoodError as error:
            raise annif_exception.OperationFailedException(str(error), backend_id=self.backend_id) from error
        self._keep(model)

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
        vectors = self._vectors([document.text for document in documents])
        subjects, scores = self._model.predict_topk(vectors, k=int(params["limit"]))
        words = vectors.getnnz(axis=1).tolist()
        return annif_suggestion.SuggestionBatch.from_sequence(
            [
                [
                    annif_suggestion.SubjectSuggestion(subject_id=subject, score=score)
                    for subject, score in zip(subjects[row], scores[row].tolist(), strict=True)
                    if subject is not None and n_words
                ]
                for row, n_words in enumerate(words)
            ],
            self.project.subjects,
        )

    def _keep(self, model: TreeEstimator) -> None:
        model.save(self._path(_MODEL))
        self._model = model

    def _cached(self) -> Dataset:
        if not self._path(_TRAIN).exists():
            raise annif_exception.NotInitializedException(
                "there is no cached training data; train with documents first", backend_id=self.backend_id
            )
        return read_npz(self._path(_TRAIN))

    def _new_model(self, params: dict[str, Any], jobs: int) -> TreeEstimator:
        """The method with the parameters of the project's configuration."""
        given = {}
        try:
            for name, parameter in declared(self.method).items():
                if name in params and name not in _OWN:
                    try:
                        given[name] = parameter.read(str(params[name]))
                    except LabelwoodError:
                        raise
                    except ValueError:
                        raise LabelwoodError(f"{name} must be {parameter.rule}; got {params[name]!r}") from None
            model = self.method(**given, n_jobs=jobs or None)
            check_parameters(model)
        except LabelwoodError as error:
            raise annif_exception.ConfigurationException(str(error), backend_id=self.backend_id) from error
        return model

    def _path(self, name: str) -> Path:
        return Path(self.datadir) / name


class LinearTreeBackend(annif_mixins.TfidfVectorizerMixin, _Backend):  # type: ignore[misc,name-defined]  # as above
    """``backend=labelwood``: LinearTree over tf-idf."""

    name = "labelwood"
    method = LinearTree
    DEFAULT_PARAMETERS: ClassVar[dict[str, Any]] = {"min_df": 1, "ngram": 1}

    def initialize(self, parallel: bool = False) -> None:
        """Load the trained model."""
        self.initialize_vectorizer()
        super().initialize(parallel)

    def _vectors(self, texts: Any) -> Any:
        return self.vectorizer.transform(texts)

    def _learn_vectors(self, texts: Any, params: dict[str, Any]) -> Any:
        settings = {
            "min_df": int(params["min_df"]),
            "tokenizer": self.project.analyzer.tokenize_words,
            "ngram_range": (1, int(params["ngram"])),
        }
        return self.create_vectorizer(texts, settings)


class OnlineTreeBackend(_Backend, annif_backend.AnnifLearningBackend):  # type: ignore[misc,name-defined]  # as above
    """``backend=labelwood_online``: OnlineTree over hashed words, which keeps learning."""

    name = "labelwood_online"
    method: ClassVar[type[TreeEstimator]] = OnlineTree
    DEFAULT_PARAMETERS: ClassVar[dict[str, Any]] = {"n_features": 2**20, "ngram": 1}

    def _vectors(self, texts: Any) -> Any:
        return self._hashed(texts, self.params)

    def _learn_vectors(self, texts: Any, params: dict[str, Any]) -> Any:
        return self._hashed(texts, params)

    def _hashed(self, texts: Any, params: dict[str, Any]) -> Any:
        vectorizer = HashingVectorizer(
            n_features=int(params["n_features"]),
            tokenizer=self.project.analyzer.tokenize_words,
            token_pattern=None,
            ngram_range=(1, int(params["ngram"])),
        )
        return vectorizer.transform(texts)

    def _learn(self, corpus: Any, params: dict[str, Any]) -> None:
        self.initialize()
        subjects: list[list[int]] = []
        vectors = self._learn_vectors(_texts(corpus, subjects), params)
        self.info(f"learning {len(subjects)} documents")
        try:
            self._model.partial_fit(vectors, subjects)
        except LabelwoodError as error:
            raise annif_exception.OperationFailedException(str(error), backend_id=self.backend_id) from error
        self._keep(self._model)


class LivingTreeBackend(OnlineTreeBackend):
    """``backend=labelwood_living``: LivingTree over hashed words, trained again as documents come."""

    name = "labelwood_living"
    method = LivingTree


def _texts(corpus: Any, subjects: list[list[int]]) -> Iterator[str]:
    """The texts of documents with subjects; their subjects are appended to ``subjects``."""
    for document in corpus.documents:
        ids = sorted(int(subject) for subject in document.subject_set)
        if ids:
            subjects.append(ids)
            yield document.text
