"""The command line; ``labelwood.cli:main`` is its entry point."""

from labelwood.cli.main import COMMANDS, main, parser_of

__all__ = ["COMMANDS", "main", "parser_of"]
