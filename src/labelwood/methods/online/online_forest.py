"""OnlineForest: several OnlineTrees as one model, which see the rows in different orders."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelwood import executors
from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator import NJobs, RandomState, Verbose
from labelwood.executors.work_unit import Unit
from labelwood.explain import Asked, Explanation, Place
from labelwood.explain.label_tree import explain_row, members_of
from labelwood.label_names import LabelNames
from labelwood.methods._nested_models import own_arrays, saved_members
from labelwood.methods.online.growing import chunk_bounds
from labelwood.methods.online.learner import StreamLearner
from labelwood.methods.online.model_lock import reads
from labelwood.methods.online.online_tree import OnlineTree
from labelwood.methods.online.stream_inputs import GrowingNames
from labelwood.packed.label_tree import LabelledTree, average
from labelwood.params import Param, check_parameters
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, Arrays, Progress, TopK, training_arrays

T = TypeVar("T")

_CANDIDATES = 4  # times k: labels that each tree contributes to an average
_SEEDS = 2**32
_MANIFEST = "manifest"  # the array that holds the manifest of a learned tree, as JSON


class OnlineForest(StreamLearner):
    """Several label trees that grow as they learn; their scores are averaged.

    Use it instead of OnlineTree where quality matters more: it takes ``n_trees`` times the time and memory. ``fit``
    trains the trees apart, on all machines of an executor. ``partial_fit`` teaches all trees the same rows in the same
    order: they differ only in the places of labels, if the policy draws at random.

    Fitted attributes: ``trees_``, the :class:`OnlineTree` estimators.

    >>> import numpy as np
    >>> X = np.eye(6, dtype=np.float32)
    >>> Y = [["red"], ["red"], ["green"], ["green"], ["blue"], ["blue"]]
    >>> OnlineForest(n_trees=2, n_jobs=1).fit(X, Y).predict_topk(X[:1], k=1)[0].tolist()
    [['red']]
    """

    method_name: ClassVar[str] = "online-forest"
    divides_work: ClassVar[bool] = True
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
        self.n_trees, self.tree, self.n_jobs, self.random_state = n_trees, tree, n_jobs, random_state
        self.verbose = verbose

    @reads
    def describe(self) -> dict[str, Any]:
        """Trees, and depth, nodes and size of them."""
        found = [tree.describe() for tree in self.trees_]
        total = {name: sum(one[name] for one in found) for name in found[0] if name != "depth"}
        return {"n_trees": len(found), "depth": max(one["depth"] for one in found), **total}

    def _first_seed(self) -> int:
        return secrets.randbits(32) if self.random_state is None else int(self.random_state)

    def _unfitted(self, seed: int) -> list[OnlineTree]:
        """The trees before learning, with seeds that count up from ``seed``."""
        seeds = [(seed + number) % _SEEDS for number in range(self.n_trees)]
        try:
            own = {**(self.tree or {}), "n_jobs": self.n_jobs}
            trees = [OnlineTree(**{**own, "random_state": one}) for one in seeds]
        except TypeError as error:
            raise LabelwoodError(f"OnlineForest: tree must hold parameters of OnlineTree by name; {error}") from None
        check_parameters(trees[0])
        return trees

    def learn_rows(self, X: CSR, Y: CSR, n_threads: int) -> None:
        """Learn checked rows, in their order; ``rows_learned_`` counts them, also after an interrupt."""
        before = self.n_seen_
        bounds, _ = chunk_bounds(X, Y, np.arange(X.n_rows))
        try:
            for start, stop in pairwise(bounds):
                self._learn_chunk(X.rows(start, stop), Y.rows(start, stop), n_threads)
        finally:
            self.rows_learned_ = self.n_seen_ - before

    def _learn_chunk(self, X: CSR, Y: CSR, n_threads: int) -> None:
        self._teach(X, Y, lambda tree: tree.learn_rows(X, Y, n_threads))

    def predict_then_learn(self, X: CSR, Y: CSR, k: int) -> TopK:
        """Learn checked rows, in their order; the k best labels of each row before it was learned."""
        wide = self._candidates(k)
        return average(self._teach(X, Y, lambda tree: tree.predict_then_learn(X, Y, wide)), k)

    def _teach(self, X: CSR, Y: CSR, step: Callable[[OnlineTree], T]) -> list[T]:
        """Teach every tree the same rows; an interrupt is raised after all trees have learned them."""
        self._lead()
        before = [tree.n_seen_ for tree in self.trees_]
        try:
            return [step(tree) for tree in self.trees_]
        except KeyboardInterrupt:
            for tree, seen in zip(self.trees_, before, strict=True):
                done = tree.n_seen_ - seen
                tree.learn_rows(X.rows(done, X.n_rows), Y.rows(done, Y.n_rows), self.n_threads)
            raise
        finally:
            self._follow()

    @reads
    def freeze(self, *, weight_threshold: float | None = None) -> Self:
        """A copy for prediction only, of frozen trees; see OnlineTree's ``freeze``."""
        self._check_can_learn()
        frozen: Self = clone(self)
        frozen.trees_ = [tree.freeze(weight_threshold=weight_threshold) for tree in self.trees_]
        frozen._names, frozen.rows_learned_ = GrowingNames(self._names), self.rows_learned_
        frozen.n_features_in_ = self.n_features_in_
        frozen._name_features(self._feature_names)
        frozen._lead()
        frozen._follow()
        frozen._note_fitted()
        return frozen

    @reads
    def label_records(self) -> dict[str, npt.NDArray[Any]]:
        """Support, first and last sight, retirement and target of every label that was seen."""
        self._check_fitted()
        return self.trees_[0].label_records()

    def set_lifecycle(self, label: int, *, retired: bool, answers_as: int) -> None:
        """Retire a label id, or let it answer as another, in every tree."""
        self._check_can_learn()
        for tree in self.trees_:
            tree.set_lifecycle(label, retired=retired, answers_as=answers_as)

    @property
    def can_learn(self) -> bool:
        """True if the model is fitted and neither frozen nor saved with ``inference_only``."""
        return self.__sklearn_is_fitted__() and all(tree.can_learn for tree in self.trees_)

    @property
    def n_seen_(self) -> int:
        """Number of examples learned, every pass counted."""
        self._check_fitted()
        return self.trees_[0].n_seen_

    @property
    def _normalizes(self) -> bool:
        return self.trees_[0].normalize

    def begun(self, names: LabelNames) -> Self:
        """A copy of the parameters that has seen nothing."""
        fresh: Self = clone(self)
        fresh._names, fresh.rows_learned_, fresh.n_features_in_ = GrowingNames(names), 0, 1
        fresh.trees_ = [tree.begun(names) for tree in self._unfitted(self._first_seed())]
        fresh._lead()
        fresh._follow()
        fresh._note_fitted()
        return fresh

    def _lead(self) -> None:
        """Let the trees know the labels and features of the forest."""
        for tree in self.trees_:
            tree.follow(self)

    def _follow(self) -> None:
        """Know the counts and times of the trees."""
        tree = self.trees_[0]
        self.label_counts_, self.trained_ = tree.label_counts_, dict(tree.trained_)
        self.fit_seconds_ = dict(tree.fit_seconds_)

    def _fit(self, X: CSR, Y: CSR, run: RunContext) -> None:
        self._names, self.rows_learned_ = GrowingNames(self._names), X.n_rows
        run.executor = run.executor or executors.joblib_executor()
        trees = self._unfitted(run.seed)
        learn = _learn_divided if run.is_divided else _learn_here
        # Restored trees lack the spare room of learning: the model is the same wherever its trees were learned.
        self.trees_ = [_from_arrays(arrays) for arrays in learn(trees, X, Y, run)]
        self._lead()

    def _candidates(self, k: int) -> int:
        """The labels that each tree contributes to a list of k."""
        return k if len(self.trees_) == 1 else max(k, min(_CANDIDATES * k, self.n_labels_))

    def topk_by_tree(self, X: CSR, k: int, run: RunContext) -> list[TopK]:
        """The labels that each tree proposes for rows."""
        return [tree.topk_rows(X, run.width(self._candidates(k)), run) for tree in self.trees_]

    def topk_rows(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k labels of highest averaged score."""
        return average(self.topk_by_tree(X, k, run), k)

    @reads
    def trees(self) -> list[LabelledTree]:
        """The packed trees; live ones are packed for it."""
        return [packed for tree in self.trees_ for packed in tree.trees()]

    def explain_one(self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: RunContext) -> Explanation:
        """Explain on the packed trees."""
        members = self.topk_by_tree(row, k, run)
        top = average(members, k)
        views = [tree.row_in_tree(row, asked, number=number) for number, tree in enumerate(self.trees_)]
        lists = [members_of(member) for member in members]
        return explain_row(views, lists, top, asked, beam_width=None, missed=missed)

    def knows_any(self, row: CSR) -> bool:
        """True if a feature of the row is known to the model."""
        return self.trees_[0].knows_any(row)

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        manifests, arrays = saved_members(self.trees_, "tree")
        return {"trees": manifests, **self.describe()}, arrays

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        if not isinstance(facts["trees"], list) or not facts["trees"]:
            raise FormatError("trees must be a list of at least one")
        self.trees_ = []
        for number, manifest in enumerate(facts["trees"]):
            own = own_arrays(arrays, "tree", number)
            self.trees_.append(OnlineTree.from_saved(manifest, own, where=f"tree {number}"))
        for tree in self.trees_:
            if tree.n_labels_ != self.n_labels_ or tree.n_features_in_ != self.n_features_in_:
                raise FormatError("the trees of a forest must have its labels and features")
        self._names, self.rows_learned_ = GrowingNames(self._names), self.trees_[0].rows_learned_
        self._lead()

    def _fit_counts(self) -> None:
        super()._fit_counts()
        self._lead()

    @reads
    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle and copy: that of the forest and, taken at the same time, of its trees."""
        state = super().__getstate__()
        if "trees_" not in state:
            return state
        trees = [{**tree.__getstate__(), "_names": state["_names"]} for tree in self.trees_]
        return {**state, "trees_": trees}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "trees_" in state:
            self.trees_ = [OnlineTree.__new__(OnlineTree) for _ in state["trees_"]]
            for tree, own in zip(self.trees_, state["trees_"], strict=True):
                tree.__setstate__(own)


def _learn_here(trees: Sequence[OnlineTree], X: CSR, Y: CSR, run: RunContext) -> list[dict[str, npt.NDArray[Any]]]:
    """The arrays of the trees, learned one after the other."""
    names, found = LabelNames.columns(Y.n_cols), []
    with run.phase("learn", len(trees)) as progress:
        for number, tree in enumerate(trees, 1):
            found.append(_as_arrays(tree.fit_rows(X, Y, names, run.n_threads)))
            if progress is not None:
                progress(number)
    return found


def _learn_divided(trees: Sequence[OnlineTree], X: CSR, Y: CSR, run: RunContext) -> list[dict[str, npt.NDArray[Any]]]:
    """The arrays of the trees, each learned by a work unit."""
    sizes = {"n_features": X.n_cols, "n_labels": Y.n_cols}
    units = [
        Unit(f"tree{number}", learn_tree, setting={**sizes, "parameters": tree.get_params()})
        for number, tree in enumerate(trees)
    ]
    return executors.complete("learn", units, training_arrays(X, Y), run)


def learn_tree(
    arrays: Arrays, setting: Mapping[str, Any], n_threads: int, progress: Progress
) -> dict[str, npt.NDArray[Any]]:
    """One tree, learned from all rows, as arrays."""
    X = CSR(arrays["x_indptr"], arrays["x_indices"], arrays["x_data"], setting["n_features"])
    ones = np.ones(len(arrays["y_indices"]), np.float32)
    Y = CSR(arrays["y_indptr"], arrays["y_indices"], ones, setting["n_labels"])
    tree = OnlineTree(**setting["parameters"])
    return _as_arrays(tree.fit_rows(X, Y, LabelNames.columns(Y.n_cols), n_threads))


def _as_arrays(tree: OnlineTree) -> dict[str, npt.NDArray[Any]]:
    manifest, arrays = tree.to_saved()
    return {**arrays, _MANIFEST: np.frombuffer(json.dumps(manifest).encode(), np.uint8)}


def _from_arrays(arrays: dict[str, npt.NDArray[Any]]) -> OnlineTree:
    manifest = json.loads(arrays.pop(_MANIFEST).tobytes())
    return OnlineTree.from_saved(manifest, arrays, where="a learned tree")
