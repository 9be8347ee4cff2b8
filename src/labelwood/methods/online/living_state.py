"""The fitted state of a LivingTree: its parts, their labels and features, saving, restoring and freezing."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator import FittedModel
from labelwood.explain import Asked, Explanation, Member, Place, Suggestion
from labelwood.methods._nested_models import own_arrays, saved_members
from labelwood.methods.online.learner import StreamLearner
from labelwood.methods.online.living_batch import Batch, Refit, RefitResult, unfitted_batch
from labelwood.methods.online.model_lock import reads
from labelwood.methods.online.newness_mix import Lists, NewnessMix, RecentLists
from labelwood.methods.online.online_tree import OnlineTree
from labelwood.methods.online.row_store import NearestRows, RowBounds, RowStore, count_recent, is_recent, window_start
from labelwood.methods.online.stream_inputs import GrowingNames
from labelwood.params import check_parameters
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, F64, I32, MAX_COLUMNS

_ROWS, _RECENT, _BATCH = "rows.", "recent.", "batch."
STEP = 128  # rows between two looks at whether a refit is due
_COUNTERS = ("seed", "rows_learned", "seen", "n_refits", "refit_at")


class LivingState(StreamLearner):
    """The parts of a LivingTree: an online tree, a batch tree or none yet, the rows, and the mix of their answers."""

    has_label_weights = False

    batch: dict[str, Any] | None
    online: dict[str, Any] | None
    recent: int
    neighbors: int
    neighbor_rows: int
    keep: Literal["window", "sample"]
    max_rows: int | None
    max_bytes: int | None
    half_life: int | None

    online_: OnlineTree
    mix_: NewnessMix
    quality_: float
    n_refits_: int
    last_refit_: RefitResult | None
    _batch: Batch | None
    _known: F64
    _answers: I32 | None
    _rows: RowStore
    _nearest: NearestRows | None
    _lists: RecentLists
    _refit: Refit | None
    _refit_at: int
    _best_quality: float
    _seed: int

    def _first_seed(self) -> int:
        return secrets.randbits(32) if self.random_state is None else int(self.random_state)

    def _begin(self, names: GrowingNames, seed: int) -> None:
        """The state that has seen nothing."""
        unfitted_batch(self.batch, n_jobs=self.n_jobs)
        try:
            tree = OnlineTree(**{**(self.online or {}), "n_jobs": self.n_jobs, "random_state": seed})
        except TypeError as error:
            raise LabelwoodError(f"LivingTree: online must hold parameters of OnlineTree by name; {error}") from None
        check_parameters(tree)
        self._names, self._seed, self.rows_learned_ = names, seed, 0
        self.online_, self.mix_, self.quality_, self._best_quality = tree.begun(names), NewnessMix(), 0.0, 0.0
        self._rows, self._lists = RowStore(self._bounds(seed)), RecentLists()
        self._refit, self._refit_at, self.n_refits_, self.last_refit_ = None, 0, 0, None
        self._use_batch(None)
        self._answers = None
        self._index_rows()
        self._lead()
        self._follow()

    def _index_rows(self) -> None:
        """Index the last rows of the store; without ``neighbors`` no row votes."""
        self._nearest = None
        if self.neighbors:
            self._nearest = NearestRows(self.neighbors, self._window_start)
            rows = self._rows.since(self._window_start, self.n_features_in_, len(self._names))
            self._nearest.add(rows.X, rows.Y)

    @property
    def _window_start(self) -> int:
        """The position of the first row that votes."""
        return window_start(self._rows.seen, self.neighbor_rows, STEP)

    def _bounds(self, seed: int) -> RowBounds:
        return RowBounds(self.keep, self.max_rows, self.max_bytes, self.half_life, seed)

    def _use_batch(self, batch: Batch | None) -> None:
        self._batch, self._known = batch, np.empty(0) if batch is None else batch.known()

    def _check_features(self, X: CSR) -> None:
        if X.n_cols > MAX_COLUMNS:
            raise LabelwoodError(f"LivingTree: feature ids must be at most {MAX_COLUMNS}; got {X.n_cols - 1}")

    @property
    def can_learn(self) -> bool:
        """True if the model is fitted and neither frozen nor saved with ``inference_only``."""
        return self.__sklearn_is_fitted__() and self.online_.can_learn

    @property
    def n_seen_(self) -> int:
        """Number of examples learned."""
        self._check_fitted()
        return self.online_.n_seen_

    @property
    def _normalizes(self) -> bool:
        return self.online_.normalize

    @property
    def main_member(self) -> FittedModel:
        """The online tree, which has all labels."""
        return self.online_

    @property
    def can_refit(self) -> bool:
        """True if the model can learn."""
        return self.can_learn

    @property
    def batch_rows_and_age(self) -> tuple[int, int]:
        """The rows that the batch tree was trained on, and the rows learned since."""
        return (0, self.n_seen_) if self._batch is None else (self._batch.n_rows, self.n_seen_ - self._batch.until)

    @reads
    def describe(self) -> dict[str, Any]:
        """The rows of the batch tree, its age in rows, the mix, the last refit, and the online tree."""
        last, (rows, age) = self.last_refit_, self.batch_rows_and_age
        return {
            "batch_rows": rows,
            "batch_age": age,
            "mix": self.mix_.saved(),
            "progressive_quality": round(self.quality_, 4),
            "refits": self.n_refits_,
            "last_refit": None if last is None else asdict(last),
            **self.online_.describe(),
        }

    @reads
    def label_records(self) -> dict[str, npt.NDArray[Any]]:
        """Support, first and last sight, retirement and target of every label that was seen."""
        self._check_fitted()
        return self.online_.label_records()

    def set_lifecycle(self, label: int, *, retired: bool, answers_as: int) -> None:
        """Retire a label id, or let it answer as another."""
        self._check_can_learn()
        self.online_.set_lifecycle(label, retired=retired, answers_as=answers_as)
        self._find_answers()

    def _find_answers(self) -> None:
        """Know what every label answers as."""
        records = self.online_.label_records()
        answers = records["answers_as"].copy()
        answers[records["retired"][answers] != 0] = -1
        changed = (answers != np.arange(len(answers))).any()
        rest = np.arange(len(answers), self.n_labels_, dtype=np.int32)
        self._answers = np.concatenate([answers, rest]).astype(np.int32) if changed else None

    def knows_any(self, row: CSR) -> bool:
        """True if a feature of the row is known to the model."""
        return self.online_.knows_any(row)

    def _lead(self) -> None:
        """Let the online tree know the labels and features of the model."""
        self.online_.follow(self)

    def _follow(self) -> None:
        """Know the counts and times of the online tree."""
        self.label_counts_, self.trained_ = self.online_.label_counts_, dict(self.online_.trained_)

    def _fit_counts(self) -> None:
        super()._fit_counts()
        self._lead()
        if self._answers is not None:
            self._find_answers()

    @reads
    def freeze(self, *, weight_threshold: float | None = None) -> Self:
        """A copy for prediction only, without the rows except for those that vote; see OnlineTree's ``freeze``."""
        self._check_can_learn()
        frozen: Self = clone(self)
        for name in ("mix_", "quality_", "_best_quality", "_refit_at", "n_refits_", "last_refit_", "_seed"):
            setattr(frozen, name, getattr(self, name))
        frozen.online_ = self.online_.freeze(weight_threshold=weight_threshold)
        frozen._names, frozen.rows_learned_ = GrowingNames(self._names), self.rows_learned_
        frozen.n_features_in_, frozen.fit_seconds_ = self.n_features_in_, dict(self.fit_seconds_)
        frozen._refit, votes = None, self.neighbors and self.mix_.nearness
        frozen._rows = self._rows.after(self._window_start if votes else self._rows.seen)
        frozen._lists, frozen._answers = RecentLists(), None if self._answers is None else self._answers.copy()
        frozen._use_batch(self._batch)
        frozen._index_rows()
        frozen._name_features(self._feature_names)
        frozen.label_counts_ = self.label_counts_.copy()
        frozen._lead()
        frozen._follow()
        frozen._note_fitted()
        return frozen

    def _explained_members(
        self, row: CSR, k: int, lists: Lists, asked: Asked, missed: Sequence[Place], run: RunContext
    ) -> dict[str, Member]:
        """The explanations of the parts that answer, by their names in ``lists``."""
        mix, found, batch = self.mix_, {}, self._batch
        rest = 1 - mix.nearness
        if batch is not None:
            explained = batch.explain(row, k, asked, run)
            found["batch"] = Member(batch.tree.method_name, rest * mix.weight, mix.temperature, explained)
        weight = rest * (1 - mix.weight) if batch is not None else rest
        found["online"] = Member(
            self.online_.method_name, weight, 1.0, self.online_.explain_one(row, k, asked, missed, run)
        )
        if mix.nearness and self._nearest is not None:
            labels, shares = (part[0].tolist() for part in lists.nearest)
            voted = [Suggestion(asked.label_name(a), b) for a, b in zip(labels, shares, strict=True) if a >= 0]
            found["nearest"] = Member("nearest rows", mix.nearness, 1.0, Explanation(tuple(voted[:k])))
        return found

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        manifests, arrays = saved_members([self.online_], "online")
        facts: dict[str, Any] = {
            "online": manifests[0],
            "batch": None,
            "mix": self.mix_.saved(),
            "quality": [self.quality_, self._best_quality],
            "refit": None if self._refit is None else asdict(self._refit),
            "last_refit": None if self.last_refit_ is None else asdict(self.last_refit_),
            **dict(zip(_COUNTERS, self._counters(), strict=True)),
        }
        if self._batch is not None:
            facts["batch"], own = self._batch.saved()
            arrays |= {_BATCH + name: array for name, array in own.items()}
        arrays |= {_ROWS + name: array for name, array in self._rows.arrays().items()}
        if self.can_learn:
            arrays |= {_RECENT + name: array for name, array in self._lists.arrays().items()}
        return facts, arrays

    def _counters(self) -> tuple[int, ...]:
        return self._seed, self.rows_learned_, self._rows.seen, self.n_refits_, self._refit_at

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        if not isinstance(facts, dict):
            raise FormatError("facts must be an object")
        counters = [facts[name] for name in _COUNTERS]
        if any(type(one) is not int or not 0 <= one < 2**62 for one in counters):
            raise FormatError(f"the counters of the model are damaged: {counters}")
        self._seed, self.rows_learned_, seen, self.n_refits_, self._refit_at = counters
        self.online_ = OnlineTree.from_saved(facts["online"], own_arrays(arrays, "online", 0), where="the online tree")
        if self.online_.n_labels_ != self.n_labels_ or self.online_.n_features_in_ != self.n_features_in_:
            raise FormatError("the online tree must have the labels and features of the model")
        self._names = GrowingNames(self._names)
        self.mix_ = NewnessMix.restore(facts["mix"])
        self.quality_, self._best_quality = (float(one) for one in facts["quality"])
        self._refit = None if facts["refit"] is None else _refit_of(facts["refit"], seen)
        self.last_refit_ = None if facts["last_refit"] is None else RefitResult(**facts["last_refit"])
        batch = None if facts["batch"] is None else Batch.restore(facts["batch"], _of(arrays, _BATCH), self.n_labels_)
        self._use_batch(batch)
        if batch is not None and batch.tree.n_features_in_ > self.n_features_in_:
            raise FormatError("the batch tree has more features than the model")
        self._answers = None
        self._restore_rows(arrays, seen)
        self._index_rows()
        self._lead()
        self._follow()
        self._find_answers()

    def _restore_rows(self, arrays: dict[str, npt.NDArray[Any]], seen: int) -> None:
        rows, sizes = _of(arrays, _ROWS), (self.n_features_in_, self.n_labels_)
        if rows or self.online_.can_learn:
            self._rows = RowStore.restore(self._bounds(self._seed), rows, seen, *sizes)
        else:  # frozen before rows had votes
            self._rows = RowStore(self._bounds(self._seed), seen=seen)
        if not self.online_.can_learn:
            self._lists = RecentLists()
            return
        if seen != self.online_.n_seen_:
            raise FormatError("the rows and the online tree have seen different numbers of rows")
        n_recent = count_recent(seen, self.recent)
        if int(is_recent(rows["positions"], seen, self.recent).sum()) != n_recent:
            raise FormatError("the store lacks recent rows")
        self._lists = RecentLists.restore(_of(arrays, _RECENT), n_recent, self.n_labels_)

    @reads
    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle and copy: that of the model and, taken at the same time, of its online tree."""
        state = super().__getstate__()
        if "online_" not in state:
            return state
        rows, lists = self._rows.arrays(), RecentLists(self._lists.lists)
        return {
            **{name: value for name, value in state.items() if name != "_nearest"},
            "online_": {**self.online_.__getstate__(), "_names": state["_names"]},
            "_rows": rows,
            "_lists": lists,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "online_" in state:
            self.online_ = OnlineTree.__new__(OnlineTree)
            self.online_.__setstate__(state["online_"])
            sizes = (self.online_.n_seen_, self.n_features_in_, len(self._names))
            self._rows = RowStore.restore(self._bounds(self._seed), state["_rows"], *sizes)
            self._index_rows()
            self.label_counts_ = self.online_.label_counts_


def _of(arrays: dict[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _refit_of(saved: Any, seen: int) -> Refit:
    numbers = [saved[name] for name in ("number", "until")]
    if any(type(one) is not int for one in numbers) or not 0 <= saved["until"] <= seen:
        raise FormatError(f"the refit under way is damaged: {saved!r}")
    return Refit(*numbers)
