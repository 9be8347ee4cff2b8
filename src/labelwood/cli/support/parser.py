"""An argparse parser whose error messages are one line, and options that know whether they have an effect.

One rule holds for every command: the user hears of an option without effect. Where an option cannot matter,
because of other options, the data or the model, the command calls :meth:`Options.refuse` (an error) or
:meth:`Options.remark` (a line on stderr). What no command thought of is found at the end: an option that was given and
that nobody read.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Self

from labelwood.cli.support.safe_output import remark
from labelwood.errors import nearest

VECTOR_FORMATS = ("xmc", "svmlight", "npz", "lw")
_REQUIRED = "the following arguments are required: "
_NO_VALUE = "expected one argument"


class UsageError(Exception):
    """Wrong usage of the command line; the message is the line to print."""


class Options(argparse.Namespace):
    """The values of all options; it knows which were given, and which were read."""

    def __init__(
        self, values: Mapping[str, Any], *, prog: str, given: Mapping[str, str], read: set[str] | None = None
    ) -> None:
        """Hold values by destination; ``given`` has the flags that the command line contains, by destination."""
        self._prog, self._given = prog, given
        self._read: set[str] = set() if read is None else read
        super().__init__(**values)

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            self._read.add(name)
        return super().__getattribute__(name)

    def of(self, owner: str) -> dict[str, Any]:
        """The options whose destinations begin with ``owner``, by the rest of the destination."""
        return {name.removeprefix(owner): getattr(self, name) for name in vars(self) if name.startswith(owner)}

    def changed(self, **values: Any) -> Self:
        """A copy with other values; what is read of it counts as read here."""
        own = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return type(self)({**own, **values}, prog=self._prog, given=self._given, read=self._read)

    def has_given(self, flags: Iterable[str]) -> bool:
        """True if one of the flags was given."""
        return not set(flags).isdisjoint(self._given.values())

    def refuse(self, flags: Iterable[str], because: str) -> None:
        """Raise a :class:`UsageError` if one of the flags, or of the destinations, was given: it would do nothing."""
        for flag in self._given_of(flags):
            raise UsageError(f"{self._prog}: {flag} has no effect: {because}")

    def remark(self, flags: Iterable[str], because: str) -> None:
        """Print a remark for each of the flags that was given: it has no effect."""
        for flag in self._given_of(flags):
            remark(f"{self._prog}: {flag} has no effect: {because}")

    def remark_unread(self) -> None:
        """Print a remark for each flag that was given and that nobody read."""
        unread = [flag for dest, flag in self._given.items() if dest not in self._read]
        self.remark(unread, "nothing here depends on it")

    def _given_of(self, flags: Iterable[str]) -> Iterator[str]:
        wanted = set(flags)
        for dest, flag in self._given.items():
            if flag in wanted or dest in wanted:
                self._read.add(dest)  # a remark follows: it must not be told again
                yield flag


class Parser(argparse.ArgumentParser):
    """The parser of a command: no abbreviated flags, errors raised as :class:`UsageError`."""

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
        self.add_argument("-q", dest="quiet", action="store_true", help="hide progress and remarks")
        self.add_argument("-v", dest="loud", action="store_true", help="print the seconds of every phase")

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
        """Add a positional argument or a flag with one value; ``takes`` describes the value in words.

        ``convert`` turns the text into the value and raises ``ValueError`` if the text is not valid.
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
        """True if the parser has this flag."""
        return any(flag in action.option_strings for action in self._actions)

    def json_flag(self) -> None:
        """Add ``--json``, which every command has."""
        self.add_argument("--json", action="store_true", help="print JSON")

    def format_flag(self, flag: str, what: str, formats: Sequence[str] = VECTOR_FORMATS) -> None:
        """Add a flag for the format of a data file whose suffix does not tell it."""
        takes = f"one of {', '.join(formats)}"
        text = f"format of {what}: {takes} (default: by suffix)"
        self.value(flag, metavar="NAME", takes=takes, convert=one_of(formats), help=text)

    def parse_args(self, args: Sequence[str] | None = None, namespace: None = None) -> Options:  # type: ignore[override]
        """Parse the words; raise :class:`UsageError` if they are wrong."""
        try:
            options, unknown = self.parse_known_args(args)
        except argparse.ArgumentError as error:
            self._explain(error)
        if unknown:
            flags = [flag for action in self._actions for flag in action.option_strings]
            word = unknown[0].partition("=")[0]
            if word.startswith("-"):
                advice = nearest(word, flags) or f"; see {self.prog} --help"
                raise UsageError(f"{self.prog}: there is no flag {word}{advice}")
            raise UsageError(f"{self.prog}: unexpected argument {word!r}; see {self.prog} --help")
        for action in self._actions:  # argparse takes a second "--" for a positional, then drops it
            if action.nargs is None and not action.option_strings and getattr(options, action.dest) == []:
                self.error(f"{_REQUIRED}{action.metavar}")
        return Options(vars(options), prog=self.prog, given=self._given(args))

    def _given(self, args: Sequence[str] | None) -> dict[str, str]:
        """The flags that the words contain, by destination."""
        defaults = [action.default for action in self._actions]
        try:
            for action in self._actions:
                action.default = argparse.SUPPRESS
            found = vars(self.parse_known_args(args)[0])
        finally:
            for action, default in zip(self._actions, defaults, strict=True):
                action.default = default
        return {
            action.dest: next(
                (flag for flag in action.option_strings if flag.startswith("--")), *action.option_strings[:1]
            )
            for action in self._actions
            if action.option_strings and action.dest in found
        }

    def error(self, message: str) -> NoReturn:
        """Raise :class:`UsageError`, where argparse would exit."""
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
    """Help text with enough room for long flags."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=110)


def one_of(words: Container[str]) -> Callable[[str], str]:
    """A converter that accepts only the given words."""

    def convert(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return convert


def at_least(minimum: int) -> Callable[[str], int]:
    """A converter to integers that are at least ``minimum``."""

    def convert(text: str) -> int:
        number = int(text)
        if number < minimum:
            raise ValueError(text)
        return number

    return convert


def between(minimum: int, maximum: int) -> Callable[[str], int]:
    """A converter to integers in a range."""

    def convert(text: str) -> int:
        value = at_least(minimum)(text)
        if value > maximum:
            raise ValueError(text)
        return value

    return convert


def number(
    *, above: float = -math.inf, least: float = -math.inf, most: float = math.inf, below: float = math.inf
) -> Callable[[str], float]:
    """A converter to finite numbers in a range.

    >>> number(above=0, most=1)("0.5")
    0.5
    """

    def convert(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and above < value < below and least <= value <= most):
            raise ValueError(text)
        return value

    return convert


def distinct_counts(text: str) -> tuple[int, ...]:
    """Read a comma-separated list of positive integers; return them sorted, without repetitions.

    >>> distinct_counts("5,1,3")
    (1, 3, 5)
    """
    return tuple(sorted({at_least(1)(part) for part in text.split(",")}))


def two_positive(text: str) -> tuple[float, float]:
    """Read two numbers greater than 0, separated by a comma.

    >>> two_positive("0.5,0.4")
    (0.5, 0.4)
    """
    first, second = map(number(above=0), text.split(","))
    return first, second


def duration(text: str) -> float:
    """Read a time in seconds: a number, with or without one of the units s, m and h.

    >>> duration("10m"), duration("90")
    (600.0, 90.0)
    """
    factor = {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    return number(above=0)(text if factor is None else text[:-1]) * (factor or 1)
