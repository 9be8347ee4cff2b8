"""Wrong usage is one line that names the flag and what it takes, and exit code 2."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from labelwood import __version__, load
from labelwood.cli import COMMANDS
from labelwood.cli.main import parser_of
from labelwood.cli.support.method_flags import in_flags
from labelwood.methods import METHODS
from labelwood.params import declared

WRONG = {
    "": "a command is needed, one of train, tune, estimate, learn",
    "tarin": "methods, convert, split, data, vocabulary, completion, demo, doctor; got 'tarin'; did you mean train?",
    "train": "DATA is needed: it takes a data file; -o/--output is needed: it takes the directory",
    "train data.txt": "-o/--output is needed: it takes the directory for the model",
    "train data.txt -o": "-o/--output takes the directory for the model; got nothing",
    "train data.txt -o m --n-trees": "--n-trees takes an integer, at least 1; got nothing",
    "train data.txt -o m --n-trees three": "--n-trees takes an integer, at least 1; got 'three'",
    "train data.txt -o m --n-trees=0": "--n-trees takes an integer, at least 1; got '0'",
    "train data.txt -o m --n-trees 1.5": "--n-trees takes an integer, at least 1; got '1.5'",
    "train data.txt -o m --n-tres 3": "there is no flag --n-tres; did you mean --n-trees?",
    "train data.txt -o m --method foo": "--method takes one of linear-tree, one-vs-rest",
    "train data.txt -o m --verbose=3": "--verbose/--no-verbose takes no value",
    "train data.txt -o m more.txt": "unexpected argument 'more.txt'",
    "split data.txt a.txt": "HELD_OUT is needed: it takes the file for the held-out rows",
    "train data.txt -o m --format xls": "got 'xls'",
    "predict m": "DATA is needed",
    "predict m data.txt -k 0": "-k takes an integer, at least 1; got '0'",
    "predict m data.txt --n-jobs 0": "--n-jobs takes an integer, at least 1, or -1 for all cores; got '0'",
    "eval m data.txt --ks 1,0": "--ks takes integers, at least 1, separated by commas; got '1,0'",
    "eval m data.txt --propensity 1": "--propensity takes two numbers, greater than 0, separated by a comma",
    "info": "MODEL is needed",
    "info m --verbose": "there is no flag --verbose",
    "serve m --port 99999": "--port takes an integer from 0 to 65535; got '99999'",
    "serve m --log-level loud": "--log-level takes one of debug, info, warning, error; got 'loud'",
    "convert data.txt": "OUT is needed",
    "methods all": "unexpected argument 'all'",
    "demo --random-state -1": "--random-state takes an integer, at least 0; got '-1'",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_usage(labelwood, line):
    complaint = labelwood(*line.split()).complaint(2)
    prog = " ".join(["labelwood", *(word for word in line.split()[:1] if word in COMMANDS)])
    assert complaint.startswith(prog + ": ")
    assert WRONG[line] in complaint


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("a.dat: pass format='xmc' (or npz)", "a.dat: pass --format xmc (or npz)"),
        ("what fits: weight_threshold=0.1 takes 5 MB", "what fits: --weight-threshold 0.1 takes 5 MB"),
        ("lower max_leaf, or n_trees must be None", "lower --max-leaf, or --n-trees must be none"),
        ("``k`` is what other_thing takes", "k is what other_thing takes"),
        ("my_data/max_leaf.csv: line 3, C=not_a_flag_value", "my_data/max_leaf.csv: line 3, --C not_a_flag_value"),
    ],
)
def test_messages_of_the_library_name_flags(message, shown):
    assert in_flags(message, parser_of("train", ["train"])) == shown


def test_a_message_of_the_library_reaches_the_terminal_in_flags(labelwood, tmp_path):
    strange = tmp_path / "rows.dat"
    strange.write_text("1 1 1\n0 0:1\n")
    complaint = labelwood("train", strange, "-o", tmp_path / "m").complaint(1)
    assert "pass --format xmc" in complaint
    assert "format=" not in complaint


def test_no_help_speaks_python(labelwood):
    for command in COMMANDS:
        text = labelwood(command, "--help").out
        assert not re.search(r"``|\btuple\b|\bNone\b|\bTrue\b|\de\+\d", text), command


def test_a_pair_is_written_with_a_comma(labelwood, tmp_path):
    docs = tmp_path / "docs.csv"
    docs.write_text("text,tags\na cat sat,pets\nthe tax law,law\n")
    assert labelwood("train", docs, "-o", tmp_path / "m", "--ngram-range", "1,2").code == 0
    assert load(tmp_path / "m").encoder_.ngram_range == (1, 2)
    complaint = labelwood("train", docs, "-o", tmp_path / "m", "--ngram-range", "one").complaint(2)
    assert "--ngram-range takes a pair of integers; got 'one'" in complaint


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_is_a_flag(labelwood, method):
    shown = labelwood("train", "--method", method, "--help")
    assert (shown.code, shown.err) == (0, "")
    text = " ".join(shown.out.split())
    for name, parameter in declared(METHODS[method]).items():
        assert f" --{name.replace('_', '-')}" in text
        assert " ".join(parameter.param.help.replace("None", "none").split()) in text


@pytest.mark.parametrize("method", METHODS)
def test_every_numeric_bound_is_kept_by_its_flag(labelwood, method):
    checked = 0
    for name, parameter in declared(METHODS[method]).items():
        if parameter.kinds in ((int,), (float,)) and parameter.param.ge is not None:
            flag, value = f"--{name.replace('_', '-')}", f"{parameter.param.ge - 1:g}"
            complaint = labelwood("train", "data.txt", "-o", "m", "--method", method, flag, value).complaint(2)
            assert f"{flag} takes " in complaint
            assert f"got {value!r}" in complaint
            checked += 1
    assert checked


def test_a_rule_that_only_fit_knows_is_still_wrong_usage(labelwood, data, tmp_path):
    complaint = labelwood("train", data, "-o", tmp_path / "m", "--n-jobs", 0).complaint(2)
    assert complaint.startswith("labelwood train: --n-jobs must not be 0")
    assert not (tmp_path / "m").exists()


def test_parameters_reach_the_model(labelwood, data, tmp_path):
    words = ("--n-trees", 2, "--random-state", "none", "--n-jobs=1", "--no-verbose")
    assert labelwood("train", data, "-o", tmp_path / "m", *words).code == 0
    parameters = labelwood("info", tmp_path / "m", "--json").json["parameters"]
    given = {"n_trees": 2, "random_state": None, "n_jobs": 1, "verbose": False}
    assert {name: parameters[name] for name in given} == given


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_in_an_example(labelwood, command):
    shown = labelwood(command, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert f"usage: labelwood {command}" in shown.out
    assert f"\n  labelwood {command}" in shown.out
    assert "--json" in shown.out


def test_overview_and_version(labelwood):
    overview = labelwood("--help")
    assert all(f"  {name}" in overview.out for name in COMMANDS)
    assert labelwood("--version").out == f"labelwood {__version__}\n"


def test_the_overview_imports_nothing_slow():
    program = "import sys; from labelwood.cli import main; main(['--help']); sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
