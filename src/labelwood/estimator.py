"""The base of every method: scikit-learn's conventions outside, checked CSR inside.

A method implements four functions and gets the rest:

    _fit(X, Y, run)           learn; set the fitted state on self
    _topk(X, k, run)          the k best label ids of each row, 1 <= k <= n_labels
    _state()                  JSON-able facts and arrays, to save
    _restore(facts, arrays)   the inverse; checks every invariant that a damaged file could break

In all four, ``self.n_features_in_`` and ``self.n_labels_`` are set.
"""

from __future__ import annotations

import datetime
import os
import secrets
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags

from labelwood import labels, memory, params, persist
from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimate import GRADES, Estimate, Grade, by_sampling
from labelwood.params import Param, check_parameters
from labelwood.progress import Run, thread_count
from labelwood.sparse import CSR, F32, I64, TopK, as_features

if TYPE_CHECKING:
    import scipy.sparse as sp

NJobs = params.NJobs
RandomState = Annotated[
    int | None,
    Param("seed: same data, parameters and seed, same model; None: a new one each fit", ge=0, le=2**32 - 1),
]
Verbose = Annotated[bool, Param("show a progress bar, if on a terminal")]

_FIRST_CANDIDATES = 16
_ROOMY = 50  # times the bytes of the data: more than any method here needs
_PARAMETER = "parameter."  # opens the name of a saved array that is a parameter
_COUNTS = "label_counts"


class TreeEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An extreme multi-label classifier.

    Fitted attributes: ``classes_`` (the label names in the order of their ids), ``n_labels_``,
    ``n_features_in_``, ``fit_seconds_`` (seconds by phase), ``trained_`` (when and on what),
    ``label_counts_`` (how many rows each label had in training).
    """

    method_name: ClassVar[str] = ""

    n_jobs: int | None
    random_state: int | None
    verbose: bool
    n_features_in_: int
    fit_seconds_: dict[str, float]
    trained_: dict[str, Any]
    label_counts_: I64
    _names: labels.LabelNames
    _fitted: frozenset[str] = frozenset()  # the attributes that fit or load has set

    def _fit(self, X: CSR, Y: CSR, run: Run) -> None:
        raise NotImplementedError

    def _topk(self, X: CSR, k: int, run: Run) -> TopK:
        raise NotImplementedError

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        raise NotImplementedError

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """What the fitted model is made of, such as its depth and its number of nodes."""
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        label_names: Sequence[Hashable] | None = None,
        max_memory: str | int | None = None,
    ) -> Self:
        """Learn from X and Y.

        ``X`` is a sparse or dense matrix, rows x features. ``Y`` is a 0/1 matrix, rows x labels, sparse or
        dense; or one list, set or tuple of label names a row, the names of any hashable kind. ``label_names``
        names the columns of a matrix. Names come back from the predictions as they went in. If fit fails or
        is interrupted, the estimator is what it was before.

        ``max_memory``, such as ``"4GB"``, is the most memory that the process may come to hold; by default what
        is free. A training that would need more is refused before it starts, with what would need less.
        """
        fresh, features, targets, run = self._begin_fit(X, Y, label_names)
        run.limit = memory.limit_of(max_memory, owner=type(self).__name__)
        fresh._check_limit(features, targets, run, is_given=max_memory is not None)
        fresh.label_counts_ = np.bincount(targets.indices, minlength=targets.n_cols)
        fresh._fit(features, targets, run)
        fresh.fit_seconds_ = dict(run.seconds)
        fresh.trained_ = {
            "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "rows": features.n_rows,
            "feature_entries": features.nnz,
            "label_entries": targets.nnz,
            "seed": run.seed,
        }
        fresh._note_fitted()
        kept = {name: value for name, value in vars(self).items() if name not in self._fitted}
        self.__dict__ = {**kept, **{name: vars(fresh)[name] for name in fresh._fitted}}
        return self

    def estimate(
        self, X: Any, Y: Any, *, grade: Grade = "exact", label_names: Sequence[Hashable] | None = None
    ) -> Estimate:
        """What fit would need on these data: bytes of the model, peak memory, seconds, each with a band.

        ``grade`` "exact" grows the tree of a label-tree method and counts the features of its nodes; "quick"
        does without clustering, on a random tree of the same shape. Other methods are trained on a part of the
        rows with one tree, smaller for "quick". Nothing of the estimator changes.
        """
        if grade not in GRADES:
            raise LabelwoodError(
                f"{type(self).__name__}: grade must be one of {', '.join(GRADES)}; got {grade!r}"
            )
        fresh, features, targets, run = self._begin_fit(X, Y, label_names)
        return fresh._estimate(features, targets, run, grade)

    def _begin_fit(
        self, X: Any, Y: Any, label_names: Sequence[Hashable] | None
    ) -> tuple[Self, CSR, CSR, Run]:
        """A copy that knows its labels and features, the checked data, and the run."""
        owner = type(self).__name__
        check_parameters(self)
        fresh: Self = clone(self)
        seed = secrets.randbits(32) if self.random_state is None else int(self.random_state)
        run = Run(n_threads=self._n_threads(), seed=seed, verbose=bool(self.verbose))
        with run.phase("prepare"):
            features = as_features(X, owner=owner)
            names, targets = labels.read_named(Y, label_names, owner=owner)
        _check_sizes(features, targets, owner)
        fresh._names, fresh.n_features_in_ = names, features.n_cols
        return fresh, features, targets, run

    def _names_bytes(self) -> int:
        """Bytes of the label names and counts in a saved model."""
        return 8 * self.n_labels_ + sum(array.nbytes for array in self._names.state()[1].values())

    def _estimate(self, X: CSR, Y: CSR, run: Run, grade: Grade) -> Estimate:
        """By training on parts of the rows, with one tree where there are several."""
        return by_sampling(
            self._try_rows,
            X,
            Y,
            method=self.method_name,
            grade=grade,
            n_trees=int(getattr(self, "n_trees", 1)),
            names_bytes=self._names_bytes(),
            held_in_training=self._held_in_training,
            bound=self._bytes_bound(X, Y),
            run=run,
        )

    # Bytes that training holds for each byte of the model: results in their widest types, twice while they are
    # put together.
    _held_in_training: ClassVar[float] = 5.0

    def _bytes_bound(self, X: CSR, Y: CSR) -> int | None:
        """Bytes that the model's arrays cannot exceed, where the method's paper proves a bound."""
        return None

    def _try_rows(self, X: CSR, Y: CSR, run: Run) -> int:
        """Bytes of a model of these rows, with one tree where there are several."""
        fresh: Self = clone(self)
        if hasattr(fresh, "n_trees"):
            fresh.set_params(n_trees=1)
        fresh._names, fresh.n_features_in_ = self._names, self.n_features_in_
        fresh.label_counts_ = np.zeros(self.n_labels_, np.int64)
        fresh._fit(X, Y, run)
        return sum(array.nbytes for array in fresh._state()[1].values())

    def _check_limit(self, X: CSR, Y: CSR, run: Run, *, is_given: bool) -> None:
        """Refuse a training that would not fit into ``run.limit``.

        Without a limit of the user's, data that are small beside the free memory are let pass unlooked.
        """
        if run.limit is None:
            return
        roomy = memory.resident() + _ROOMY * (X.nbytes + Y.nbytes) < run.limit.bytes
        if is_given or not roomy:
            self._estimate(X, Y, run, "quick").check(run.limit, owner=type(self).__name__)

    def predict_topk(self, X: Any, k: int = 5) -> tuple[npt.NDArray[Any], F32]:
        """The k best labels of each row and their scores, best first: two arrays [rows, k].

        Labels are names if the model was fitted with names, else columns of Y. Where a row has fewer than k
        labels to offer (k may exceed the number of labels), it ends in None, or -1 for columns, with a score
        of 0.
        """
        top = self._topk_ids(X, k)
        return self._names.take(top.labels), top.scores

    def predict(
        self, X: Any, *, k: int | None = None, threshold: float | None = None
    ) -> sp.csr_array[np.float32]:
        """The predicted labels as a sparse 0/1 matrix, rows x labels.

        With ``k``: the k best of each row; with ``threshold``: those that score at least as much; with both:
        both must hold; with neither: a threshold of 0.5.
        """
        features = self._read_features(X)
        if k is None:
            rows, ids = self._above(features, 0.5 if threshold is None else threshold)
        else:
            top = self._topk_ids(features, k)
            rows, ids, _ = _entries(top, None if threshold is None else top.scores >= threshold)
        return self._matrix(features.n_rows, rows, ids, np.ones(len(ids), np.float32))

    def predict_proba(self, X: Any, *, k: int = 10) -> sp.csr_array[np.float32]:
        """The scores of the k best labels of each row as a sparse matrix, rows x labels."""
        top = self._topk_ids(X, k)
        return self._matrix(len(top.labels), *_entries(top))

    def score(self, X: Any, Y: Any) -> float:
        """Precision at 1: the share of rows whose best label is right."""
        from labelwood.metrics import precision_at_k  # noqa: PLC0415 - fitting and serving do without the metrics

        top, truth = self._topk_ids(X, 1), self._encode_labels(Y)
        _check_lengths(len(top.labels), truth.n_rows, type(self).__name__)
        return float(precision_at_k(truth, top, 1))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a directory, replacing a model that is already there (but nothing else)."""
        persist.write_model(path, *self.to_saved())

    def to_saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The manifest and the arrays that :meth:`save` writes and :meth:`from_saved` reads."""
        self._check_fitted()
        facts, arrays = self._state()
        label_facts, label_arrays = self._names.state()
        plain: dict[str, Any] = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, np.ndarray):
                arrays = {**arrays, _PARAMETER + name: value}
            else:
                plain[name] = value.item() if isinstance(value, np.generic) else value
        manifest = {
            "method": self.method_name,
            "class": type(self).__name__,
            "parameters": plain,
            "n_features": self.n_features_in_,
            "labels": label_facts,
            "facts": facts,
            "trained": {**self.trained_, "seconds": self.fit_seconds_},
        }
        return manifest, {**arrays, **label_arrays, _COUNTS: self.label_counts_}

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool | None = None) -> Self:
        """Load a model of this class; ``labelwood.load`` takes a model of any class."""
        manifest, arrays = persist.read_model(path, verify=verify)
        if manifest.get("method") != cls.method_name or manifest.get("class") != cls.__name__:
            raise FormatError(
                f"{path}: holds a {manifest.get('class')}, not a {cls.__name__}; use labelwood.load"
            )
        return cls.from_saved(manifest, arrays, where=path)

    @classmethod
    def from_saved(
        cls,
        manifest: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
        *,
        where: str | os.PathLike[str],
    ) -> Self:
        """The estimator that a manifest and its arrays describe; ``where`` opens the error messages."""
        own = {
            name: array for name, array in arrays.items() if not name.startswith((_PARAMETER, labels.PREFIX))
        }
        given = {
            name.removeprefix(_PARAMETER): array
            for name, array in arrays.items()
            if name.startswith(_PARAMETER)
        }
        try:
            model = cls(**manifest["parameters"], **given)
            check_parameters(model)
            model.n_features_in_, model.trained_ = manifest["n_features"], dict(manifest["trained"])
            model.fit_seconds_ = model.trained_.pop("seconds")
            if type(model.n_features_in_) is not int or model.n_features_in_ < 1:
                raise FormatError(f"n_features must be a positive integer; got {model.n_features_in_!r}")
            model._names = labels.LabelNames.restore(manifest["labels"], arrays)
            counts = model.label_counts_ = own.pop(_COUNTS)
            if counts.shape != (model.n_labels_,) or counts.dtype != np.int64 or (counts < 0).any():
                raise FormatError(f"{_COUNTS} must be one integer, at least 0, a label")
            model._restore(manifest["facts"], own)
            model._note_fitted()
        except KeyError as error:
            raise FormatError(f"{where}: the model lacks {error}") from None
        except (TypeError, LabelwoodError) as error:
            raise FormatError(f"{where}: {error}") from error
        return model

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The label names in the order of their ids: 0..L-1 if Y was a matrix without names."""
        self._check_fitted()
        return self._names.array

    @property
    def n_labels_(self) -> int:
        """Number of labels."""
        self._check_fitted()
        return len(self._names)

    def _read_features(self, X: Any) -> CSR:
        self._check_fitted()
        return as_features(X, owner=type(self).__name__, n_features=self.n_features_in_)

    def _topk_ids(self, X: Any, k: int) -> TopK:
        """The k best label ids of each row of a user's X, exactly k wide."""
        features = self._read_features(X)
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise LabelwoodError(f"{type(self).__name__}: k must be an integer, at least 1; got {k!r}")
        run = Run(n_threads=self._n_threads(), verbose=bool(self.verbose))
        top = self._topk(features, min(int(k), self.n_labels_), run)
        lacking = int(k) - top.labels.shape[1]
        if lacking == 0:
            return top
        right = ((0, 0), (0, lacking))
        return TopK(np.pad(top.labels, right, constant_values=-1), np.pad(top.scores, right))

    def _encode_labels(self, Y: Any) -> CSR:
        """A user's Y with this model's label ids; labels unknown to the model become further columns."""
        self._check_fitted()
        owner = type(self).__name__
        if not labels.is_matrix(Y):
            rows = labels.read_rows(Y, owner=owner)
            return labels.to_csr(rows, self._names.index, self.n_labels_, owner=owner)
        matrix = labels.read_matrix(Y, owner=owner)
        return CSR(matrix.indptr, matrix.indices, matrix.data, max(matrix.n_cols, self.n_labels_))

    def _above(self, X: CSR, threshold: float) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Rows and ids of every label at or above the threshold.

        Asks for a few labels first, and for more only in the rows where all of those passed.
        """
        rows, k = np.arange(X.n_rows), _FIRST_CANDIDATES
        found = []
        while True:
            top = self._topk_ids(X.take(rows), k)
            done = (top.labels[:, -1] < 0) | (top.scores[:, -1] < threshold) | (k >= self.n_labels_)
            part, ids, _ = _entries(top, (top.scores >= threshold) & done[:, None])
            found.append((rows[part], ids))
            rows, k = rows[~done], 4 * k
            if len(rows) == 0:
                return np.concatenate([part[0] for part in found]), np.concatenate(
                    [part[1] for part in found]
                )

    def _matrix(self, n_rows: int, rows: Any, ids: Any, values: F32) -> sp.csr_array[np.float32]:
        import scipy.sparse as sp  # noqa: PLC0415 - predict_topk does without it

        matrix = sp.coo_array((values, (rows, ids)), shape=(n_rows, self.n_labels_)).tocsr()
        matrix.sort_indices()
        return matrix

    def _n_threads(self) -> int:
        return thread_count(self.n_jobs, owner=type(self).__name__)

    def _note_fitted(self) -> None:
        self._fitted = frozenset(vars(self)) - frozenset(self.get_params(deep=False)) | {"_fitted"}

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"{type(self).__name__}: not fitted yet; call fit(X, Y) first")

    def __sklearn_is_fitted__(self) -> bool:
        return "_names" in vars(self)

    def __sklearn_tags__(self) -> Any:
        # Not "classifier": scikit-learn's splitters would then refuse a Y of label names.
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)
        tags.input_tags.sparse = True
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags


def _check_lengths(n_rows: int, n_label_rows: int, owner: str) -> None:
    if n_rows != n_label_rows:
        raise LabelwoodError(
            f"{owner}: X and Y must have the same number of rows; got {n_rows} and {n_label_rows}"
        )


def _check_sizes(X: CSR, Y: CSR, owner: str) -> None:
    _check_lengths(X.n_rows, Y.n_rows, owner)
    for count, what in ((X.n_rows, "row"), (X.n_cols, "feature"), (Y.n_cols, "label")):
        if count == 0:
            raise LabelwoodError(f"{owner}: at least one {what} is needed to learn from; got 0")
    if Y.nnz == 0:
        raise LabelwoodError(f"{owner}: at least one row must have a label; Y is empty")


def _entries(top: TopK, keep: Any = None) -> tuple[npt.NDArray[Any], npt.NDArray[Any], F32]:
    """Rows, ids and scores of the kept predictions; padding is dropped."""
    kept = top.labels >= 0 if keep is None else (top.labels >= 0) & keep
    rows, _ = np.nonzero(kept)
    return rows, top.labels[kept], top.scores[kept]
