"""An argparse parser whose every complaint is one line: the flag, what it takes, what it got."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, NoReturn

VECTOR_FORMATS = ("xmc", "svmlight", "npz", "lw")
_REQUIRED = "the following arguments are required: "
_NO_VALUE = "expected one argument"


class UsageError(Exception):
    """Wrong usage of the command line; the message is the line to print."""


class Parser(argparse.ArgumentParser):
    """A command's parser: flags in full, errors raised as :class:`UsageError`, help only when asked for."""

    def __init__(self, *, prog: str, description: str | None = None, examples: Iterable[str] = ()) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog="\n".join(["examples:", *(f"  {line}" for line in examples)]),
            formatter_class=_Formatter,
            allow_abbrev=False,
            exit_on_error=False,
            add_help=False,
        )
        self._takes: dict[str, str] = {}
        self.add_argument("-h", "--help", action="store_true", help="show this help")
        self.add_argument("-q", dest="quiet", action="store_true", help="no progress bars, no remarks")
        self.add_argument("-v", dest="loud", action="store_true", help="tell the seconds of every phase")

    def flags(self) -> list[str]:
        """Every flag of the command."""
        return [flag for action in self._actions for flag in action.option_strings]

    def value(
        self,
        *names: str,
        takes: str,
        convert: Callable[[str], Any] = str,
        into: argparse._ArgumentGroup | None = None,
        **options: Any,
    ) -> None:
        """Add a positional or a flag with one value; ``takes`` says in words what the value is.

        ``convert`` turns the text into the value and raises ``ValueError`` if it is not what the flag takes.
        """

        def checked(text: str) -> Any:
            try:
                return convert(text)
            except ValueError:
                raise argparse.ArgumentTypeError(f"got {text!r}") from None

        options.setdefault("help", takes)
        action = (into or self).add_argument(*names, type=checked, **options)
        self._takes["/".join(action.option_strings) or str(action.metavar)] = takes

    def count(self, flag: str, *, default: int, help: str) -> None:
        """Add a flag that takes an integer, at least 1."""
        takes = "an integer, at least 1"
        text = f"{help} (default {default})"
        self.value(flag, metavar="N", takes=takes, convert=at_least(1), default=default, help=text)

    def has_flag(self, flag: str) -> bool:
        """Whether a flag was added already."""
        return any(flag in action.option_strings for action in self._actions)

    def json_flag(self) -> None:
        """Add ``--json``, which every command has."""
        self.add_argument("--json", action="store_true", help="print JSON for machines")

    def format_flag(self, flag: str, what: str, formats: Sequence[str] = VECTOR_FORMATS) -> None:
        """Add a flag that says the format of a data file instead of its suffix."""
        takes = f"one of {', '.join(formats)}"
        text = f"the format of {what}: {takes} (default: told by the suffix)"
        self.value(flag, metavar="NAME", takes=takes, convert=one_of(formats), help=text)

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse, or raise the one line that says what is wrong."""
        try:
            options, unknown = self.parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            self._explain(error)
        if unknown:
            flags = [flag for action in self._actions for flag in action.option_strings]
            word = unknown[0].partition("=")[0]
            if word.startswith("-"):
                advice = nearest(word, flags) or f"; see {self.prog} --help"
                raise UsageError(f"{self.prog}: there is no flag {word}{advice}")
            raise UsageError(f"{self.prog}: unexpected argument {word!r}; see {self.prog} --help")
        for action in self._actions:  # argparse takes a second "--" for a value, and then for none
            if action.nargs is None and not action.option_strings and getattr(options, action.dest) == []:
                self.error(f"{_REQUIRED}{action.metavar}")
        return options

    def error(self, message: str) -> NoReturn:
        """Turn argparse's exit into an exception."""
        if message.startswith(_REQUIRED):
            missing = [name for name in self._takes if name in message.removeprefix(_REQUIRED).split(", ")]
            if missing:
                needs = "; ".join(f"{name} is needed: it takes {self._takes[name]}" for name in missing)
                raise UsageError(f"{self.prog}: {needs}")
        raise UsageError(f"{self.prog}: {message}")

    def _explain(self, error: argparse.ArgumentError) -> NoReturn:
        name = error.argument_name
        if name is None:
            self.error(error.message)
        if name not in self._takes:
            raise UsageError(f"{self.prog}: {name} takes no value")
        reason = "got nothing" if error.message == _NO_VALUE else error.message
        raise UsageError(f"{self.prog}: {name} takes {self._takes[name]}; {reason}")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help with room for long flags."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=110)


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` when something known is close to the word, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def one_of(words: Container[str]) -> Callable[[str], str]:
    """A converter that lets only the given words pass."""

    def convert(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return convert


def at_least(minimum: int) -> Callable[[str], int]:
    """A converter to integers with a lower bound."""

    def convert(text: str) -> int:
        number = int(text)
        if number < minimum:
            raise ValueError(text)
        return number

    return convert


def distinct_counts(text: str) -> tuple[int, ...]:
    """A comma-separated list of positive integers, each once, in rising order.

    >>> distinct_counts("5,1,3")
    (1, 3, 5)
    """
    return tuple(sorted({at_least(1)(part) for part in text.split(",")}))


def two_positive(text: str) -> tuple[float, float]:
    """Two finite numbers greater than 0 with a comma between.

    >>> two_positive("0.5,0.4")
    (0.5, 0.4)
    """
    first, second = (float(part) for part in text.split(","))
    if not (0 < first < float("inf") and 0 < second < float("inf")):
        raise ValueError(text)
    return first, second


def duration(text: str) -> float:
    """A time in seconds: a number with s, m or h behind it, or with nothing for seconds.

    >>> duration("10m"), duration("90")
    (600.0, 90.0)
    """
    return _with_unit(text, {"s": 1, "m": 60, "h": 3600})


def byte_count(text: str) -> int:
    """A number of bytes: with k, M, G or T behind it, or with nothing.

    >>> byte_count("2G")
    2000000000
    """
    return int(
        _with_unit(text.removesuffix("B"), {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12})
    )


def _with_unit(text: str, units: Mapping[str, int]) -> float:
    factor = units.get(text[-1:])
    number = float(text if factor is None else text[:-1]) * (factor or 1)
    if not 0 < number < float("inf"):
        raise ValueError(text)
    return number
