"""Fitting, saving and loading, the same for every method: scikit-learn's conventions outside, checked CSR inside.

A method implements five functions and gets the rest:

    _fit(X, Y, run)            learn; set the fitted state on self
    topk_rows(X, k, run)       the k best label ids of each row, 1 <= k <= n_labels, among run.allowed if it is set
    explain_one(row, k, ...)   why these are the k best of one row
    _state()                   JSON-able facts and arrays, to save
    _restore(facts, arrays)    the inverse; checks every invariant that a damaged file could break

In all five, ``self.n_features_in_`` and ``self.n_labels_`` are set.
"""

from __future__ import annotations

import datetime
import os
import secrets
from collections.abc import Hashable, Mapping, Sequence
from importlib.metadata import version as version_of
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils import ClassifierTags

from labelwood import executors, params
from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator.prediction import Prediction
from labelwood.estimator.preflight import Planned
from labelwood.executors import Executor
from labelwood.hybrid import as_sparse
from labelwood.label_names import PREFIX as LABEL_NAMES
from labelwood.label_names import LabelNames
from labelwood.params import Param, check_parameters
from labelwood.resources import memory
from labelwood.run_context import RunContext
from labelwood.scoring.thresholds import Decisions, is_saved_here
from labelwood.sparse import CSR
from labelwood.storage import model_directory
from labelwood.validation.column_names import PREFIX as COLUMN_NAMES
from labelwood.validation.column_names import column_names, names_from_arrays, names_to_arrays
from labelwood.validation.features import as_features
from labelwood.validation.label_texts import LabelRows, describe_labels, stacked
from labelwood.validation.targets import check_sizes, read_labels
from labelwood.vocabulary.current_labels import current_targets
from labelwood.vocabulary.vocabulary import PREFIX as VOCABULARY
from labelwood.vocabulary.vocabulary import Vocabulary

NJobs = params.NJobs
RandomState = Annotated[
    int | None,
    Param(
        "seed: the same data, parameters and seed give the same model; None: a new seed each fit", ge=0, le=2**32 - 1
    ),
]
Normalize = Annotated[bool, Param("scale every row to unit length, in training and in prediction")]
Verbose = Annotated[bool, Param("show progress bars on a terminal")]

_PARAMETER = "parameter."  # starts the names of saved arrays that are parameters
_COUNTS = "label_counts"


