"""Why a model suggests what it suggests, as plain records.

``model.explain(X)`` gives an :class:`Explanation` a row. In a label tree every suggestion has a :class:`Path` a tree,
and a :class:`Step` an edge on it. An instance forest routes a row first, whatever the label: its :class:`Route` s are
part of the explanation, and a suggestion says what :class:`Share` of the training examples of each leaf had the label.

The score of a step is ``bias + sum of the amounts of its contributions + rest``, exactly up to rounding.
"""

from labelwood.explain.records import (
    Asked,
    Contribution,
    Explanation,
    Lost,
    Member,
    Missed,
    Path,
    Place,
    Reason,
    Reranked,
    Rival,
    Route,
    Share,
    Step,
    Suggestion,
    places_in,
)

__all__ = [
    "Asked",
    "Contribution",
    "Explanation",
    "Lost",
    "Member",
    "Missed",
    "Path",
    "Place",
    "Reason",
    "Reranked",
    "Rival",
    "Route",
    "Share",
    "Step",
    "Suggestion",
    "places_in",
]
