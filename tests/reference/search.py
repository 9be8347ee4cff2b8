"""Twin of label_tree/search.hpp: the best labels of one row, from the margins along the paths of a tree.

The score of a label is the product of the probabilities of the edges on its path. ``margins(node)`` gives the
margins of a node's children for the row.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwood.explain.label_tree import log_probability

Margins = Callable[[int], npt.NDArray[Any]]
Found = list[tuple[int, float]]


def beam_search(
    child_ptr: Any,
    label: Any,
    margins: Margins,
    *,
    k: int,
    beam_width: int,
    link: int,
    gaps: list[float] | None = None,
    per_node: int = 0,
) -> Found:
    """Open the ``beam_width`` best inner nodes of each level; return the k best labels found on the way.

    Only the ``per_node`` best labels of a node count, if that is not 0. ``gaps`` collects by how much the last node
    inside the beam beats the first node outside, at each level.
    """
    beam, found = [(0.0, 0)], []
    while beam:
        nodes = []
        for score, node in beam:
            scores = score + log_probability(margins(node), link)
            labels = []
            for child, total in zip(range(child_ptr[node], child_ptr[node + 1]), scores, strict=True):
                if label[child] >= 0:
                    labels.append((float(total), int(label[child])))
                else:
                    nodes.append((float(total), child))
            found += sorted(labels, key=lambda item: (-item[0], item[1]))[: per_node or None]
        nodes.sort(key=lambda item: (-item[0], item[1]))
        beam = nodes[:beam_width]
        if gaps is not None and len(nodes) > beam_width:
            gaps.append(nodes[beam_width - 1][0] - nodes[beam_width][0])
    best = sorted(found, key=lambda item: (-item[0], item[1]))[:k]
    return [(found_label, float(np.exp(score))) for score, found_label in best]


def uniform_cost_search(child_ptr: Any, label: Any, margins: Margins, *, k: int, link: int) -> Found:
    """Always open the best node so far. Scores never rise along a path, so labels are found best first."""
    queue: list[tuple[float, int, int]] = [(0.0, 0, 0)]
    found: Found = []
    while queue and len(found) < k:
        cost, _, node = heapq.heappop(queue)
        if label[node] >= 0:
            found.append((int(label[node]), float(np.exp(-cost))))
            continue
        costs = cost - log_probability(margins(node), link)
        for child, total in zip(range(child_ptr[node], child_ptr[node + 1]), costs, strict=True):
            heapq.heappush(queue, (float(total), int(label[child]), child))
    return found


def score_allowed(child_ptr: Any, label: Any, margins: Margins, *, allowed: set[int], k: int, link: int) -> Found:
    """Score every leaf by its path; return the k best of the allowed labels."""
    scores, found = {0: 0.0}, []
    for node in range(len(label)):  # parents come before their children
        if label[node] in allowed:
            found.append((int(label[node]), float(np.exp(scores[node]))))
        elif label[node] < 0:
            children = range(child_ptr[node], child_ptr[node + 1])
            totals = scores[node] + log_probability(margins(node), link)
            scores |= dict(zip(children, totals, strict=True))
    return sorted(found, key=lambda item: (-item[1], item[0]))[:k]


def average(members: list[Found], k: int) -> Found:
    """The k best labels by mean score over the members' lists; a label absent from a list scores 0 there."""
    totals: dict[int, float] = {}
    for found in members:
        for label, score in found:
            totals[label] = totals.get(label, 0.0) + score / len(members)
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:k]
