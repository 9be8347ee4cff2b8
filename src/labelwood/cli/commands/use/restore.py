"""Export the model of a service, as it is or as it was at a point in time."""

from __future__ import annotations

import datetime
from pathlib import Path

from labelwood.cli.support.output import print_facts, print_json
from labelwood.cli.support.parser import Options, Parser
from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.recovery import restore
from labelwood.storage.model_directory import check_target

EXAMPLES = (
    "labelwood restore model.state -o model",
    "labelwood restore model.state --at 2026-11-16T02:30:00Z -o yesterday",
)


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("state", metavar="STATE", takes="the state directory of a service", convert=Path)
    parser.value(
        "--at",
        metavar="TIME",
        takes="a time such as 2026-11-16T02:30:00Z",
        convert=micros_of,
        help="point in time, such as 2026-11-16T02:30:00Z; UTC unless an offset is given (default: now)",
    )
    parser.value("-o", "--output", metavar="MODEL", takes="the directory for the model", required=True)
    parser.json_flag()


def run(options: Options) -> int:
    """Replay the log up to the time and save the model."""
    check_target(options.output)
    state = restore(options.state, at=options.at)
    state.model.save(options.output)
    facts = {
        "model": options.output,
        "record": state.sequence,
        "time": time_of(state.time),
        "examples_learned": state.learned,
        "labels": estimator_of(state.model).n_labels_,
    }
    if options.json:
        print_json(facts)
    else:
        print_facts(facts)
    return 0


def micros_of(text: str) -> int:
    """Convert a time to microseconds since 1970.

    >>> micros_of("1970-01-01T00:00:01Z"), micros_of("1970-01-01 01:00:02+01:00")
    (1000000, 2000000)
    """
    time = datetime.datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    epoch = datetime.datetime.fromtimestamp(0, datetime.UTC)
    return (time - epoch) // datetime.timedelta(microseconds=1)


def time_of(micros: int) -> str:
    """Convert microseconds since 1970 to a time in UTC."""
    epoch = datetime.datetime.fromtimestamp(0, datetime.UTC)
    return (epoch + datetime.timedelta(microseconds=micros)).isoformat()
