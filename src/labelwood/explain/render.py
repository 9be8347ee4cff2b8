"""Explanations in words: the text that ``labelwood explain`` and ``str`` show, and the same as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from labelwood.explain.label_words import in_words

if TYPE_CHECKING:
    from labelwood.explain.records import Explanation, Lost, Missed, Route, Step, Suggestion

Line = tuple[int, str]  # columns of indentation, and the words

_SHOWN_TREES = 3
_SHOWN_RIVALS = 5
_REASONS = {
    "listed": "proposed it",
    "beam": "its branch fell out of the beam",
    "rank": "reached it, but other labels score higher",
    "branch": "the text took another branch than its examples",
    "share": "its leaf contains it, but too rarely",
    "absent": "does not contain it",
}


def as_text(explanation: Explanation) -> str:
    """The explanation as lines of text."""
    return "\n".join((" " * indent + words).rstrip() for indent, words in _lines(in_words(explanation)))


def as_html(explanation: Explanation) -> str:
    """The same lines as HTML without scripts: what is indented can be folded."""
    blocks: list[tuple[str, list[str]]] = []
    for indent, words in _lines(in_words(explanation)):
        if indent == 0 and words:
            blocks.append((f"<b>{escape(words)}</b>", []))
        elif words:
            blocks[-1][1].append(f'<div style="margin-left: {indent / 2:g}em">{escape(words)}</div>')
    shown = (
        f"<details open><summary>{title}</summary>{''.join(below)}</details>" if below else f"<div>{title}</div>"
        for title, below in blocks
    )
    return f'<div class="labelwood-explanation">{"".join(shown)}</div>'


def _lines(explanation: Explanation) -> Iterator[Line]:
    if explanation.row_is_empty:
        yield 0, "the model knows no word or feature of this input; it suggests the same labels for every such input"
        yield 0, ""
    for suggestion in explanation.suggestions:
        meant = "" if suggestion.probability is None else f", probability {suggestion.probability:.1%}"
        yield 0, f"{suggestion.label}  {suggestion.score:.4g}{meant}"
        for member, amount in zip(explanation.members, suggestion.amounts, strict=bool(suggestion.amounts)):
            yield 2, f"{amount:.4g} of {member.method}"
        for clue in suggestion.clues:
            yield 2, f"{clue.amount:+.2f} {clue.what}"
        yield from _paths(suggestion)
        yield from _shares(suggestion, explanation.routes)
    if explanation.routes:
        yield from _routes(explanation.routes)
    for missed in explanation.missed:
        yield 0, ""
        yield from _missed(missed)
    for member in explanation.members:
        yield 0, ""
        mixed = "" if member.weight is None else f", weight {member.weight:.3g}, temperature {member.temperature:.3g}"
        yield 0, f"by {member.method} alone{mixed}"
        yield from ((indent + 2, words) for indent, words in _lines(member.explanation))


def _paths(suggestion: Suggestion) -> Iterator[Line]:
    for path in suggestion.paths:
        if len(suggestion.paths) > 1:
            note = "" if path.listed else ", not among its proposals"
            yield 2, f"tree {path.tree + 1}: {path.score:.4g}{note}"
        for step in path.steps:
            yield 4, _step(step)


def _shares(suggestion: Suggestion, routes: tuple[Route, ...]) -> Iterator[Line]:
    for share in suggestion.shares[:_SHOWN_TREES]:
        route = routes[share.route]
        yield 2, f"{share.share:.1%} of the examples in leaf {route.leaf} of tree {route.tree + 1}"
    hidden = suggestion.shares[_SHOWN_TREES:]
    if hidden:
        yield 2, f"and {len(hidden)} more leaves of {len(routes)}, adding {sum(s.amount for s in hidden):.4g}"
    if suggestion.reranked is not None:
        yield 2, f"score of the trees {suggestion.reranked.tree_score:.4g}, nearness {suggestion.reranked.nearness:.4g}"


def _routes(routes: tuple[Route, ...]) -> Iterator[Line]:
    yield 0, ""
    for route in routes[:_SHOWN_TREES]:
        yield 0, f"path through tree {route.tree + 1}"
        for step in route.steps:
            yield 4, _step(step)
    if len(routes) > _SHOWN_TREES:
        yield 0, f"and {len(routes) - _SHOWN_TREES} more trees"


def _step(step: Step) -> str:
    where = f"node {step.child}" if step.label is None else str(step.label)
    chance = "" if step.probability is None else f"{step.probability:.1%}, "
    words = "  ".join(
        f"{c.amount:+.2f} {c.name if c.name is not None else f'feature {c.feature}'}" for c in step.contributions
    )
    rest = f"  {step.rest:+.2f} others" if abs(step.rest) >= 0.005 else ""
    return (
        f"{where}: {chance}place {step.place} of {step.n_children}, "
        f"score {step.score:+.2f} = {step.bias:+.2f}  {words}{rest}"
    ).rstrip()


def _missed(missed: Missed) -> Iterator[Line]:
    if missed.place is None:
        yield 0, f"{missed.label}: not found"
    else:
        yield 0, f"{missed.label}: place {missed.place:,}, score {missed.score:.4g}"
    for lost in missed.lost[:_SHOWN_TREES]:
        yield from _lost(lost)
    hidden = [lost.reason for lost in missed.lost[_SHOWN_TREES:]]
    for reason in dict.fromkeys(hidden):
        yield 2, f"{hidden.count(reason)} more trees: {_REASONS[reason]}"


def _lost(lost: Lost) -> Iterator[Line]:
    yield 2, f"tree {lost.tree + 1}: {_REASONS[lost.reason]}; score {lost.score:.4g}"
    if lost.step is not None:
        yield 4, f"at node {lost.step.node}: {_step(lost.step)}"
    if lost.rivals:
        names = [f"{_rival(rival.node, rival.label)} {rival.score:.4g}" for rival in lost.rivals[:_SHOWN_RIVALS]]
        more = f" and {len(lost.rivals) - _SHOWN_RIVALS} more" if len(lost.rivals) > _SHOWN_RIVALS else ""
        yield 4, f"to {', '.join(names)}{more}"


def _rival(node: int | None, label: Any) -> str:
    return f"node {node}" if label is None else str(label)
