"""The command line."""

from labelwood.cli.main import COMMANDS, main, parser_of

__all__ = ["COMMANDS", "main", "parser_of"]
