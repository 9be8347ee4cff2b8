"""Turn a data file into another format; the suffixes say which.

  labelwood convert train.txt.xz train.npz
  labelwood convert train.svm train.xmc.gz
"""

from __future__ import annotations

import argparse
from pathlib import Path

from labelwood.cli.inputs import format_flag
from labelwood.cli.output import print_facts, print_json, shown_bytes, shown_seconds
from labelwood.cli.parser import Parser
from labelwood.progress import Run


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    parser.value("source", metavar="IN", takes="the data file to read")
    parser.value("target", metavar="OUT", takes="the data file to write")
    format_flag(parser, "--from", "IN")
    format_flag(parser, "--to", "OUT")
    parser.json_flag()
