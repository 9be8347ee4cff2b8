"""Why a model suggests what it suggests, as plain records.

``model.explain(X)`` gives one :class:`Explanation` per row. In a label tree every suggestion has one :class:`Path` per
tree, with one :class:`Step` per edge. An instance forest routes a row first, whatever the label: the explanation has
its routes (:class:`Route`), and a suggestion has the :class:`Share` of each leaf's training examples with the label.

The score of a step is ``bias + sum of the amounts of its contributions + rest``, exactly up to rounding.
"""

from labelwood.explain.records import (
    Asked,
    Clue,
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
    "Clue",
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
