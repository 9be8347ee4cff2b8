"""Ranker: several models propose labels, boosted trees take a second look at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from labelwood.errors import FormatError
from labelwood.estimator import FittedModel, NJobs, RandomState, TreeEstimator, Verbose
from labelwood.explain import Asked, Clue, Explanation, Member, Missed, Place, Suggestion
from labelwood.methods._nested_models import restored_members, saved_members, spec_of, unfitted_members
from labelwood.params import Param
from labelwood.run_context import RunContext
from labelwood.scoring.mix import even
from labelwood.scoring.second_look import SHARED_FEATURES, Described, LabelTables, SecondLook, learn_trees
from labelwood.scoring.similar_rows import SimilarRows
from labelwood.sparse import CSR, F32, I32, I64, TopK
from labelwood.validation.label_texts import LabelRows, LabelVectors, without

# The first members; the time of one-vs-rest grows with the number of labels.
_FOR_FEW_LABELS: dict[str, Any] = {"method": "one-vs-rest"}
_FOR_MANY_LABELS: dict[str, Any] = {"method": "linear-tree", "n_trees": 3}
_SECOND: dict[str, Any] = {"method": "craft-forest", "n_trees": 20}
_FEW_LABELS = 6_000
_FEWEST_ROWS = 20  # with fewer rows, none are held out
_ENOUGH_ROWS = 10_000  # held-out rows from which one part is enough
_LARGER_PART = 0.3  # share of the rows that is held out instead, where that makes one part enough
_MOST_ROWS = 20_000  # more held-out rows do not improve the second look
_NOT_FOUND = 0.5  # share of a name from which it counts as found in the text


class Ranker(TreeEstimator):
    """Members propose labels, boosted trees order them: the best quality, for two to three times the training time.

    Members are method names, ``{"method": name, parameter: value, ...}``, or estimators. All use the threads, seed and
    progress bar of the ranker. ``fit`` holds out a part of the rows, lets the members learn from the others, and learns
    from the held-out rows which of the proposed labels are right: by what each member says, the frequency of the label,
    the labels proposed beside it, and its name, if ``fit`` is given label vectors. Small data take turns in being held
    out. At the end the members learn from all rows. Scores are probabilities.

    At most ``candidates`` labels of each member are suggested for a row, as many of the training rows most similar to
    it, and 20 whose names stand in it.

    Fitted attributes: ``members_``, ``second_look_`` (None if there were too few rows to learn it).

    >>> import numpy as np
    >>> X = np.eye(6, dtype=np.float32)
    >>> Y = [["red"], ["red"], ["green"], ["green"], ["blue"], ["blue"]]
    >>> model = Ranker(["linear-tree", "one-vs-rest"], n_jobs=1).fit(X, Y)
    >>> model.predict_topk(X[:1], k=1)[0].tolist()
    [['red']]
    """

    method_name: ClassVar[str] = "ranker"
    takes_vectors: ClassVar[bool] = True
    ADDED_LATER: ClassVar[dict[str, Any]] = {"similar_rows": 0, "hidden": 0.0, "text_rows": 1, "unseen": 1.0}
    members_: list[TreeEstimator]
    second_look_: SecondLook | None

    def __init__(
        self,
        models: Annotated[
            list[Any] | None,
            Param(
                "the members: methods, or objects of a method and its parameters; None: craft-forest with one-vs-rest "
                "up to 6,000 labels, with linear-tree above"
            ),
        ] = None,
        *,
        candidates: Annotated[int, Param("labels that each member proposes", ge=1, le=1000)] = 40,
        held_out: Annotated[float, Param("share of the rows that are held out at a time", gt=0, le=0.5)] = 0.2,
        folds: Annotated[
            int | None,
            Param(
                "parts held out in turn; None: enough for 10,000 rows, at most 1 / held_out; one if 0.3 is enough", ge=1
            ),
        ] = None,
        n_boosted: Annotated[int, Param("boosted trees of the second look", ge=1, le=10_000)] = 100,
        similar_rows: Annotated[
            int, Param("training rows most similar to a row that propose their labels; 0: none", ge=0, le=1000)
        ] = 50,
        hidden: Annotated[
            float,
            Param(
                "share of the labels that members do not see in a held-out part, if some label has texts but no rows: "
                "teaches when a name is enough",
                ge=0,
                le=0.5,
            ),
        ] = 0.1,
        text_rows: Annotated[
            int,
            Param(
                "training rows of the members that each label text becomes; 0: the texts are for the second look alone",
                ge=0,
                le=100,
            ),
        ] = 1,
        unseen: Annotated[
            float,
            Param(
                "weight of labels without any row while the second look learns: they are wrong there every time, so "
                "less suggests them more often",
                ge=0,
                le=1,
            ),
        ] = 1.0,
        n_jobs: NJobs = None,
        random_state: RandomState = 0,
        verbose: Verbose = False,
    ) -> None:
        self.models, self.candidates, self.held_out, self.folds = models, candidates, held_out, folds
        self.n_boosted, self.similar_rows = n_boosted, similar_rows
        self.hidden, self.text_rows, self.unseen = hidden, text_rows, unseen
        self.n_jobs, self.random_state, self.verbose = n_jobs, random_state, verbose

    def _fit(self, X: CSR, Y: CSR, run: RunContext) -> None:
        self._fit_described(X, Y, None, run)

    def _fit_described(self, X: CSR, Y: CSR, label_rows: LabelRows | None, run: RunContext) -> None:
        self.members_, self.second_look_ = self._unfitted(Y.n_cols, run.seed), None
        looked = [self._held_out_part(X, Y, label_rows, out, run) for out in self._parts(X.n_rows, run)]
        found = [part for part in looked if part is not None]
        self._train(X, Y, label_rows, run)
        if not found:
            return
        features = np.concatenate([described.features for described, _ in found])
        hits = np.concatenate([hits for _, hits in found])
        if hits.all() or not hits.any():
            return
        with run.phase("second look"):
            labels = np.concatenate([described.labels for described, _ in found])
            weights = self._weights(labels, Y)
            trees = learn_trees(features, hits, n_trees=self.n_boosted, run=run, weights=weights)
            self.second_look_ = replace(self._untaught(X, Y, label_rows), trees=trees)

    def _unfitted(self, n_labels: int, seed: int) -> list[TreeEstimator]:
        first = _FOR_FEW_LABELS if n_labels <= _FEW_LABELS else _FOR_MANY_LABELS
        models: list[Any] = [first, _SECOND] if self.models is None else self.models
        common = {"n_jobs": self.n_jobs, "random_state": seed, "verbose": self.verbose}
        return unfitted_members(models, owner="Ranker", **common)

    def _parts(self, n_rows: int, run: RunContext) -> Iterator[I64]:
        """Disjoint parts of the rows to hold out one after the other."""
        size = int(self.held_out * n_rows) if n_rows >= _FEWEST_ROWS else 0
        if size == 0:
            return
        larger = int(_LARGER_PART * n_rows)
        if self.folds is None and size < _ENOUGH_ROWS <= larger:
            size = larger
        folds = -(-_ENOUGH_ROWS // size) if self.folds is None else self.folds
        order = np.random.default_rng(run.seed).permutation(n_rows)
        for fold in range(min(folds, n_rows // size)):
            yield np.sort(order[fold * size : (fold + 1) * size])

    def _held_out_part(
        self, X: CSR, Y: CSR, label_rows: LabelRows | None, out: I64, run: RunContext
    ) -> tuple[Described, npt.NDArray[Any]] | None:
        """The candidates of a part for members that did not see it, and which of them are right."""
        kept = np.setdiff1d(np.arange(X.n_rows), out, assume_unique=True)
        Y_kept = without(Y.take(kept), self._hidden_labels(Y, label_rows, seed=[run.seed, int(out[0])]))
        if Y_kept.nnz == 0:
            return None
        X_kept = X.take(kept)
        self._train(X_kept, Y_kept, label_rows, run)
        looked_at = out if len(out) <= _MOST_ROWS else out[:: -(-len(out) // _MOST_ROWS)]
        rows = X.take(looked_at)
        with run.phase("second look"):
            look = self._untaught(X_kept, Y_kept, label_rows)
            described = look.describe(rows, self._lists(rows, run), run)
            return described, _hits(described, Y.take(looked_at))

    def _untaught(self, X: CSR, Y: CSR, label_rows: LabelRows | None) -> SecondLook:
        """What the second look knows of training rows, before it learns."""
        similar = SimilarRows.learn(X, Y, self.similar_rows) if self.similar_rows else None
        return SecondLook.untaught(LabelTables.learn(X, Y, label_rows), len(self.members_), similar)

    def _hidden_labels(self, Y: CSR, label_rows: LabelRows | None, seed: list[int]) -> npt.NDArray[np.bool_]:
        """Some of the labels with texts, if the model shall suggest labels of which it knows the texts only."""
        if label_rows is None:
            return np.zeros(Y.n_cols, bool)
        has_text, has_rows = np.diff(label_rows.ptr) > 0, np.bincount(Y.indices, minlength=Y.n_cols) > 0
        share = self.hidden if (has_text & ~has_rows).any() else 0.0
        return has_text & (np.random.default_rng(seed).random(Y.n_cols) < share)

    def _weights(self, labels: I32, Y: CSR) -> F32 | None:
        """The weight of each candidate while the second look learns; None: all count the same."""
        if self.unseen == 1:
            return None
        return np.where(np.isin(labels, Y.indices), 1, self.unseen).astype(np.float32)

    def _train(self, X: CSR, Y: CSR, label_rows: LabelRows | None, run: RunContext) -> None:
        vectors = None
        if label_rows is not None and self.text_rows:
            rows = np.repeat(np.arange(label_rows.vectors.n_rows), self.text_rows)
            vectors = LabelVectors(label_rows.targets.indices[rows].tolist(), label_rows.vectors.take(rows))
        for member in self.members_:
            with run.phase(member.method_name):
                member.fit(X, Y.to_scipy(), label_vectors=vectors)

    @property
    def _width(self) -> int:
        return min(self.candidates, self.n_labels_)

    def _lists(self, X: CSR, run: RunContext) -> list[TopK]:
        """The labels that each member proposes."""
        width = self._width if run.allowed is None else min(self._width, len(run.allowed))
        return [member.topk_rows(X, width, run) for member in self.members_]

    @property
    def main_member(self) -> FittedModel:
        """The first member, or its own main member."""
        return self.members_[0].main_member

    def topk_rows(self, X: CSR, k: int, run: RunContext) -> TopK:
        """The k best candidates: by the second look, else by the mean score of the members."""
        lists = self._lists(X, run)
        if self.second_look_ is None:
            return even(len(lists)).combine(lists, k)
        return self.second_look_.order(X, lists, k, run)

    def explain_one(self, row: CSR, k: int, asked: Asked, missed: Sequence[Place], run: RunContext) -> Explanation:
        """What the second look makes of each label, and each member's own explanation."""
        top = self.topk_rows(row, k, run)
        clues = self._clues(row, run)
        suggestions = tuple(
            Suggestion(asked.label_name(label), score, clues=clues.get(label, ()))
            for label, score in zip(top.labels[0].tolist(), top.scores[0].tolist(), strict=True)
            if label >= 0
        )
        members = tuple(
            Member(member.method_name, None, None, member.explain_one(row, k, asked, missed, run))
            for member in self.members_
        )
        lost = tuple(Missed(asked.label_name(p.label), p.score, p.place, ()) for p in missed)
        return Explanation(suggestions, missed=lost, members=members)

    def _clues(self, row: CSR, run: RunContext) -> dict[int, tuple[Clue, ...]]:
        """For each candidate of one row, what its features add to the logarithm of its odds, the largest first."""
        if self.second_look_ is None:
            return {}
        described = self.second_look_.describe(row, self._lists(row, run), run)
        methods = [member.method_name for member in self.members_]
        groups = self.second_look_.feature_groups()
        found = {}
        for label, vector in zip(described.labels.tolist(), described.features, strict=True):
            start, added = self.second_look_.trees.contributions(vector)
            amounts: dict[str, float] = {}
            for group, amount in zip(groups, added.tolist(), strict=True):
                amounts[group] = amounts.get(group, 0.0) + amount
            told = [Clue(_in_words(group, vector, methods, self._width), amount) for group, amount in amounts.items()]
            told.sort(key=lambda clue: -abs(clue.amount))
            found[label] = (Clue("any candidate", start), *(clue for clue in told if clue.amount))
        return found

    def describe(self) -> dict[str, Any]:
        """The members, and the size of the second look."""
        return {
            "members": [member.method_name for member in self.members_],
            "candidates": self._width,
            "boosted_trees": 0 if self.second_look_ is None else self.second_look_.trees.n_trees,
            "similar_rows": self.similar_rows if self.second_look_ else 0,
            "names": 0 if self.second_look_ is None else self.second_look_.tables.names.n_rows,
        }

    def to_saved(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The manifest and the arrays; estimators among the parameters are saved as methods and parameters."""
        manifest, arrays = super().to_saved()
        if self.models is not None:
            manifest["parameters"]["models"] = [spec_of(model) for model in self.models]
        return manifest, arrays

    def _state(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        manifests, arrays = saved_members(self.members_, "member")
        look = self.second_look_
        facts = {"members": manifests, "second_look": look is not None, "name_rows": True}
        return facts, {**arrays, **(look.arrays() if look else {})}

    def _restore(self, facts: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        if not isinstance(facts["members"], list) or not facts["members"]:
            raise FormatError("facts must be an object with at least one member")
        self.members_, self.second_look_ = restored_members(self, facts["members"], arrays), None
        if facts["second_look"]:
            self.second_look_ = SecondLook.restore(
                arrays,
                len(self.members_),
                self.similar_rows,
                self.n_labels_,
                self.n_features_in_,
                name_rows=bool(facts.get("name_rows")),
            )


def _hits(described: Described, Y: CSR) -> npt.NDArray[np.bool_]:
    """For each candidate, whether its row has the label."""
    rows = np.repeat(np.arange(Y.n_rows), np.diff(described.ptr))
    truth = np.repeat(np.arange(Y.n_rows), np.diff(Y.indptr)) * Y.n_cols + Y.indices
    return np.isin(rows * Y.n_cols + described.labels, truth)


def _in_words(group: str, vector: npt.NDArray[Any], methods: list[str], width: int) -> str:
    """A group of features in words."""
    if group.startswith("member "):
        number = int(group.removeprefix("member "))
        place = int(vector[3 * number + 1])
        said = f"has it at place {place}" if place <= width else "does not propose it"
        return f"{methods[number]} {said}"
    if group == "similar":
        place = int(vector[3 * len(methods) + 1])
        return f"similar training rows {f'have it at place {place}' if place <= width else 'do not have it'}"
    if group == "name":
        found = vector[SHARED_FEATURES.index("share of the name in the row") - len(SHARED_FEATURES)]
        return f"the name of the label {'stands' if found >= _NOT_FOUND else 'does not stand'} in the text"
    return {
        "agreement": "all members taken together",
        "frequency": "how often the label was given in training",
        "company": "how often it was given with the labels proposed beside it",
        "length": "the length of the text",
    }[group]
