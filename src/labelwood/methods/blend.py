"""Blend: several models as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError, LabelwoodError
from labelwood.estimator import FittedModel, NJobs, RandomState, TreeEstimator, Verbose
from labelwood.explain import Asked, Explanation, Member, Missed, Place, Suggestion
from labelwood.methods._nested_models import restored_members, saved_members, spec_of, unfitted_members
from labelwood.params import Needs, Param
from labelwood.run_context import RunContext
from labelwood.scoring.mix import Mix, even, search_mix
from labelwood.scoring.similar_rows import PREFIX, SimilarRows
from labelwood.scoring.thresholds import Objective, label_weights
from labelwood.sparse import CSR, TopK

DEFAULT_MODELS: tuple[dict[str, Any], ...] = (
    {"method": "linear-tree", "n_trees": 3},
    {"method": "one-vs-rest"},
    {"method": "craft-forest", "n_trees": 20},
)
_VOTES = "similar rows"  # what the votes of similar rows are called among the members
_CANDIDATES = 50  # labels that a member proposes, or more if more are asked for
_SEARCHED = 20  # labels of a member used to search the mix, which is judged by the first five
_FEWEST_ROWS = 20  # with fewer rows, none are held out
_MOST_HELD_OUT = 10_000  # more rows do not improve the mix
_STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
_KS = (1, 3, 5)
_HOLDS_OUT = Needs("a held_out share", lambda own: own["held_out"] > 0)


class Blend(TreeEstimator):
    """Several models as one: weighted sums of their scores, the weights and temperatures learnt on held-out rows.

    Use it for the last points of quality: it costs the training of all members, twice with ``refit``. Members are
    method names, ``{"method": name, parameter: value, ...}``, or estimators. All use the threads, seed and progress bar
    of the blend. ``fit`` trains them on a part of the rows, learns the mix and the calibration on the rest, then trains
    them again on all rows. :meth:`of` blends models that are already fitted. One-vs-rest, a default member, takes time
    in proportion to the number of labels: name other members if there are very many labels.

    With ``similar_rows``, the training rows most similar to a row vote for their labels as one more member: by words,
    by vectors, or, as two members, by both.

    ``objective="tail"`` is for rare labels: forests re-rank their candidates by nearness (``rerank``), the mix is
    learnt for PSP@k, and lists are ordered by probability times inverse propensity.

    Fitted attributes: ``members_``, ``mix_`` (weights, temperatures, by rank or not), ``held_out_`` (quality of the
    blend and of each member on the held-out rows). Votes of similar rows come behind ``members_`` in all of them.

    >>> import numpy as np
    >>> X = np.eye(6, dtype=np.float32)
    >>> Y = [["red"], ["red"], ["green"], ["green"], ["blue"], ["blue"]]
    >>> model = Blend(["linear-tree", "one-vs-rest"], n_jobs=1).fit(X, Y)
    >>> model.predict_topk(X[:1], k=1)[0].tolist()
    [['red']]
    """

    method_name: ClassVar[str] = "blend"
    takes_vectors: ClassVar[bool] = True
    ADDED_LATER: ClassVar[dict[str, Any]] = {"similar_rows": 0}
    members_: list[TreeEstimator]
    similar_: SimilarRows | None
    mix_: Mix
    held_out_: dict[str, Any]

    def __init__(
        self,
        models: Annotated[
            list[Any] | None,
            Param("the members: methods, or objects of a method and its parameters; None: three default members"),
        ] = None,
        weights: Annotated[
            list[float] | None, Param("weights of the members; None: learn them on held-out rows")
        ] = None,
        *,
        mode: Annotated[
            Literal["auto", "probability", "rank"],
            Param("add up scores or ranks; auto: whichever is better on held-out rows"),
        ] = "auto",
        objective: Annotated[
            Literal["precision", "tail", "macro"],
            Param("what lists are judged by: precision; tail: rare labels (PSP@k); macro: all labels alike"),
        ] = "precision",
        held_out: Annotated[
            float,
            Param("share of the rows, at most 10,000, held out to learn the mix; 0: none, equal weights", ge=0, le=0.9),
        ] = 0.2,
        refit: Annotated[bool, Param("train the members again on all rows at the end", needs=_HOLDS_OUT)] = True,
        decide: Annotated[
            Literal["micro-f1", "macro-f1"] | None,
            Param(
                "metric for which the held-out rows choose the threshold of predict; None: threshold 0.5",
                needs=_HOLDS_OUT,
            ),
        ] = None,
        similar_rows: Annotated[
            int, Param("training rows most similar to a row that vote for their labels; 0: none", ge=0, le=1000)
        ] = 0,
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.models, self.weights, self.mode, self.objective = models, weights, mode, objective
        self.held_out, self.refit, self.decide, self.similar_rows = held_out, refit, decide, similar_rows
        self.n_jobs, self.random_state, self.verbose = n_jobs, random_state, verbose

    @classmethod
    def of(cls, models: Sequence[TreeEstimator], weights: Sequence[float] | None = None, **parameters: Any) -> Self:
        """The blend of fitted models with the same labels and features; :meth:`learn` finds its weights.

        ``parameters`` are parameters of the class.
        """
        members = list(models)
        if not members:
            raise LabelwoodError("Blend: at least one model is needed")
        first = members[0]
        for other in members:
            same = np.array_equal(other.classes_, first.classes_)
            if not same or other.n_features_in_ != first.n_features_in_:
                raise LabelwoodError("Blend: all models must have the same labels and features")
        blend = cls([spec_of(member) for member in members], None if weights is None else list(weights), **parameters)
        blend._names, blend.n_features_in_ = first.label_names, first.n_features_in_
        blend.label_counts_, blend.trained_ = first.label_counts_, dict(first.trained_)
        blend.fit_seconds_ = {}
        blend.members_, blend.similar_, blend.held_out_ = members, None, {}
        blend.mix_ = blend._start(len(members))
        blend._note_fitted()
        return blend

    def learn(self, X: Any, Y: Any) -> Self:
        """Learn weights, temperatures and calibration on rows that no member was trained on."""
        features, truth = self._rows_and_truth(X, Y)
        self._learn(features, truth, self._own_run())
        self._note_fitted()
        return self

    def _fit(self, X: CSR, Y: CSR, run: RunContext) -> None:
        self.members_, self.similar_, self.held_out_ = self._unfitted(run.seed), self._index(X, Y), {}
        self.mix_ = self._start(self._n_lists)
        self.trained_ = {"rows": X.n_rows}
        order = np.random.default_rng(run.seed).permutation(X.n_rows)
        n_out = min(int(self.held_out * X.n_rows), _MOST_HELD_OUT) if X.n_rows >= _FEWEST_ROWS else 0
        kept, out = np.sort(order[n_out:]), np.sort(order[:n_out])
        learns = n_out > 0 and Y.take(kept).nnz > 0 and Y.take(out).nnz > 0
        if learns:
            self._train(X.take(kept), Y.take(kept), run)
            with run.phase("blend"):
                self._learn(X.take(out), Y.take(out), run)
        if self.refit or not learns:
            self._train(X, Y, run)

    def _train(self, X: CSR, Y: CSR, run: RunContext) -> None:
        for member in self.members_:
            with run.phase(member.method_name):
                member.fit(X, Y.to_scipy())
        self.similar_ = self._index(X, Y)

    def _index(self, X: CSR, Y: CSR) -> SimilarRows | None:
        return SimilarRows.learn(X, Y, self.similar_rows) if self.similar_rows else None

    @property
    def _n_lists(self) -> int:
        return len(self.members_) + (0 if self.similar_ is None else self.similar_.n_lists // 2)

    def _unfitted(self, seed: int) -> list[TreeEstimator]:
        models = list(DEFAULT_MODELS) if self.models is None else self.models
        common = {"n_jobs": self.n_jobs, "random_state": seed, "verbose": self.verbose}
        members = unfitted_members(models, owner="Blend", **common)
        for member in members:
            if self.objective == "tail" and "rerank" in member.get_params(deep=False):
                member.set_params(rerank=True)
        return members

    def _start(self, n_members: int) -> Mix:
        if self.weights is None:
            return even(n_members, by_rank=self.mode == "rank")
        weights = np.asarray(self.weights, np.float64)
        if weights.shape != (n_members,) or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.sum():
            raise LabelwoodError(
                f"Blend: weights must be {n_members} numbers, at least 0 and not all 0; got {self.weights!r}"
            )
        start = even(n_members, by_rank=self.mode == "rank")
        return replace(start, weights=tuple((weights / weights.sum()).tolist()))

    def _learn(self, X: CSR, Y: CSR, run: RunContext) -> None:
        """Learn the mix, then the calibration, then the strength of label weights and the threshold."""
        self.mix_ = even(self._n_lists)  # members without weight propose nothing
        lists = self._lists(X, _CANDIDATES, run)
        width = self._listed_width(Y)
        quality = self._quality(Y, self.objective)
        modes = {"auto": (False, True), "probability": (False,), "rank": (True,)}[self.mode]
        short = [_first(top, _SEARCHED) for top in lists]
        found = [search_mix(short, quality, max(_KS), by_rank=way, fixed=self.weights) for way in modes]
        self.mix_, reached = max(found, key=lambda pair: pair[1])
        alone = [quality(_first(top, max(_KS))) for top in lists]
        self.held_out_ = {"rows": X.n_rows, "blend": reached, "members": alone}
        wide = self.mix_.combine(lists, max(width, min(_CANDIDATES, self.n_labels_)))
        listed = _first(wide, width)
        self._decisions = self._calibrated(listed, Y)
        rare: Objective = "tail" if self.objective == "precision" else self.objective
        gain = self._quality(Y, rare)
        strength = max(_STRENGTHS, key=lambda power: gain(self._weighted(wide, rare, power)))
        self._decisions = replace(self._decisions, strength=strength)
        if self.decide is not None:
            probable = self._decisions.apply(listed, width, None)
            self._decisions = self._with_thresholds(probable, Y, self.decide)

    def _weighted(self, top: TopK, objective: Objective, strength: float) -> TopK:
        rows = self.trained_["rows"]
        weights = label_weights(objective, self.label_counts_, rows, strength=strength)
        return self._decisions.apply(top, max(_KS), weights)

    def _quality(self, Y: CSR, objective: Objective) -> Callable[[TopK], float]:
        """The quality of lists of five: the mean of the objective's metrics."""
        from labelwood.metrics import definitions, inverse_propensities  # noqa: PLC0415 - only learning measures
        from labelwood.metrics.judged import judge  # noqa: PLC0415
        from labelwood.metrics.propensity import propensity_scored  # noqa: PLC0415

        counts = np.zeros(Y.n_cols, np.int64)  # 0 for labels that no member knows
        counts[: self.n_labels_] = self.label_counts_
        weights = inverse_propensities(counts, self.trained_["rows"])

        def quality(top: TopK) -> float:
            judged = judge(Y, top)
            if objective == "tail":
                found = propensity_scored(Y, judged, weights, _KS)
                return float(np.mean([found[f"PSP@{k}"] for k in _KS]))
            if objective == "macro":
                return definitions.macro_f1(definitions.label_totals(judged, max(_KS)))
            gains = [definitions.precision(judged, k) for k in _KS]
            return float(np.mean([*gains, definitions.ndcg(judged, max(_KS))]))

        return quality

    def _lists(self, X: CSR, k: int, run: RunContext) -> list[TopK]:
        """The labels that each member proposes; members without weight propose nothing."""
        width = run.width(min(max(k, _CANDIDATES), self.n_labels_))
        nothing = TopK(np.full((X.n_rows, width), -1, np.int32), np.zeros((X.n_rows, width), np.float32))
        found = [
            member.decisions.apply(member.topk_rows(X, width, run), width, None) if weight > 0 else nothing
            for member, weight in zip(self.members_, self.mix_.weights, strict=False)
        ]
        if self.similar_ is None:
            return found
        weighs = any(weight > 0 for weight in self.mix_.weights[len(found) :])
        return found + (self.similar_.votes(X, width, run) if weighs else [nothing] * (self._n_lists - len(found)))

    @property
    def main_member(self) -> FittedModel:
        """The member with the largest weight, or its own main member."""
        return self.members_[int(np.argmax(self.mix_.weights[: len(self.members_)]))].main_member

    def topk_rows(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k labels of highest weighted score."""
        return self.mix_.combine(self._lists(X, k, run), k)

    def explain_one(self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: RunContext) -> Explanation:
        """What each member adds to the scores, and its own explanation."""
        lists = self._lists(row, k, run)
        top = self.mix_.combine(lists, k)
        amounts = [
            dict(zip(added.labels[0].tolist(), added.scores[0].tolist(), strict=True))
            for added in self.mix_.amounts(lists)
        ]
        suggestions = tuple(
            Suggestion(asked.label_name(label), score, amounts=tuple(added.get(label, 0.0) for added in amounts))
            for label, score in zip(top.labels[0].tolist(), top.scores[0].tolist(), strict=True)
            if label >= 0
        )
        explained = [member.explain_one(row, k, asked, missed, run) for member in self.members_]
        explained += [_voted(top, k, asked) for top in lists[len(self.members_) :]]
        members = tuple(map(Member, self._list_names, self.mix_.weights, self.mix_.temperatures, explained))
        lost = tuple(Missed(asked.label_name(p.label), p.score, p.place, ()) for p in missed)
        return Explanation(suggestions, missed=lost, members=members)

    @property
    def _list_names(self) -> list[str]:
        """What the lists are called: the methods of the members, then the votes."""
        own = [member.method_name for member in self.members_]
        return own + [_VOTES] * (self._n_lists - len(own))

    def describe(self) -> dict[str, Any]:
        """The members with their weights and temperatures."""
        return {
            "members": self._list_names,
            "weights": [round(weight, 4) for weight in self.mix_.weights],
            "temperatures": [round(temperature, 4) for temperature in self.mix_.temperatures],
            "by_rank": self.mix_.by_rank,
        }

    def to_saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The manifest and the arrays; estimators among the parameters are saved as methods and parameters."""
        manifest, arrays = super().to_saved()
        if self.models is not None:
            manifest["parameters"]["models"] = [spec_of(model) for model in self.models]
        return manifest, arrays

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        manifests, arrays = saved_members(self.members_, "member")
        arrays |= {} if self.similar_ is None else self.similar_.arrays()
        facts = {
            "members": manifests,
            "weights": list(self.mix_.weights),
            "temperatures": list(self.mix_.temperatures),
            "by_rank": self.mix_.by_rank,
            "held_out": self.held_out_,
        }
        return facts, arrays

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        if not isinstance(facts, dict):
            raise FormatError("facts must be an object")
        self.members_ = restored_members(self, facts["members"], arrays)
        has_index = self.similar_rows > 0 and PREFIX + "indptr" in arrays  # a blend of fitted models has none
        self.similar_ = (
            SimilarRows.restore(arrays, self.similar_rows, self.n_labels_, self.n_features_in_) if has_index else None
        )
        numbers = np.array([facts["weights"], facts["temperatures"]], np.float64)
        fits = numbers.shape == (2, self._n_lists) and len(self.members_) > 0
        if not fits or not (np.isfinite(numbers) & (numbers >= 0)).all() or not (numbers[1] > 0).all():
            raise FormatError("weights and temperatures must be one number, at least 0, a member")
        self.mix_ = Mix(tuple(numbers[0].tolist()), tuple(numbers[1].tolist()), bool(facts["by_rank"]))
        self.held_out_ = dict(facts["held_out"])


def _voted(top: TopK, k: int, asked: Asked) -> Explanation:
    """The votes of similar rows for one row."""
    pairs = zip(top.labels[0, :k].tolist(), top.scores[0, :k].tolist(), strict=True)
    return Explanation(tuple(Suggestion(asked.label_name(label), score) for label, score in pairs if label >= 0))


def _first(top: TopK, k: int) -> TopK:
    return TopK(np.ascontiguousarray(top.labels[:, :k]), np.ascontiguousarray(top.scores[:, :k]))
