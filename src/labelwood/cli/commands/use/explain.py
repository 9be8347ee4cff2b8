"""Explain the suggestions of a model: the path through the tree and the words that decided at each step.

DATA is a literal text, or a data file of which --row picks a row. Each word is shown with what it adds to the score of
a step.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from labelwood.cli.support.inputs import (
    add_data_arguments,
    add_model_argument,
    is_a_text,
    label_of,
    read_model,
    read_rows,
    read_texts,
)
from labelwood.cli.support.output import print_json
from labelwood.cli.support.parser import Parser, UsageError
from labelwood.explain import Explanation, Lost, Missed, Route, Step, Suggestion
from labelwood.methods.text_classifier import Model

EXAMPLES = (
    'labelwood explain model "The court decided on the income tax"',
    'labelwood explain model "The court decided on the income tax" --missed taxation',
    "labelwood explain model test.txt.xz --row 12 -k 3 --json",
)
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


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_model_argument(parser)
    add_data_arguments(parser, label_names=False)
    parser.count("-k", default=3, help="number of suggestions to explain")
    parser.count("--row", default=1, help="row of the data file, counted from 1")
    parser.count("--words", default=8, help="words or features shown per step")
    parser.value(
        "--missed",
        metavar="LABEL",
        takes="a label of the model",
        action="append",
        default=[],
        help="show at which node this label was lost, and to which labels or nodes; may be repeated",
    )
    parser.json_flag()


def run(options: argparse.Namespace) -> int:
    """Explain one row."""
    model = read_model(options)
    explanation = _explanation(model, options)
    if options.json:
        print_json(asdict(explanation))
    else:
        print("\n".join(_lines(explanation)))
    return 0


def _explanation(model: Model, options: argparse.Namespace) -> Explanation:
    missed = [label_of(model, text) for text in options.missed]
    if model.takes == "text":
        texts = [options.data] if is_a_text(options) else read_texts(options, needs_labels=False).texts
        text = texts[_row(options, len(texts))]
        return model.explain([text], options.k, missed=missed, n_features=options.words)[0]
    rows = read_rows(model, options)
    number = _row(options, rows.n_rows)
    row: Any = rows.rows(number, number + 1)
    return model.explain(row, options.k, missed=missed, n_features=options.words)[0]


def _row(options: argparse.Namespace, n_rows: int) -> int:
    if options.row > n_rows:
        raise UsageError(f"labelwood explain: --row takes a row of {options.data}, 1 to {n_rows}; got {options.row}")
    return int(options.row) - 1


def _lines(explanation: Explanation) -> Iterator[str]:
    if explanation.row_is_empty:
        yield "the model knows no word or feature of this input; it suggests the same labels for every such input"
        yield ""
    for suggestion in explanation.suggestions:
        meant = "" if suggestion.probability is None else f", probability {suggestion.probability:.1%}"
        yield f"{suggestion.label}  {suggestion.score:.4g}{meant}"
        for member, amount in zip(explanation.members, suggestion.amounts, strict=True):
            yield f"  {amount:.4g} of {member.method}"
        yield from _paths(suggestion)
        yield from _shares(suggestion, explanation.routes)
    if explanation.routes:
        yield from _routes(explanation.routes)
    for missed in explanation.missed:
        yield ""
        yield from _missed(missed)
    for member in explanation.members:
        yield ""
        yield f"by {member.method} alone, weight {member.weight:.3g}, temperature {member.temperature:.3g}"
        yield from (f"  {line}".rstrip() for line in _lines(member.explanation))


def _paths(suggestion: Suggestion) -> Iterator[str]:
    for path in suggestion.paths:
        if len(suggestion.paths) > 1:
            note = "" if path.listed else ", not among its proposals"
            yield f"  tree {path.tree + 1}: {path.score:.4g}{note}"
        for step in path.steps:
            yield f"    {_step(step)}"


def _shares(suggestion: Suggestion, routes: tuple[Route, ...]) -> Iterator[str]:
    for share in suggestion.shares[:_SHOWN_TREES]:
        route = routes[share.route]
        yield f"  {share.share:.1%} of the examples in leaf {route.leaf} of tree {route.tree + 1}"
    hidden = suggestion.shares[_SHOWN_TREES:]
    if hidden:
        yield f"  and {len(hidden)} more leaves of {len(routes)}, adding {sum(s.amount for s in hidden):.4g}"
    if suggestion.reranked is not None:
        yield f"  score of the trees {suggestion.reranked.tree_score:.4g}, nearness {suggestion.reranked.nearness:.4g}"


def _routes(routes: tuple[Route, ...]) -> Iterator[str]:
    yield ""
    for route in routes[:_SHOWN_TREES]:
        yield f"path through tree {route.tree + 1}"
        for step in route.steps:
            yield f"    {_step(step)}"
    if len(routes) > _SHOWN_TREES:
        yield f"and {len(routes) - _SHOWN_TREES} more, with --json"


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


def _missed(missed: Missed) -> Iterator[str]:
    if missed.place is None:
        yield f"{missed.label}: not found"
    else:
        yield f"{missed.label}: place {missed.place:,}, score {missed.score:.4g}"
    for lost in missed.lost[:_SHOWN_TREES]:
        yield from _lost(lost)
    hidden = [lost.reason for lost in missed.lost[_SHOWN_TREES:]]
    for reason in dict.fromkeys(hidden):
        yield f"  {hidden.count(reason)} more trees: {_REASONS[reason]}"


def _lost(lost: Lost) -> Iterator[str]:
    yield f"  tree {lost.tree + 1}: {_REASONS[lost.reason]}; score {lost.score:.4g}"
    if lost.step is not None:
        yield f"    at node {lost.step.node}: {_step(lost.step)}"
    if lost.rivals:
        names = [f"{_rival(rival.node, rival.label)} {rival.score:.4g}" for rival in lost.rivals[:_SHOWN_RIVALS]]
        more = f" and {len(lost.rivals) - _SHOWN_RIVALS} more" if len(lost.rivals) > _SHOWN_RIVALS else ""
        yield f"    to {', '.join(names)}{more}"


def _rival(node: int | None, label: Any) -> str:
    return f"node {node}" if label is None else str(label)
