"""OnlineForest: several OnlineTrees as one model, which see the rows in different orders."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelwood import executors
from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator import NJobs, RandomState, TreeEstimator, Verbose
from labelwood.executors.work_unit import Arrays, Progress, Unit
from labelwood.explain import Asked, Explanation, Place
from labelwood.explain.label_tree import RowInTree, explain_row, members_of
from labelwood.label_names import LabelNames
from labelwood.methods._nested_models import own_arrays, saved_members
from labelwood.methods.online.online_tree import OnlineTree
from labelwood.methods.online.stream_inputs import GrowingNames, read_features
from labelwood.packed.label_tree import average
from labelwood.params import Param, check_parameters
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, TopK

_CANDIDATES = 4  # times k: how many labels each tree contributes to an average
_COUNTERS = ("growing", "seen", "updates", "decisions", "cursor", "rows_learned")
_SEEDS = 2**32


class OnlineForest(TreeEstimator):
    """Several label trees that grow as they learn; their scores are averaged.

    Use it instead of OnlineTree where quality matters more than time and memory, of which it takes ``n_trees`` times
    as much. Trees are trained apart, on as many machines as an executor has. ``partial_fit`` teaches all trees the
    same rows in the same order: they differ only in how labels are placed, if the policy draws at random.

    Fitted attributes: ``trees_``, the :class:`OnlineTree` estimators.

    >>> import numpy as np
    >>> X = np.eye(6, dtype=np.float32)
    >>> Y = [["red"], ["red"], ["green"], ["green"], ["blue"], ["blue"]]
    >>> OnlineForest(n_trees=2, n_jobs=1).fit(X, Y).predict_topk(X[:1], k=1)[0].tolist()
    [['red']]
    """

    method_name: ClassVar[str] = "online-forest"
    trees_: list[OnlineTree]

    def __init__(
        self,
        *,
        n_trees: Annotated[int, Param("trees, whose scores are averaged", ge=1)] = 3,
        tree: Annotated[
            dict[str, Any] | None, Param("parameters of each OnlineTree, by name; None: their defaults")
        ] = None,
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.n_trees = n_trees
        self.tree = tree
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def partial_fit(self, X: Any, Y: Any, *, label_names: Sequence[Hashable] | None = None) -> Self:
        """Learn some rows, in their order, on top of what is known; see OnlineTree's ``partial_fit``."""
        if not self.__sklearn_is_fitted__():
            check_parameters(self)
            self.trees_ = [self._unfitted(self._seed(number)) for number in range(self.n_trees)]
        for tree in self.trees_:
            tree.partial_fit(X, Y, label_names=label_names)
        self._follow(self.trees_[0])
        self._note_fitted()
        return self

    def describe(self) -> dict[str, Any]:
        """Trees, and depth, nodes and size of them."""
        found = [tree.describe() for tree in self.trees_]
        total = {name: sum(one[name] for one in found) for name in found[0] if name != "depth"}
        return {"n_trees": len(found), "depth": max(one["depth"] for one in found), **total}

    def _seed(self, number: int, first: int | None = None) -> int:
        start = (self.random_state or 0) if first is None else first
        return (int(start) + number) % _SEEDS

    def _unfitted(self, seed: int) -> OnlineTree:
        try:
            tree = OnlineTree(**{**(self.tree or {}), "random_state": seed, "n_jobs": self.n_jobs})
        except TypeError as error:
            raise LabelwoodError(
                f"OnlineForest: tree must hold parameters of OnlineTree by name; {error}"
            ) from None
        check_parameters(tree)
        return tree

    def _follow(self, tree: OnlineTree) -> None:
        """Know the labels and features that the trees know."""
        self._names, self.n_features_in_ = tree._names, tree.n_features_in_
        self.label_counts_, self.trained_ = tree.label_counts_, dict(tree.trained_)
        self.fit_seconds_ = dict(tree.fit_seconds_)
        self._name_features(tree._feature_names)

    def _fit(self, X: CSR, Y: CSR, run: RunContext) -> None:
        run.executor = run.executor or executors.active()
        fresh = [self._unfitted(self._seed(number, run.seed)) for number in range(self.n_trees)]
        shared: dict[str, npt.NDArray[Any]] = {
            "x_indptr": X.indptr, "x_indices": X.indices, "x_data": X.data, "y_indptr": Y.indptr,
            "y_indices": Y.indices,
        }  # fmt: skip
        sizes = {"n_features": X.n_cols, "n_labels": Y.n_cols}
        units = [
            Unit(f"tree{number}", learn_tree, setting={**sizes, "parameters": tree.get_params()})
            for number, tree in enumerate(fresh)
        ]
        self.trees_ = [
            self._restored(tree, arrays, X, Y)
            for tree, arrays in zip(fresh, executors.complete("learn", units, shared, run), strict=True)
        ]

    def _restored(self, tree: OnlineTree, arrays: dict[str, npt.NDArray[Any]], X: CSR, Y: CSR) -> OnlineTree:
        """A tree that was learned elsewhere, as if it had been learned here."""
        facts = dict(zip(_COUNTERS, arrays.pop("counters").tolist(), strict=True))
        tree._start(GrowingNames(self._names), int(tree.random_state or 0))
        tree.n_features_in_, tree.label_counts_ = self.n_features_in_, self.label_counts_.copy()
        tree.rows_learned_, tree.fit_seconds_ = facts["rows_learned"], {}
        tree.trained_ = {
            "rows": X.n_rows, "feature_entries": X.nnz, "label_entries": Y.nnz, "seed": tree._seed,
        }  # fmt: skip
        tree._name_features(self._feature_names)
        tree._note_fitted()
        tree._restore_growing(facts, arrays)
        return tree

    def _read_features(self, X: Any) -> CSR:
        self._check_fitted()
        self._check_columns(X, may_grow=True)
        return read_features(X, self.n_features_in_, owner=type(self).__name__)

    def _members(self, X: CSR, k: int, run: RunContext) -> list[TopK]:
        wide = k if len(self.trees_) == 1 else min(_CANDIDATES * k, self.n_labels_)
        return [tree._topk(X, wide, run) for tree in self.trees_]

    def _topk(self, X: CSR, k: int, run: RunContext) -> TopK:
        return average(self._members(X, k, run), k)

    def _explain(
        self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: RunContext
    ) -> Explanation:
        members = self._members(row, k, run)
        views = []
        for number, tree in enumerate(self.trees_):
            frozen = tree.freeze()
            assert frozen._packed is not None
            rows = tree._packed_rows(row, frozen._packed)
            views.append(
                RowInTree(frozen._packed, rows, asked, number=number, leaf_labels=frozen._leaf_labels)
            )
        lists = [members_of(member) for member in members]
        return explain_row(views, lists, average(members, k), asked, beam_width=None, missed=missed)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        manifests, arrays = saved_members(self.trees_, "tree")
        return {"trees": manifests, **self.describe()}, arrays

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        if not isinstance(facts, dict) or not isinstance(facts["trees"], list) or not facts["trees"]:
            raise FormatError("trees must be a list of at least one")
        self.trees_ = []
        for number, manifest in enumerate(facts["trees"]):
            own = own_arrays(arrays, "tree", number)
            self.trees_.append(OnlineTree.from_saved(manifest, own, where=f"tree {number}"))
        for tree in self.trees_:
            if tree.n_labels_ != self.n_labels_ or tree.n_features_in_ != self.n_features_in_:
                raise FormatError("the trees of a forest must have its labels and features")


def learn_tree(
    arrays: Arrays, setting: Mapping[str, Any], n_threads: int, progress: Progress
) -> dict[str, npt.NDArray[Any]]:
    """One tree, learned from all rows: its saved state and counters."""
    tree: OnlineTree = clone(OnlineTree(**setting["parameters"])).set_params(n_jobs=n_threads)
    X = CSR(arrays["x_indptr"], arrays["x_indices"], arrays["x_data"], setting["n_features"])
    ones = np.ones(len(arrays["y_indices"]), np.float32)
    Y = CSR(arrays["y_indptr"], arrays["y_indices"], ones, setting["n_labels"])
    tree._names, tree.n_features_in_ = GrowingNames(LabelNames.columns(Y.n_cols)), X.n_cols
    tree.label_counts_ = np.zeros(Y.n_cols, np.int64)
    tree._fit(X, Y, RunContext(n_threads=n_threads, seed=int(tree.random_state or 0)))
    facts, state = tree._state()
    return {**state, "counters": np.array([int(facts[name]) for name in _COUNTERS], np.int64)}
