"""Rules of thumb for new data: ``labelwood train --method auto``.

The rules are those of docs/guide.md, "Which method for my data". ``labelwood tune`` does better, because it measures.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from labelwood.estimator import NJobs, RandomState, TreeEstimator, Verbose
from labelwood.methods import METHODS
from labelwood.sparse import CSR

_MANY_LABELS_A_ROW = 10.0
_CHEAP_WORK = 10**11  # entries of X times labels: about a minute of one core for one-vs-rest
_CHEAP_ENTRIES = 10**8  # entries of X: a few minutes for three trees


class Auto:
    """The parameters of ``--method auto``; all others follow from the rules."""

    def __init__(self, *, n_jobs: NJobs = None, random_state: RandomState = 0, verbose: Verbose = False) -> None:
        self.n_jobs, self.random_state, self.verbose = n_jobs, random_state, verbose


class Recommendation(NamedTuple):
    """A method, its parameters, and the reason in words."""

    method: str
    parameters: dict[str, Any]
    why: str

    def estimator(self, **changes: Any) -> TreeEstimator:
        """The estimator, not fitted."""
        return METHODS[self.method](**{**self.parameters, **changes})


def rule_of_thumb(X: CSR, Y: CSR) -> Recommendation:
    """The method to start with, by the size and shape of the data alone.

    >>> from labelwood.sparse import from_lists
    >>> rule_of_thumb(from_lists([[0], [1]], 2), from_lists([[0], [1]], 2)).method
    'one-vs-rest'
    """
    per_row = Y.nnz / max(Y.n_rows, 1)
    if per_row >= _MANY_LABELS_A_ROW:
        return Recommendation(
            "craft-forest",
            {},
            f"a row has {per_row:.1f} labels on average; from about {_MANY_LABELS_A_ROW:.0f} on forests do best",
        )
    if X.nnz * Y.n_cols <= _CHEAP_WORK:
        return Recommendation(
            "one-vs-rest", {}, f"{Y.n_cols:,} labels and {X.nnz:,} entries are few enough for one classifier per label"
        )
    n_trees = 3 if X.nnz <= _CHEAP_ENTRIES else 1
    return Recommendation(
        "linear-tree",
        {"n_trees": n_trees},
        f"{Y.n_cols:,} labels on {X.nnz:,} entries: a label tree, {n_trees} of them",
    )