class TreeEstimator(Prediction, Planned, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An extreme multi-label classifier.

    Fitted attributes: ``classes_`` (the label names in the order of their ids), ``n_labels_``,
    ``n_features_in_``, ``fit_seconds_`` (seconds by phase), ``trained_`` (time and size of the training),
    ``label_counts_`` (training rows of each label), and, if X was a table with named columns, ``feature_names_in_``.
    """

    # Parameters that models of earlier versions lack, with the values that those versions used.
    ADDED_LATER: ClassVar[dict[str, Any]] = {}
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {}  # published settings by name
    divides_work: ClassVar[bool] = False  # True if fit divides its work: for an executor, or for a checkpoint

    random_state: int | None
    fit_seconds_: dict[str, float]

    def _fit(self, X: CSR, Y: CSR, run: RunContext) -> None:
        raise NotImplementedError

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        raise NotImplementedError

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """What the fitted model is made of, such as its depth and its number of nodes."""
        raise NotImplementedError

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """An estimator with a published setting, one of ``PRESETS``, changed by ``changes``."""
        if name not in cls.PRESETS:
            raise LabelwoodError(f"{cls.__name__}: preset must be one of {', '.join(cls.PRESETS)}; got {name!r}")
        return cls(**{**cls.PRESETS[name], **changes})

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        label_names: Sequence[Hashable] | None = None,
        label_vectors: Any = None,
        vocabulary: Vocabulary | None = None,
        max_memory: str | int | None = None,
        executor: str | Executor | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn from X and Y.

        ``X`` is a sparse or dense matrix or a table, rows x features. ``Y`` is a 0/1 matrix, rows x labels, sparse or
        dense; or one list, set or tuple of label names per row, names of any hashable kind; or a one-dimensional array,
        one label per row. ``label_names`` names the columns of a matrix; the columns of a table have names already.
        Predictions return the names as they were given. If fit fails or is interrupted, the estimator does not change.

        ``label_vectors`` is a matrix of the same features with one row per label, such as the encoded names of the
        labels: each becomes one more training row. ``Ranker`` also compares rows with them. ``TextClassifier`` makes
        them of ``label_texts``.

        ``vocabulary`` says what the labels mean, see :mod:`labelwood.vocabulary`. Deprecated labels are replaced or
        left out, labels given by name get their URI, and the model keeps the vocabulary; ``trained_`` counts them.

        ``max_memory``, such as ``"4GB"``, is the most memory that the process may hold; by default the free memory. A
        training that would need more is refused before it starts, with settings that need less.

        ``executor`` says where the work is done: ``"threads"``, ``"ray"``, ``"ray://host:port"`` or an executor, see
        :mod:`labelwood.executors`; the model is the same. ``checkpoint`` is a directory for finished parts of the work;
        with ``resume``, a training that was killed continues from there and ends with the same model.
        """
        owner = type(self).__name__
        self._check_division(executor, checkpoint, resume=resume)
        features, names, targets, run = self._read_training(X, Y, label_names)
        mapped = None if vocabulary is None else current_targets(names, targets, vocabulary)
        if mapped is not None:
            names, targets = mapped.names, mapped.targets
            check_sizes(features, targets, owner)
        label_rows = None
        if label_vectors is not None:
            names, targets, label_rows = describe_labels(label_vectors, names, targets, features.n_cols, owner=owner)
        run.limit = memory.limit_of(max_memory, owner=owner)
        if executor is not None:
            run.executor = executors.executor_of(executor, owner=owner)
        if checkpoint is not None:
            described = () if label_rows is None else (label_rows.vectors, label_rows.targets)
            self._open_checkpoint(checkpoint, (features, targets, *described), run, resume=resume)
        fresh: Self = self._untrained(names, features.n_cols, column_names(X))
        fresh._check_limit(features, targets, run, is_given=max_memory is not None)
        fresh.label_counts_ = np.bincount(targets.indices, minlength=targets.n_cols)
        fresh._fit_described(features, targets, label_rows, run)
        fresh.fit_seconds_ = dict(run.seconds)
        fresh.trained_ = {
            "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "rows": features.n_rows,
            "feature_entries": features.nnz,
            "label_entries": targets.nnz,
            "seed": run.seed,
            **({} if mapped is None else {"vocabulary": mapped.counts}),
        }
        if vocabulary is not None:
            fresh.use_vocabulary(vocabulary)
        return self._adopt(fresh)

    def _fit_described(self, X: CSR, Y: CSR, label_rows: LabelRows | None, run: RunContext) -> None:
        """Learn from rows and from the vectors of the labels, which are training rows with one label each."""
        if label_rows is not None:
            X, Y = stacked(X, Y, label_rows, owner=type(self).__name__)
        self._fit(X, Y, run)

    def _check_division(self, executor: object, checkpoint: object, *, resume: bool) -> None:
        """Refuse what would have no effect."""
        owner = type(self).__name__
        if not self.divides_work and (checkpoint is not None or executor not in (None, "threads")):
            what = "a checkpoint" if checkpoint is not None else "an executor"
            raise LabelwoodError(f"{owner}: {what} has no effect: the training of this method is not divided")
        if resume and checkpoint is None:
            raise LabelwoodError(f"{owner}: resume has no effect without a checkpoint")

    def _open_checkpoint(
        self, path: str | os.PathLike[str], data: Sequence[CSR], run: RunContext, *, resume: bool
    ) -> None:
        """Open the checkpoint of this training, and take over its seed if none is given."""
        own = {name: value for name, value in self.get_params().items() if name not in ("n_jobs", "verbose")}
        facts = {"class": type(self).__name__, "version": version_of("labelwood"), **own}
        seed = None if self.random_state is None else run.seed
        run.checkpoint = executors.Checkpoint.open(
            path,
            resume=resume,
            seed=seed,
            fresh_seed=run.seed,
            print_of=executors.fingerprint(facts, data),
            owner=type(self).__name__,
        )
        run.seed = run.checkpoint.seed

    def _read_training(
        self, X: Any, Y: Any, label_names: Sequence[Hashable] | None
    ) -> tuple[CSR, LabelNames, CSR, RunContext]:
        """Checked features, the names of the labels, the label matrix, and the context of a new run."""
        owner = type(self).__name__
        check_parameters(self)
        seed = secrets.randbits(32) if self.random_state is None else int(self.random_state)
        run = RunContext(n_threads=self.n_threads, seed=seed, verbose=bool(self.verbose))
        with run.phase("prepare"):
            features = as_features(X, owner=owner)
            if not self.takes_vectors:
                features = as_sparse(features)
            names, targets = read_labels(Y, label_names, owner)
        check_sizes(features, targets, owner)
        return features, names, targets, run

    def _untrained(self, names: LabelNames, n_features: int, columns: Sequence[str] | None) -> Self:
        """A copy of the parameters that knows its labels and features, and has learned nothing."""
        fresh: Self = clone(self)
        fresh._names, fresh.n_features_in_ = names, n_features
        fresh._name_features(columns)
        return fresh

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a directory, replacing an existing model (but nothing else)."""
        model_directory.write_model(path, *self.to_saved())

    def to_saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The manifest and the arrays that :meth:`save` writes and :meth:`from_saved` reads.

        They do not change when the model learns on.
        """
        self._check_fitted()
        facts, arrays = self._state()
        label_facts, label_arrays = self._names.state()
        plain: dict[str, Any] = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, np.ndarray):
                arrays = {**arrays, _PARAMETER + name: value}
            else:
                plain[name] = value.item() if isinstance(value, np.generic) else value
        decided, learnt = self._decisions.saved()
        manifest = {
            "method": self.method_name,
            "class": type(self).__name__,
            "parameters": plain,
            "n_features": self.n_features_in_,
            "labels": label_facts,
            "facts": facts,
            "trained": {**self.trained_, "seconds": self.fit_seconds_},
            **({"decisions": decided} if decided else {}),
        }
        feature_arrays = names_to_arrays(self._feature_names)
        counts = {_COUNTS: self.label_counts_.copy()}
        meaning = {} if self.vocabulary_ is None else self.vocabulary_.arrays()
        return manifest, {**arrays, **learnt, **label_arrays, **feature_arrays, **counts, **meaning}

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool | None = None) -> Self:
        """Load a model of this class; ``labelwood.load`` takes a model of any class."""
        manifest, arrays = model_directory.read_model(path, verify=verify)
        if manifest.get("method") != cls.method_name or manifest.get("class") != cls.__name__:
            raise FormatError(f"{path}: holds a {manifest.get('class')}, not a {cls.__name__}; use labelwood.load")
        return cls.from_saved(manifest, arrays, where=path)

    @classmethod
    def from_saved(
        cls, manifest: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], *, where: str | os.PathLike[str]
    ) -> Self:
        """The estimator that a manifest and its arrays describe; ``where`` opens the error messages."""
        own = {
            name: array
            for name, array in arrays.items()
            if not (name.startswith((_PARAMETER, COLUMN_NAMES, LABEL_NAMES, VOCABULARY)) or is_saved_here(name))
        }
        given = {name.removeprefix(_PARAMETER): array for name, array in arrays.items() if name.startswith(_PARAMETER)}
        try:
            model = cls(**{**cls.ADDED_LATER, **manifest["parameters"]}, **given)
            check_parameters(model)
            model.n_features_in_ = manifest["n_features"]
            model.trained_, model.fit_seconds_ = model_directory.read_trained(manifest["trained"])
            if type(model.n_features_in_) is not int or model.n_features_in_ < 1:
                raise FormatError(f"n_features must be a positive integer; got {model.n_features_in_!r}")
            model._names = LabelNames.restore(manifest["labels"], arrays)
            model._names.vocabulary = Vocabulary.restore(arrays)
            counts = model.label_counts_ = own.pop(_COUNTS)
            model_directory.check_counts(_COUNTS, counts, model.n_labels_)
            model._name_features(names_from_arrays(arrays, model.n_features_in_))
            model._restore(manifest["facts"], own)
            model._decisions = Decisions.restore(manifest.get("decisions", {}), arrays)
            model._note_fitted()
        except KeyError as error:
            raise FormatError(f"{where}: the model lacks {error}") from None
        except model_directory.UNSOUND as error:
            raise FormatError(f"{where}: {' '.join(str(error).split())}") from error
        return model

    @property
    def classifier_(self) -> TreeEstimator:
        """The estimator that takes vectors: itself; a TextClassifier has it behind its encoder."""
        return self

    def with_classifier(self, classifier: TreeEstimator) -> TreeEstimator:
        """A model that reads its input as this one does and predicts by ``classifier``."""
        return classifier

    def _name_features(self, names: Sequence[str] | None) -> None:
        """Remember the names of X's columns, if it has any."""
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _adopt(self, fresh: Self) -> Self:
        """Take over the fitted state of a copy."""
        fresh._note_fitted()
        kept = {name: value for name, value in vars(self).items() if name not in self._fitted}
        self.__dict__ = {**kept, **{name: vars(fresh)[name] for name in fresh._fitted}}
        return self

    def _note_fitted(self) -> None:
        self._fitted = frozenset(vars(self)) - frozenset(self.get_params(deep=False)) | {"_fitted"}

    def __sklearn_tags__(self) -> Any:
        # Not "classifier": scikit-learn's splitters would then refuse a Y of label names.
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=True, multi_label=True)
        tags.input_tags.sparse = True
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags
