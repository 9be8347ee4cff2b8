"""List, rename, retire, merge and restore the labels of an online model.

retire stops suggesting a label, restore suggests it again, merge turns one label into another.
"""

from __future__ import annotations

from typing import Any

from labelwood.cli.support.inputs import add_model_argument, label_of, language_flag, names_for, read_model
from labelwood.cli.support.output import print_json, print_table, shown
from labelwood.cli.support.parser import Options, Parser, UsageError, one_of
from labelwood.label_names import LabelEntry
from labelwood.methods.online.learner import learner_of
from labelwood.methods.text_classifier import estimator_of
from labelwood.vocabulary.shown_names import ShownNames

EXAMPLES = (
    "labelwood labels model list",
    "labelwood labels model retire covid-19",
    "labelwood labels model merge 'e-mail' email",
)
_NAMES_TAKEN = {"list": 0, "rename": 2, "retire": 1, "merge": 2, "restore": 1}


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    add_model_argument(parser, threads=False)
    parser.value("action", metavar="ACTION", takes=f"one of {', '.join(_NAMES_TAKEN)}", convert=one_of(_NAMES_TAKEN))
    parser.add_argument(
        "names",
        metavar="LABEL",
        nargs="*",
        help="for rename: OLD NEW; for retire and restore: LABEL; for merge: LABEL INTO",
    )
    language_flag(parser)
    parser.json_flag()


def run(options: Options) -> int:
    """List the labels, or change them and save the model."""
    wanted = _NAMES_TAKEN[options.action]
    if len(options.names) != wanted:
        raise UsageError(f"labelwood labels: {options.action} takes {wanted} labels; got {len(options.names)}")
    whole = read_model(options)
    if options.action == "list":
        _print(estimator_of(whole).label_entries(), names_for(whole, options), as_json=options.json)
        return 0
    model = learner_of(whole, owner=options.model)
    names: list[Any] = [label_of(model, text) for text in options.names]
    if options.action == "rename":
        names[1] = options.names[1]
    getattr(model.labels, options.action)(*names)
    whole.save(options.model)
    if options.json:
        print_json({"action": options.action, "labels": options.names})
    return 0


def _print(entries: list[LabelEntry], names: ShownNames, *, as_json: bool) -> None:
    if as_json:
        print_json([{**entry._asdict(), **({"concept": names.name(entry.name)} if names else {})} for entry in entries])
        return
    rows = [
        [names.shown(entry.name), str(entry.id),
         entry.state if entry.target is None else f"merged into {entry.target}",
         shown(entry.support), "-" if entry.age is None else shown(entry.age),
         "-" if entry.idle is None else shown(entry.idle)]
        for entry in entries
    ]  # fmt: skip
    print_table(["label", "id", "state", "support", "age", "idle"], rows)
