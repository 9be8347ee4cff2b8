"""A second look at the few labels that several models propose for a row: boosted trees order them.

Every candidate becomes one short feature vector: what each member says of it, how common it is, how well the other
candidates go with it, and how much of its name the row contains. The trees are learned on rows that the members did not
learn from, with the logistic loss, so a score is the probability that the candidate is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelwood import _core
from labelwood.errors import FormatError
from labelwood.hybrid import words_of
from labelwood.packed.base import PicklesFieldsOnly, check_pointer, restored_csr
from labelwood.packed.boosted_trees import BoostedTrees
from labelwood.run_context import RunContext
from labelwood.scoring.similar_rows import SimilarRows, within
from labelwood.sparse import CSR, F32, I32, I64, Bool, TopK, from_scipy
from labelwood.validation.label_texts import LabelRows

LIST_FEATURES = ("score", "place", "share of the best score")
SHARED_FEATURES = (
    "mean score",
    "mean share of the best score",
    "mean of 1/place",
    "place by mean share",
    "log count",
    "support",
    "share of the best support",
    "cosine with the name",
    "share of the name in the row",
    "length of the name",
    "length of the row",
    "log count of rows with the name's rarest word",
)
# Features that an explanation adds up, and what they say.
GROUPS = {
    "agreement": ("mean score", "mean share of the best score", "mean of 1/place", "place by mean share"),
    "frequency": ("log count",),
    "company": ("support", "share of the best support"),
    "name": (
        "cosine with the name",
        "share of the name in the row",
        "length of the name",
        "log count of rows with the name's rarest word",
    ),
    "length": ("length of the row",),
}
_COMPANIONS = 50  # labels kept for each label that it goes with
_MATCHES = 20  # labels proposed because their names stand in the row
_TABLES = "tables."
_MANY = 200_000  # candidates from which several threads learn the trees faster than one
_SMALLEST_LEAF, _SHRINKAGE = 50, 10.0
_FEW_HITS = 20_000  # right candidates below which trees are smaller and learn more slowly


class Described(NamedTuple):
    """The candidates of rows and their features; those of row i are ``ptr[i]`` to ``ptr[i + 1]``."""

    ptr: I64
    labels: I32
    features: F32


@dataclass(frozen=True)
class LabelTables(PicklesFieldsOnly):
    """What is known of the labels apart from the members.

    ``together`` has, in row c and column l, the share of the training rows with label c that have label l. ``names``
    are unit-length vectors; those of a label are rows ``name_ptr[label]`` to ``name_ptr[label + 1]``. A name whose
    rarest word stands in many training rows, but whose label few rows have, says little: ``log_name_rows`` has the
    logarithm of 1 + these rows, which bound the rows that have the whole name.
    """

    log_counts: F32
    together: CSR
    name_ptr: I64
    names: CSR
    log_name_rows: F32

    @classmethod
    def learn(cls, X: CSR, Y: CSR, names: LabelRows | None = None) -> LabelTables:
        """The tables of training rows and their labels; ``names`` are the vectors of the labels' names."""
        import scipy.sparse as sp  # noqa: PLC0415 - prediction does without it

        counts = np.bincount(Y.indices, minlength=Y.n_cols)
        given = Y.to_scipy()
        pairs = (given.T @ given).tocsr()
        pairs.setdiag(0)
        pairs.eliminate_zeros()
        shares = from_scipy((sp.diags_array(1 / np.maximum(counts, 1)) @ pairs).tocsr())
        kept = _core.keep_largest(shares.indptr, shares.data, _COMPANIONS)
        rows = np.searchsorted(shares.indptr, kept, side="right") - 1
        indptr = np.searchsorted(rows, np.arange(Y.n_cols + 1)).astype(np.int64)
        together = CSR(indptr, shares.indices[kept], shares.data[kept], Y.n_cols)
        ptr, vectors = names or LabelRows(np.zeros(Y.n_cols + 1, np.int64), _no_rows(X.n_cols))
        unit = words_of(vectors).unit_rows()
        return cls(np.log1p(counts).astype(np.float32), together, ptr, unit, _log_name_rows(X, unit))

    def matches(self, X: CSR, width: int, run: RunContext) -> TopK:
        """The labels whose names stand in each row, at most 20, in a list of the given width."""
        k = min(_MATCHES, width)
        postings, label_of = self._index
        with run.phase("names", X.n_rows) as progress:
            labels, scores = _core.match_names(X, postings, label_of, len(self.log_counts), k, run.n_threads, progress)
        right = ((0, 0), (0, width - k))
        return TopK(np.pad(labels, right, constant_values=-1), np.pad(scores, right))

    @cached_property
    def _index(self) -> tuple[CSR, I32]:
        """The names with each column, and the label of each name."""
        labels = np.repeat(np.arange(len(self.log_counts), dtype=np.int32), np.diff(self.name_ptr))
        return from_scipy(self.names.to_scipy().T.tocsr()), labels

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What to save."""
        found: dict[str, npt.NDArray[Any]] = {"log_counts": self.log_counts, "name_ptr": self.name_ptr}
        found["log_name_rows"] = self.log_name_rows
        for prefix, matrix in (("together.", self.together), ("names.", self.names)):
            found |= {prefix + name: getattr(matrix, name) for name in ("indptr", "indices", "data")}
        return {_TABLES + name: array for name, array in found.items()}

    @classmethod
    def restore(cls, arrays: Mapping[str, Any], n_labels: int, n_features: int, *, name_rows: bool) -> LabelTables:
        """The inverse of :meth:`arrays`; checks every invariant. Older models have no ``name_rows``, and need none."""
        together = restored_csr(arrays, _TABLES + "together.", n_labels)
        names = restored_csr(arrays, _TABLES + "names.", n_features)
        log_counts, ptr = arrays[_TABLES + "log_counts"], arrays[_TABLES + "name_ptr"]
        if log_counts.dtype != np.float32 or log_counts.shape != (n_labels,) or not np.isfinite(log_counts).all():
            raise FormatError(f"the counts of the labels must be {n_labels} finite numbers of float32")
        if ptr.dtype != np.int64 or ptr.ndim != 1 or together.n_rows != n_labels:
            raise FormatError(f"the tables of the labels must have {n_labels} rows")
        check_pointer("LabelTables", "name_ptr", ptr, n_labels, names.n_rows)
        rows = arrays[_TABLES + "log_name_rows"] if name_rows else np.zeros(names.n_rows, np.float32)
        if rows.dtype != np.float32 or rows.shape != (names.n_rows,) or not np.isfinite(rows).all():
            raise FormatError(f"the rows of the names must be {names.n_rows} finite numbers of float32")
        return cls(log_counts, together, ptr, names, rows)


@dataclass(frozen=True)
class SecondLook(PicklesFieldsOnly):
    """Orders the candidates of ``n_members`` members, of ``similar`` rows, and of names that stand in the row."""

    tables: LabelTables
    trees: BoostedTrees
    n_members: int
    similar: SimilarRows | None = None

    def order(self, X: CSR, lists: Sequence[TopK], k: int, run: RunContext) -> TopK:
        """The best k candidates of each row, with their probabilities; ``lists`` are those of the members."""
        proposed = self._proposed(X, lists, run)
        with run.phase("second look", X.n_rows) as progress:
            labels, scores = self._kernel.topk(X, *proposed, k, run.n_threads, progress)
        return TopK(labels, scores)

    def describe(self, X: CSR, lists: Sequence[TopK], run: RunContext) -> Described:
        """The candidates of each row and their features."""
        return Described(*self._kernel.describe(X, *self._proposed(X, lists, run), run.n_threads, None))

    def _proposed(self, X: CSR, lists: Sequence[TopK], run: RunContext) -> tuple[I32, F32]:
        """All lists side by side: those of the members, those of similar rows, the one of names."""
        width = lists[0].labels.shape[1]
        found = [] if self.similar is None else [*self.similar.lists(X, width, run)]
        found += [self.tables.matches(X, width, run)] if self.tables.names.n_rows else []
        if run.allowed is not None:
            found = [within(top, run.allowed) for top in found]
        tops = [*lists, *found]
        return np.concatenate([top.labels for top in tops], axis=1), np.concatenate(
            [top.scores for top in tops], axis=1
        )

    def feature_groups(self) -> list[str]:
        """The group of each feature: ``member`` and its number, ``similar``, or a key of :data:`GROUPS`."""
        group_of = {feature: group for group, features in GROUPS.items() for feature in features}
        lists = [f"member {number}" for number in range(self.n_members)]
        lists += [] if self.similar is None else ["similar"] * self.similar.n_lists
        lists += ["name"] if self.tables.names.n_rows else []
        return [name for name in lists for _ in LIST_FEATURES] + [group_of[name] for name in SHARED_FEATURES]

    @cached_property
    def _kernel(self) -> _core.SecondLook:
        tables = self.tables
        n_similar = 0 if self.similar is None else self.similar.n_lists
        n_lists = self.n_members + n_similar + bool(tables.names.n_rows)
        n_averaged = self.n_members + n_similar // 2  # the votes of similar rows count as those of a member
        kernel = _core.SecondLook(
            tables.log_counts, tables.together, tables.name_ptr, tables.names, tables.log_name_rows, n_lists, n_averaged
        )
        kernel.set_trees(self.trees.kernel_arrays())
        return kernel

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What to save."""
        return {**self.tables.arrays(), **self.trees.arrays(), **(self.similar.arrays() if self.similar else {})}

    @classmethod
    def restore(
        cls,
        arrays: Mapping[str, Any],
        n_members: int,
        n_neighbors: int,
        n_labels: int,
        n_features: int,
        *,
        name_rows: bool,
    ) -> SecondLook:
        """The inverse of :meth:`arrays`; checks every invariant. Without ``n_neighbors``, similar rows do not vote."""
        similar = SimilarRows.restore(arrays, n_neighbors, n_labels, n_features) if n_neighbors else None
        tables = LabelTables.restore(arrays, n_labels, n_features, name_rows=name_rows)
        untaught = cls.untaught(tables, n_members, similar)
        return replace(untaught, trees=BoostedTrees.restore(arrays, len(untaught.feature_groups())))

    @classmethod
    def untaught(cls, tables: LabelTables, n_members: int, similar: SimilarRows | None = None) -> SecondLook:
        """A second look before its trees are learned: it can describe candidates."""
        return cls(tables, BoostedTrees.pack([], 0.0), n_members, similar)


