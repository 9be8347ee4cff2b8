"""The river estimator, a subclass of river's classes; importing this module imports river."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from labelwood.adapters._required import required
from labelwood.errors import LabelwoodError
from labelwood.methods.online.learner import StreamLearner
from labelwood.methods.online.online_tree import OnlineTree
from labelwood.validation.column_names import n_dimensions

base = required("river.base", extra="river")

_OWNER = "OnlineTreeClassifier"


class Marks(dict[Hashable, bool]):
    """Label to whether it is predicted; a label that is not listed is not.

    river's metrics look up every true label, also one that was unknown when the prediction was made.
    """

    def __missing__(self, label: Hashable) -> bool:
        return False


class OnlineTreeClassifier(base.MultiLabelClassifier):  # type: ignore[misc,name-defined]  # river is absent here
    """OnlineTree as a multi-label classifier of river.

    Features are the keys of a dict. Any example may bring new features and labels. The truth of an example is a dict
    from label to truth, as elsewhere in river, or the labels that are true.

    Parameters
    ----------
    tree
        The `labelwood.OnlineTree`, `labelwood.OnlineForest` or `labelwood.LivingTree` whose parameters are used; an
        `OnlineTree` with its defaults if not given.
    k
        How many labels a prediction lists, best first; all labels seen if not given. Give it where labels are many.
    threshold
        Labels with at least this probability are predicted to be true.

    Examples
    --------
    >>> model = OnlineTreeClassifier(k=2)
    >>> model.learn_one({"wings": 1, "feathers": 1}, {"bird": True, "fish": False})
    >>> model.learn_one({"fins": 1}, {"fish"})
    >>> model.predict_one({"feathers": 1})
    {'bird': True, 'fish': False}

    References
    ----------
    Jasinska-Kobus, Wydmuch, Thiruvenkatachari and Dembczynski: Online probabilistic label trees, 2021.

    """

    def __init__(self, tree: StreamLearner | None = None, *, k: int | None = None, threshold: float = 0.5) -> None:
        self.tree = tree
        self.k = k
        self.threshold = threshold
        self._model: StreamLearner = clone(tree) if tree is not None else OnlineTree(n_jobs=1)
        self._columns: dict[Hashable, int] = {}  # feature to column, in order of appearance
        self._known: dict[Hashable, None] = {}  # all labels seen, true or not

    def learn_one(self, x: Mapping[Hashable, float], y: Mapping[Hashable, Any] | Iterable[Hashable]) -> None:
        """Learn an example.

        Parameters
        ----------
        x
            Feature to value.
        y
            Label to whether it is true, or the labels that are true.

        """
        self._learn([x], [y])

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn a batch, in its order.

        Parameters
        ----------
        X
            A dataframe whose columns are features, or a list of what `learn_one` takes.
        y
            A dataframe whose columns are labels, or a list of what `learn_one` takes.

        """
        self._learn(_as_dicts(X), _as_dicts(y))

    def predict_proba_one(self, x: Mapping[Hashable, float], **kwargs: Any) -> dict[Hashable, dict[bool, float]]:
        """The probability of labels: the `k` best, or all.

        Parameters
        ----------
        x
            Feature to value.
        **kwargs
            Not used; river passes on what a stream brings besides.

        """
        return {label: {False: 1.0 - score, True: score} for label, score in self._scores(x).items()}

    def predict_one(self, x: Mapping[Hashable, float], **kwargs: Any) -> dict[Hashable, bool]:
        """Whether labels are true of an example: the `k` best, or all.

        Parameters
        ----------
        x
            Feature to value.
        **kwargs
            Not used; river passes on what a stream brings besides.

        """
        return Marks((label, score >= self.threshold) for label, score in self._scores(x).items())

    def _learn(self, rows: Sequence[Any], targets: Sequence[Any]) -> None:
        labels = [_true_labels(target) for target in targets]
        for row in rows:
            self._add_columns(row)
        self._model.partial_fit([self._in_columns(row) for row in rows], labels)
        for target in targets:
            self._known.update(dict.fromkeys(target))

    def _scores(self, x: Mapping[Hashable, float]) -> dict[Hashable, float]:
        known = dict.fromkeys(self._known, 0.0) if self.k is None else {}
        if not self._model.__sklearn_is_fitted__() or self._model.n_labels_ == 0:
            return known
        k = self._model.n_labels_ if self.k is None else self.k
        names, scores = self._model.predict_topk([self._in_columns(x)], k)
        found = {name: float(score) for name, score in zip(names[0], scores[0], strict=True) if name is not None}
        return {**known, **found}

    def _add_columns(self, row: Mapping[Hashable, float]) -> None:
        new = row.keys() - self._columns.keys()
        # Sorted, so that the order of the keys of a row makes no difference.
        for feature in sorted(new, key=lambda name: (type(name).__name__, repr(name))):
            self._columns[feature] = len(self._columns)

    def _in_columns(self, row: Mapping[Hashable, float]) -> dict[int, float]:
        columns = self._columns
        return {columns[feature]: value for feature, value in row.items() if feature in columns}


def _true_labels(target: Any) -> list[Hashable]:
    if isinstance(target, Mapping):
        return [label for label, true in target.items() if true]
    if isinstance(target, str | bytes) or not isinstance(target, Iterable):
        raise LabelwoodError(
            f"{_OWNER}: y must be a dict from label to truth, or the labels that are true; got {target!r}"
        )
    return list(target)


def _as_dicts(table: Any) -> Sequence[Any]:
    if n_dimensions(table) != 2:
        return list(table)
    names, values = list(table.columns), np.asarray(table).tolist()
    return [dict(zip(names, row, strict=True)) for row in values]
