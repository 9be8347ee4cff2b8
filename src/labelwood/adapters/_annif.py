"""The Annif backends, subclasses of Annif's classes; importing this module imports Annif.

A model's labels are the URIs of the project's subjects, and it keeps the project's vocabulary, so that the command line
and the service of Labelwood can use it, too. After ``annif load-vocab`` the model takes over the new vocabulary.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
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
from labelwood.storage.model_directory import MANIFEST
from labelwood.validation.targets import named_rows
from labelwood.vocabulary import Concept, Vocabulary
from labelwood.vocabulary.concept import PREFERRED, Text
from labelwood.vocabulary.skos import read_graph
from labelwood.vocabulary.update import update_model

annif_backend = required("annif.backend.backend", extra="annif")
annif_eval = required("annif.eval", extra="annif")
annif_hyperopt = required("annif.backend.hyperopt", extra="annif")
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
                self._follow_vocabulary(path)
                self._model = self.method.load(path)
            except LabelwoodError as error:
                raise annif_exception.OperationFailedException(str(error), backend_id=self.backend_id) from error

    def _follow_vocabulary(self, path: Path) -> None:
        """Give the model the project's vocabulary if that was loaded after the training."""
        subjects = Path(self.project.vocab.datadir) / self.project.vocab.INDEX_FILENAME_CSV
        if subjects.exists() and subjects.stat().st_mtime > (path / MANIFEST).stat().st_mtime:
            changes = update_model(path, self._vocabulary())
            self.info(f"vocabulary updated: {changes.labels_renamed + changes.labels_merged} subjects replaced, "
                      f"{changes.labels_retired} retired")  # fmt: skip

    def _vocabulary(self) -> Vocabulary:
        """The project's vocabulary: names and links from its SKOS file, and subjects that only its index has."""
        try:
            graph = self.project.vocab.as_graph()
            known = {concept.uri: concept for concept in read_graph(graph, "vocabulary").vocabulary}
        except LabelwoodError:  # the graph has no concept
            known = {}
        for _, subject in self.project.subjects.active:
            if subject.uri not in known:
                names = tuple(Text(PREFERRED, tag, name) for tag, name in subject.labels.items() if name)
                known[subject.uri] = Concept(subject.uri, names)
        return Vocabulary.of(known.values())

    def _uris(self) -> list[str | None]:
        """The URI of each subject by its number; None for subjects that are gone."""
        found: list[str | None] = [None] * len(self.project.subjects)
        for number, subject in self.project.subjects.active:
            found[number] = subject.uri
        return found

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
            model.fit(dataset.X, self._targets(dataset), vocabulary=self._vocabulary())
        except LabelwoodError as error:
            raise annif_exception.OperationFailedException(str(error), backend_id=self.backend_id) from error
        self._keep(model)

    def _targets(self, dataset: Dataset) -> list[list[Hashable]]:
        """The URIs of each document's subjects; subjects that are gone are left out."""
        uris = self._uris()
        return [[uri for uri in row if uri is not None] for row in named_rows(dataset.Y, uris)]

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
        vectors = self._vectors([document.text for document in documents])
        labels, scores = self._model.predict_topk(vectors, k=int(params["limit"]))
        return self._suggestions(labels, scores, vectors.getnnz(axis=1).tolist())

    def _suggestions(self, labels: Any, scores: Any, words: list[int]) -> Any:
        """Labels and scores as Annif has them; a document without a known word has no suggestions."""
        known = {label: self._subject(label) for label in set(labels.ravel().tolist())}
        subjects = [[known[label] for label in row] for row in labels.tolist()]
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

    def _subject(self, label: Any) -> int | None:
        """The number of a subject; models of earlier versions have numbers as labels."""
        found: int | None = label if isinstance(label, int) else self.project.subjects.by_uri(label, warnings=False)
        return found

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


class _Objective(annif_hyperopt.HPObjective):  # type: ignore[misc,name-defined]  # Annif is absent here
    """One trial of ``annif hyperopt``: train on the cached vectors, evaluate on the documents."""

    @classmethod
    def objective(cls, trial: Any, args: dict[str, Any]) -> float:
        """The metric of a model with the parameters of a trial."""
        own = {
            "C": trial.suggest_float("C", 0.1, 10.0, log=True),
            "n_trees": trial.suggest_int("n_trees", 1, 5),
            "score_power": trial.suggest_int("score_power", 1, 4),
        }
        model = args["model"].set_params(**own).fit(args["X"], args["Y"])
        labels, scores = model.predict_topk(args["vectors"], k=args["limit"])
        batch = annif_eval.EvaluationBatch(args["subjects"])
        batch.evaluate_many(args["suggest"](labels, scores), args["gold"])
        return float(batch.results(metrics=[args["metric"]])[args["metric"]])


class _Optimizer(annif_hyperopt.HyperparameterOptimizer):  # type: ignore[misc,name-defined]  # as above
    """Searches C, the number of trees and the power of scores."""

    def _prepare(self, n_jobs: int = 1) -> dict[str, Any]:
        prepared: dict[str, Any] = self._backend.trial_data(self._corpus, self._metric)
        return prepared

    def _postprocess(self, study: Any) -> Any:
        lines = [f"{name}={value:.4g}" for name, value in study.best_params.items()]
        return annif_hyperopt.HPRecommendation(lines=lines, score=study.best_value)


class LinearTreeBackend(annif_mixins.TfidfVectorizerMixin, _Backend, annif_hyperopt.AnnifHyperoptBackend):  # type: ignore[misc,name-defined]  # as above
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

    def get_hp_optimizer(self, corpus: Any, metric: str) -> Any:
        """What ``annif hyperopt`` calls."""
        return _Optimizer(self, corpus, metric, _Objective)

    def trial_data(self, corpus: Any, metric: str) -> dict[str, Any]:
        """What the trials of ``annif hyperopt`` share: the cached training data and the vectors of the documents."""
        self.initialize_vectorizer()
        dataset = self._cached()
        documents = list(corpus.documents)
        vectors = self._vectors([document.text for document in documents])
        words = vectors.getnnz(axis=1).tolist()
        return {
            "model": self._new_model(self.params, 1),
            "X": dataset.X,
            "Y": self._targets(dataset),
            "vectors": vectors,
            "gold": [document.subject_set for document in documents],
            "subjects": self.project.subjects,
            "suggest": lambda labels, scores: self._suggestions(labels, scores, words),
            "limit": int(self.params["limit"]),
            "metric": metric,
        }


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
        uris = self._uris()
        labels = [[uri for number in row if (uri := uris[number]) is not None] for row in subjects]
        try:
            self._model.use_vocabulary(self._vocabulary())
            self._model.partial_fit(vectors, labels)
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