def learn_trees(
    features: F32, hits: Bool, *, n_trees: int, run: RunContext, weights: F32 | None = None
) -> BoostedTrees:
    """Boosted trees that predict whether a candidate is right."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - prediction does without it
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - as above

    is_small = np.count_nonzero(hits) < _FEW_HITS
    booster = HistGradientBoostingClassifier(
        max_iter=n_trees,
        learning_rate=0.05 if is_small else 0.1,
        max_leaf_nodes=8 if is_small else 31,
        min_samples_leaf=_SMALLEST_LEAF,
        l2_regularization=_SHRINKAGE,
        early_stopping=False,
        random_state=run.seed,
    )
    with threadpool_limits(limits=run.n_threads if len(hits) >= _MANY else 1, user_api="openmp"):
        booster.fit(features, hits, sample_weight=weights)
    # scikit-learn has no public access to these trees; tests compare the packed sums with decision_function.
    fitted = vars(booster)
    return BoostedTrees.pack([stage[0].nodes for stage in fitted["_predictors"]], fitted["_baseline_prediction"].item())


def _log_name_rows(X: CSR, names: CSR) -> F32:
    """For each name, log(1 + rows of X that have its rarest column)."""
    if names.n_rows == 0:
        return np.zeros(0, np.float32)
    n_rows = np.bincount(words_of(X).indices, minlength=X.n_cols)[names.indices]
    rarest = np.full(names.n_rows, np.iinfo(np.int64).max)
    np.minimum.at(rarest, np.repeat(np.arange(names.n_rows), np.diff(names.indptr)), n_rows)
    return np.log1p(np.where(np.diff(names.indptr) > 0, rarest, 0)).astype(np.float32)


def _no_rows(n_cols: int) -> CSR:
    return CSR(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), n_cols)
