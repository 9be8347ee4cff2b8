"""LivingTree: a batch model trained again from the rows seen so far, and an online model that has seen every row."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone

from labelwood.errors import LabelwoodError
from labelwood.estimator import NJobs, RandomState, Verbose
from labelwood.explain import Asked, Explanation, Missed, Place, Suggestion
from labelwood.label_names import LabelNames
from labelwood.methods.online.living_batch import MORE, Batch, Refit, RefitResult, TrainingJob, answered, train_batch
from labelwood.methods.online.living_state import STEP, LivingState
from labelwood.methods.online.model_lock import changes
from labelwood.methods.online.newness_mix import DEPTHS, WIDTH, Lists, no_lists, quality_of, search_newness_mix
from labelwood.methods.online.row_store import JUDGED_EVERY, Rows, count_recent
from labelwood.methods.online.stream_inputs import GrowingNames, check_name
from labelwood.params import Needs, Param
from labelwood.run_context import RunContext, logger
from labelwood.sparse import CSR, F64, I32, TopK

_IS_BOUNDED = Needs("max_rows or max_bytes", lambda own: own["max_rows"] is not None or own["max_bytes"] is not None)
_MOST_VOTED = 100  # voted labels among which the allowed ones are looked for
_JUDGED_STEPS = 8  # steps between two searches of the mix


class LivingTree(LivingState):
    """A label tree at the quality of a batch that also knows what it was taught a moment ago.

    It keeps the rows that it learns. A :class:`LinearTree` is trained again from them whenever they have grown by
    ``refit_growth``; an :class:`OnlineTree` learns every row at once. Both answer: the newer a label, the more the
    online tree counts. How much is learnt by progressive validation: every eighth row is predicted before it is
    learned. The last of these rows, at most ``recent``, are left out of a refit and judge it; a tree that does worse is
    not taken up. The nearest of the last rows vote, too, if that pays.

    >>> model = LivingTree(n_jobs=1)
    >>> _ = model.partial_fit([{0: 1.0, 7: 0.5}] * 20, [["red"]] * 20)
    >>> _ = model.partial_fit([{3: 1.0}] * 2, [["blue", "sky"]] * 2)
    >>> model.predict_topk([{3: 1.0}], k=1)[0].tolist()
    [['blue']]
    >>> model.refit().taken
    True
    """

    method_name: ClassVar[str] = "living-tree"
    ADDED_LATER: ClassVar[dict[str, Any]] = {"neighbors": 0, "neighbor_rows": 50_000}

    def __init__(
        self,
        *,
        batch: Annotated[
            dict[str, Any] | None, Param("parameters of the LinearTree, by name; None: their defaults")
        ] = None,
        online: Annotated[
            dict[str, Any] | None, Param("parameters of the OnlineTree, by name; None: their defaults")
        ] = None,
        refits: Annotated[
            Literal["learning", "asked"],
            Param("when to train again: while learning, as soon as it is due, or only when refit() is called"),
        ] = "learning",
        refit_growth: Annotated[float, Param("train again when the rows have grown by this share", gt=0)] = 0.2,
        refit_rows: Annotated[int, Param("fewest new rows before training again", ge=1)] = 1000,
        refit_fall: Annotated[
            float, Param("train again when progressive quality falls by this much below its best; 0: never", ge=0, le=1)
        ] = 0.0,
        recent: Annotated[int, Param("rows that judge a refit: this many, every eighth of the last rows", ge=1)] = 1000,
        neighbors: Annotated[
            int, Param("nearest of the last rows that vote for their labels; 0: none, which is faster", ge=0)
        ] = 10,
        neighbor_rows: Annotated[
            int,
            Param(
                "about how many of the last rows may vote",
                ge=1,
                needs=Needs("neighbors", lambda own: own["neighbors"] > 0),
            ),
        ] = 50_000,
        keep: Annotated[
            Literal["window", "sample"],
            Param("rows to keep if there are too many: the last ones, or a random sample", needs=_IS_BOUNDED),
        ] = "window",
        max_rows: Annotated[int | None, Param("most rows to keep; None: all", ge=1)] = None,
        max_bytes: Annotated[int | None, Param("most bytes of rows to keep; None: all", ge=1)] = None,
        half_life: Annotated[
            int | None,
            Param(
                "a sample keeps rows this many rows older half as often; None: equally often",
                ge=1,
                needs=Needs("keep=sample", lambda own: own["keep"] == "sample"),
            ),
        ] = None,
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.batch, self.online, self.refits = batch, online, refits
        self.refit_growth, self.refit_rows, self.refit_fall = refit_growth, refit_rows, refit_fall
        self.recent, self.neighbors, self.neighbor_rows = recent, neighbors, neighbor_rows
        self.keep, self.max_rows, self.max_bytes = keep, max_rows, max_bytes
        self.half_life, self.n_jobs, self.random_state, self.verbose = half_life, n_jobs, random_state, verbose

    def begun(self, names: LabelNames) -> Self:
        """A copy of the parameters that has seen nothing."""
        fresh: Self = clone(self)
        fresh.n_features_in_, fresh.fit_seconds_ = 1, {}
        fresh._begin(GrowingNames(names), self._first_seed())
        fresh._note_fitted()
        return fresh

    def _fit(self, X: CSR, Y: CSR, run: RunContext) -> None:
        """Learn shuffled rows, then train the batch model."""
        for name in self._names.array.tolist():
            check_name(name, type(self).__name__)
        self._check_features(X)
        self._begin(GrowingNames(self._names), run.seed)
        order = np.random.default_rng(run.seed).permutation(X.n_rows)
        with run.phase("learn"):
            for start in range(0, X.n_rows, 64 * STEP):
                rows = order[start : start + 64 * STEP]
                self._advance(X.take(rows), Y.take(rows), 0, may_refit=False)
        self.rows_learned_ = X.n_rows
        with run.phase("train"):
            self.refit()

    def learn_rows(self, X: CSR, Y: CSR, n_threads: int) -> None:
        """Learn checked rows, in their order; ``rows_learned_`` counts them, also after an interrupt."""
        self._learn_counted(X, Y, 0)

    def predict_then_learn(self, X: CSR, Y: CSR, k: int) -> TopK:
        """Learn checked rows, in their order; the k best labels of each row before it was learned."""
        return self._learn_counted(X, Y, k)

    @changes
    def test_then_learn(
        self, X: Any, Y: Any, *, k: int = 1, label_names: Sequence[Hashable] | None = None, at_once: bool = False
    ) -> tuple[I32, CSR]:
        """Learn rows as ``partial_fit``; the ids of the k best labels of each row beforehand, and the true ones.

        Each row is predicted before it is learned, also ``at_once``: the mix is learnt from these predictions.
        """
        self._check_can_learn()
        features, targets = self._read_batch(X, Y, label_names)
        return self.predict_then_learn(features, targets, k).labels, targets

    def _learn_counted(self, X: CSR, Y: CSR, k: int) -> TopK:
        before = self.n_seen_
        try:
            return self._advance(X, Y, k, may_refit=self.refits == "learning" and not self.defers_refits)
        finally:
            self.rows_learned_ = self.n_seen_ - before

    def _advance(self, X: CSR, Y: CSR, k: int, *, may_refit: bool) -> TopK:
        """Learn rows in pieces that end where the mix is searched and refits begin, whatever the batches are."""
        self._check_features(X)
        self._lead()
        found, start = [TopK(np.empty((0, k), np.int32), np.empty((0, k), np.float32))], 0
        try:
            while start < X.n_rows:
                stop = min(X.n_rows, start + STEP - self._rows.seen % STEP)
                found.append(self._learn_piece(X.rows(start, stop), Y.rows(start, stop), k))
                if self._rows.seen % (STEP * _JUDGED_STEPS) == 0:
                    self._learn_mix()
                if self._rows.seen % STEP == 0:
                    self._move_on()
                if self._rows.seen % STEP == 0 and may_refit and self.refit_due:
                    self.refit()
                start = stop
        finally:
            self._follow()
        return TopK(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _move_on(self) -> None:
        """Remove the rows that the bounds do not keep and move the window of the rows that vote, if it is time."""
        is_trimmed = self._refit is None and self._rows.is_too_large(self.recent)
        if is_trimmed:
            self._rows.trim(n_recent=self.recent)
        if is_trimmed or (self._nearest is not None and self._nearest.start != self._window_start):
            self._index_rows()

    def _learn_piece(self, X: CSR, Y: CSR, k: int) -> TopK:
        """Learn rows between two steps. Without k, only the rows that judge refits are predicted."""
        if k:
            return self._predict_and_learn(X, Y, k)
        start = 0
        while start < X.n_rows:
            place = self._rows.seen % JUDGED_EVERY
            stop = min(X.n_rows, start + (1 if place == 0 else JUDGED_EVERY - place))
            if place == 0:
                self._predict_and_learn(X.rows(start, stop), Y.rows(start, stop), 0)
            else:
                self._learn_unseen(X.rows(start, stop), Y.rows(start, stop))
            start = stop
        return TopK(np.empty((X.n_rows, 0), np.int32), np.empty((X.n_rows, 0), np.float32))

    def _learn_unseen(self, X: CSR, Y: CSR) -> None:
        before = self.n_seen_
        try:
            self.online_.learn_rows(X, Y, 1)
        finally:
            self._store(X, Y, self.n_seen_ - before, 0)

    def _predict_and_learn(self, X: CSR, Y: CSR, k: int) -> TopK:
        width, before = max(k, WIDTH), self.n_seen_
        batch, online = self._batch_lists(X, width, self._own_run()), no_lists(X.n_rows)
        try:
            online = self.online_.predict_then_learn(X, Y, width)
        finally:  # after an interrupt too, the store has the rows that the online tree has learned
            done = self.n_seen_ - before
            lists = Lists(batch, online, self._store(X, Y, done, width))
            judged = np.flatnonzero((before + np.arange(done)) % JUDGED_EVERY == 0)
            kept = Lists(*(TopK(top.labels[judged], top.scores[judged]) for top in lists))
            self._lists.append(kept, n_kept=count_recent(before + done, self.recent))
        return self.mix_.combine(lists, self._share, k) if k else no_lists(X.n_rows)

    def _store(self, X: CSR, Y: CSR, done: int, k: int) -> TopK:
        """Keep the rows that are learned; the labels of the nearest rows before each was kept."""
        X, Y = X.rows(0, done), Y.rows(0, done)
        self._rows.append(X, Y)
        if self._nearest is None:
            return no_lists(done, k)
        if k == 0:
            self._nearest.add(X, Y)
            return no_lists(done, k)
        return self._answered(self._nearest.search_then_add(X, Y, self._votes_width(k)), k, None)

    def _votes_width(self, k: int) -> int:
        return k if self._answers is None else k + MORE

    def _answered(self, voted: TopK, k: int, allowed: I32 | None) -> TopK:
        """The labels that the voted labels answer as, the allowed ones."""
        if self._answers is None and allowed is None:
            return voted
        answers = np.arange(self.n_labels_, dtype=np.int32) if self._answers is None else self._answers
        if allowed is not None:
            answers = np.where(np.isin(answers, allowed), answers, -1).astype(np.int32)
        return answered(voted, answers, k)

    def _nearest_lists(self, X: CSR, k: int, run: RunContext) -> TopK:
        if self._nearest is None or self.mix_.nearness == 0:
            return no_lists(X.n_rows, k)
        width = self._votes_width(k) if run.allowed is None else max(k, _MOST_VOTED)
        return self._answered(self._nearest.search(X, width, run), k, run.allowed)

    def _learn_mix(self) -> None:
        """Note the quality of the last answers, and search the mix that would have been best."""
        truth, lists = self._recent_rows().Y, self._lists.lists
        self.quality_ = quality_of(self.mix_.combine(lists, self._share, max(DEPTHS)), truth).quality
        self._best_quality = max(self._best_quality, self.quality_)
        if self._batch is not None or self._nearest is not None:
            self.mix_, _ = search_newness_mix(self.mix_, lists, self._share, truth)

    def _recent_rows(self) -> Rows:
        return self._rows.recent(self.recent, self.n_features_in_, self.n_labels_)

    @property
    def refit_due(self) -> str:
        """Why it is time to train the batch model again; empty if it is not."""
        seen, new = self._rows.seen, self._rows.seen - self._refit_at
        if self._refit is not None or new < self.refit_rows or not self.online_.label_counts_.any():
            return ""
        if new >= self.refit_growth * self._refit_at:
            return f"{new} rows are new"
        if self.refit_fall and seen >= self.recent and self.quality_ < self._best_quality - self.refit_fall:
            return f"quality fell from {self._best_quality:.3f} to {self.quality_:.3f}"
        return ""

    def refit(self) -> RefitResult:
        """Train the batch model again, and take it up unless it does worse on the last rows.

        Other threads may use and teach the model meanwhile.
        """
        job = self.begin_refit()
        if job.rows.Y.nnz == 0:
            return self.drop_refit("there are no rows with labels to train on")
        try:
            batch = train_batch(job, n_jobs=self.n_threads)
        except BaseException:
            self.drop_refit("the training was interrupted or failed")
            raise
        return self.end_refit(batch)

    @changes
    def begin_refit(self) -> TrainingJob:
        """Decide on the rows of a refit; they stay in the store until it ends."""
        self._check_can_learn()
        if self._refit is not None:
            raise LabelwoodError("LivingTree: a refit is under way; wait for its end")
        seen = self._rows.seen
        if self._rows.trim(n_recent=self.recent):
            self._index_rows()
        self._refit = Refit(self.n_refits_ + 1, seen)
        self.n_refits_, self._refit_at = self.n_refits_ + 1, seen
        return self._job(self._refit)

    @property
    def refit_under_way(self) -> TrainingJob | None:
        """The refit that has begun and not ended; None if there is none."""
        return None if self._refit is None else self._job(self._refit)

    @changes
    def end_refit(self, batch: Batch) -> RefitResult:
        """Take up a batch model, unless it does worse than the one in use on the rows that it has not seen.

        It was trained on rows that came after these, so it looks better on them than on rows to come: the mix goes on
        to be learnt from the lists that were made before each row was learned. Only the first model has none.
        """
        refit = self._refit
        if refit is None or batch.until != refit.until:
            raise LabelwoodError("LivingTree: this model is not the result of the refit under way")
        recent, lists = self._recent_rows(), self._lists.lists
        before = quality_of(self.mix_.combine(lists, self._share, max(DEPTHS)), recent.Y)
        old = self._batch
        self._use_batch(batch)
        lists = lists._replace(batch=self._batch_lists(recent.X, WIDTH, self._own_run()))
        mix, after = search_newness_mix(self.mix_, lists, self._share, recent.Y)
        self._refit, taken = None, after.quality >= before.quality
        if taken:
            if old is None:
                self._lists.lists, self.mix_ = lists, mix
            self.quality_ = self._best_quality = before.quality
        else:
            self._use_batch(old)
        result = RefitResult(
            refit.number, batch.n_rows, before.quality, after.quality, after.n_rows, taken,
            "" if taken else f"it does worse on the last {after.n_rows} rows",
        )  # fmt: skip
        self.last_refit_ = result
        if not taken:
            logger.info(
                "refit %d is not taken up: %.4f instead of %.4f", *(refit.number, after.quality, before.quality)
            )
        return result

    @changes
    def drop_refit(self, reason: str) -> RefitResult:
        """End the refit under way without a new model."""
        if self._refit is None:
            raise LabelwoodError("LivingTree: no refit is under way")
        refit, self._refit = self._refit, None
        self.last_refit_ = RefitResult(refit.number, 0, self.quality_, 0.0, 0, False, reason)
        return self.last_refit_

    def _job(self, refit: Refit) -> TrainingJob:
        rows = self._rows.training(refit.until, self.recent, self.n_features_in_, self.n_labels_)
        return TrainingJob(rows, dict(self.batch or {}), (self._seed + refit.number) % 2**32, refit.until)

    def _batch_lists(self, X: CSR, k: int, run: RunContext) -> TopK:
        if self._batch is None:
            return no_lists(X.n_rows, k)
        return self._batch.topk(X, k, run, self._answers)

    def _share(self, labels: I32) -> F64:
        """The part of the examples of labels that the batch model was trained on."""
        if self._batch is None:
            return np.zeros(labels.shape)
        known = (labels >= 0) & (labels < len(self._known))
        ids = np.where(known, labels, 0)
        shares = np.minimum(self._known[ids] / np.maximum(self.online_.label_counts_[ids], 1), 1.0)
        return np.where(known, shares, 0.0)

    def _lists_of(self, X: CSR, k: int, run: RunContext) -> Lists:
        """What the parts list for rows, equally wide."""
        width = run.width(min(max(k, WIDTH), self.n_labels_))
        batch, online = self._batch_lists(X, width, run), self.online_.topk_rows(X, width, run)
        nearest = self._nearest_lists(X, width, run)
        n_listed = online.labels.shape[1]  # a frozen tree lists only labels that may be suggested
        if n_listed == width:
            return Lists(batch, online, nearest)
        lacking = ((0, 0), (0, width - n_listed))
        online = TopK(np.pad(online.labels, lacking, constant_values=-1), np.pad(online.scores, lacking))
        return Lists(batch, online, nearest)

    def topk_rows(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k labels of highest mixed score."""
        return self.mix_.combine(self._lists_of(X, k, run), self._share, k)

    def explain_one(self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: RunContext) -> Explanation:
        """What the parts add to the scores, and their own explanations."""
        lists = self._lists_of(row, k, run)
        top, added_by = self.mix_.combine(lists, self._share, k), self.mix_.amounts(lists, self._share)
        members = self._explained_members(row, k, lists, asked, missed, run)
        amounts = [
            dict(zip(added.labels[0].tolist(), added.scores[0].tolist(), strict=True))
            for added in (getattr(added_by, name) for name in members)
        ]
        suggestions = tuple(
            Suggestion(asked.label_name(label), score, amounts=tuple(added.get(label, 0.0) for added in amounts))
            for label, score in zip(top.labels[0].tolist(), top.scores[0].tolist(), strict=True)
            if label >= 0
        )
        lost = tuple(Missed(asked.label_name(place.label), place.score, place.place, ()) for place in missed)
        return Explanation(suggestions, missed=lost, members=tuple(members.values()))
