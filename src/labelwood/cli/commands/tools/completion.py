"""Print a script that lets your shell complete commands, flags and values."""

from __future__ import annotations

from labelwood.cli.support.output import print_json
from labelwood.cli.support.parser import Options, Parser, one_of
from labelwood.methods import METHODS
from labelwood.text import ENCODERS

EXAMPLES = (
    'eval "$(labelwood completion bash)"   # in ~/.bashrc',
    'eval "$(labelwood completion zsh)"    # in ~/.zshrc',
    "labelwood completion fish > ~/.config/fish/completions/labelwood.fish",
)
_SHELLS = ("bash", "zsh", "fish")

_BASH = """_labelwood() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags=
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "@commands@" -- "$word"))
    return
  fi
  case $before in
@values@
  esac
  if [[ $word != -* ]]; then
    COMPREPLY=($(compgen -f -- "$word"))
    return
  fi
  case ${COMP_WORDS[1]} in
@flags@
  esac
  COMPREPLY=($(compgen -W "$flags" -- "$word"))
}
complete -o filenames -F _labelwood labelwood
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def add_arguments(parser: Parser, argv: list[str]) -> None:
    """Add the arguments."""
    takes = f"one of {', '.join(_SHELLS)}"
    parser.value("shell", metavar="SHELL", takes=takes, convert=one_of(_SHELLS))
    parser.json_flag()


def run(options: Options) -> int:
    """Print the completion script of a shell."""
    script = _fish() if options.shell == "fish" else (_ZSH if options.shell == "zsh" else "") + _bash()
    if options.json:
        print_json({"shell": options.shell, "script": script})
    else:
        print(script, end="")
    return 0


def _flags(command: str) -> list[str]:
    """Return every flag of a command, for any method and any encoder."""
    from labelwood.cli import parser_of  # noqa: PLC0415 - it imports the commands

    wordings: list[list[str]] = [[]]
    if command == "train":
        wordings += [["--method", name] for name in METHODS] + [["--encoder", name] for name in ENCODERS]
    found: dict[str, None] = {}
    for words in wordings:
        found |= dict.fromkeys(parser_of(command, words).flags())
    return sorted(found)


def _values() -> dict[str, list[str]]:
    return {"--method": [*METHODS, "auto"], "--encoder": list(ENCODERS)}


def _bash() -> str:
    from labelwood.cli import COMMANDS  # noqa: PLC0415 - as above

    values = [
        f'    {flag}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word")); return ;;'
        for flag, words in _values().items()
    ]
    flags = [f'    {command}) flags="{" ".join(_flags(command))}" ;;' for command in COMMANDS]
    script = _BASH.replace("@commands@", " ".join(COMMANDS))
    return script.replace("@values@", "\n".join(values)).replace("@flags@", "\n".join(flags))


def _fish() -> str:
    from labelwood.cli import COMMANDS  # noqa: PLC0415 - as above

    lines = [
        f"complete -c labelwood -n __fish_use_subcommand -f -a {command} -d {_quoted(summary)}"
        for command, summary in COMMANDS.items()
    ]
    for command in COMMANDS:
        for flag in _flags(command):
            kind = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            values = _values().get(flag)
            more = f" -x -a {_quoted(' '.join(values))}" if values else ""
            lines.append(f"complete -c labelwood -n '__fish_seen_subcommand_from {command}' {kind}{more}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
