"""The user hears of an option without effect: every flag of every command, taken from the parsers.

Each flag is added to command lines on texts, on vectors, on a literal text, on standard input and so on. Either the
output or the files change, or the command says that the flag has no effect.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from easy_rows import write_data

from labelwood.cli import COMMANDS, main
from labelwood.cli.commands.tools import demo
from labelwood.cli.commands.tools.demo_corpus import source_files
from labelwood.cli.main import parser_of
from labelwood.cli.support.method_flags import flag_of
from labelwood.errors import LabelwoodError
from labelwood.methods import METHODS
from labelwood.params import declared
from labelwood.text import ENCODERS

TESTS = Path(__file__).parents[1]
STATE = TESTS / "serve" / "golden" / "state"
FOREIGN = TESTS / "importing" / "models" / "omikuji"
TEXTS = [
    ("Cats and dogs", "A cat, a dog and a hamster", "pets", "home"),
    ("The dog", "barks at the cat", "pets;noise;street", "home;street"),
    ("Income tax", "The court and the tax", "law", "office"),
    ("Tax court", "The judge of the tax court", "law;money", "office"),
] * 4
LINES = "\n".join(f"{labels} {features}" for labels, features in (("0", "0:1 1:1"), ("1,2", "3:1 4:1"), ("2", "6:1")))
TEXT_LINES = "my dog barks\nthe tax court\n"
PIPES = {"learn pipe": LINES, "predict pipe of vectors": LINES, "predict pipe of texts": TEXT_LINES}
TUNED = "--budget 0.2 --n-jobs 1"
SITUATIONS = {
    "train texts": "train docs.csv -o new",
    "train vectors": "train train.txt -o new",
    "train fastText": "train docs.ft -o new",
    "train lists": "train docs.jsonl -o new",
    "estimate texts": "estimate docs.csv",
    "estimate vectors": "estimate train.txt",
    "tune texts": f"tune docs.csv {TUNED}",
    "tune vectors": f"tune train.txt {TUNED}",
    "learn texts": "learn grows docs.csv",
    "learn vectors": "learn growing-vectors train.txt",
    "learn lists": "learn grows docs.jsonl",
    "learn nothing": "learn grows -o new",
    "learn pipe": "learn growing-vectors -",
    "calibrate texts": "calibrate texts docs.csv",
    "calibrate lists": "calibrate texts docs.jsonl",
    "calibrate vectors": "calibrate vectors test.txt",
    "shrink texts": "shrink texts docs.csv",
    "shrink vectors": "shrink vectors test.txt",
    "predict a text": "predict texts dog-barks",
    "predict texts": "predict texts docs.csv",
    "predict vectors": "predict vectors test.txt",
    "predict pipe of texts": "predict texts - --format lines",
    "predict pipe of vectors": "predict vectors -",
    "eval texts": "eval texts docs.csv --resamples 5",
    "eval lists": "eval texts docs.jsonl --resamples 5",
    "eval vectors": "eval vectors test.txt --resamples 5",
    "eval ids": "eval ids test.txt --resamples 5",
    "explain a text": "explain texts dog-barks",
    "explain texts": "explain texts docs.csv",
    "explain vectors": "explain vectors test.txt",
    "restore": "restore state -o new",
    "info": "info texts",
    "tree as JSON": "tree forest --json",
    "tree as a drawing": "tree forest --dot new.dot",
    "plot trees": "plot trees forest --data test.txt --json",
    "plot depth": "plot depth forest --json",
    "labels list": "labels grows list",
    "labels retire": "labels grows retire pets",
    "methods": "methods",
    "convert": "convert train.txt new.npz",
    "split texts": "split docs.csv a.csv b.csv",
    "split vectors": "split train.txt a.txt b.txt",
    "data": "data synth new.npz --rows 60 --labels 5 --features 20",
    "data of a shape": "data synth new.npz --shape amazon-670k --scale 0.006",
    "completion": "completion bash",
    "vocabulary": "vocabulary show concepts.tsv",
    "import": "import foreign -o new",
    "demo": "demo",
    "doctor": "doctor",
}
# A value for each flag that differs from its default; None if the flag takes none.
VALUES = {
    "--at": "2100-01-01", "--budget": "0.4", "--checkpoint": "new-parts", "--compare": "forest", "--csv": None,
    "--curve": "0.7", "--data": "train.txt", "--decide": None, "--depth": "1", "--dot": "more.dot", "--dtype": "int8",
    "--encoder": "hashing", "--executor": "threads", "--features": "30", "--from": "xmc", "--html": "more.html",
    "--inference-only": None, "--json": None, "--ks": "2", "--label-names": "other.lst", "--label-texts": "names.tsv",
    "--labels": "where", "--level": "0.5", "--map": "platt", "--max-memory": "2GB", "--method": "one-vs-rest",
    "--metric": "P@1", "--missed": "law", "--n-jobs": "1", "--objective": "macro", "--output": "other",
    "--per-label": None, "--plot": "new.svg", "--propensity": "0.5,0.4", "--resamples": "7", "--resume": None,
    "--row": "2", "--rows": "30", "--seed": "3", "--sep": " ", "--share": "0.3", "--stream": None, "--target": "none",
    "--target-size": "1GB", "--text": "title", "--threshold": "0.3", "--to": "npz", "--tree": "2", "--words": "1",
    "--roll-up": "0.5", "--columns": "uri,alt_fi", "--language": "fi", "--learn-names": None, "--only-changes": None,
    "--scale": "0.007", "--shape": "amazoncat-13k", "--test": None,
    "--vocabulary": "concepts.tsv", "--vectors": "docs.npy", "--random-state": "3", "-k": "1", "-q": None, "-v": None,
}  # fmt: skip
VALUES_HERE = {
    ("import", "--features"): "40", ("eval", "--per-label"): "new.csv",
    ("plot", "--output"): "new.svg", ("predict", "--output"): "new.txt",
    ("explain vectors", "--missed"): "name4", ("data", "--labels"): "7", ("eval texts", "--compare"): "grows",
    ("eval lists", "--compare"): "grows", ("import", "--from"): "omikuji", ("import", "--labels"): "foreign.lst",
    ("train fastText", "--format"): "fasttext", ("shrink texts", "--text"): "where",
    ("predict pipe of texts", "--format"): "lines",
}  # fmt: skip
# What is an error for another reason than that it has no effect, with words of the message.
REFUSED = {
    ("learn", "--inference-only"): "--inference-only needs -o", ("shrink", "--output"): "-o needs --threshold",
    ("predict a text", "--format"): "no such file", ("explain a text", "--format"): "no such file",
    ("data", "--shape"): "--shape sets the counts", "--roll-up": "needs a model whose vocabulary",
    "--language": "the model has no vocabulary", ("explain a text", "--row"): "--row takes a row",
    ("train vectors", "--label-texts"): "needs data of texts", "--vectors": "reads texts without vectors",
    ("predict a text", "--vectors"): "vectors for 1 texts", ("explain a text", "--vectors"): "vectors for 1 texts",
}  # fmt: skip
# Flags whose effect neither the output nor the files show here, each with the reason.
UNSEEN = {
    "-q": "there is no progress to hide", "-v": "it goes to stderr", "--n-jobs": "results never depend on threads",
    "--format": "it says what the suffix says", "--from": "likewise", "--to": "likewise",
    "--max-memory": "a limit that is not reached", "--executor": "threads are the default",
    "--at": "a time after the last record", "--budget": "the trials end before it",
    "--decide": "all labels may pass", "--propensity": "labels may be equally rare",
}  # fmt: skip
# They run until they are ended: tests/serve/test_flags.py and tests/review/test_server.py.
ELSEWHERE = {"serve", "review"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A directory with data files and models."""
    folder = tmp_path_factory.mktemp("world")
    write_data(folder / "train.txt")
    write_data(folder / "test.txt", n_rows=40, seed=1)
    (folder / "names.lst").write_text("".join(f"name{number}\n" for number in range(8)))
    (folder / "other.lst").write_text("".join(f"name{number}\n" for number in reversed(range(8))))
    (folder / "names.tsv").write_text("pets\tanimals at home\nwater\tsea and river\n")
    rows = "".join(f'"{title}","{body}",{tags},{where}\n' for title, body, tags, where in TEXTS)
    (folder / "concepts.tsv").write_text("<http://x.org/1>\tpets\n<http://x.org/2>\tlaw\n")
    (folder / "docs.csv").write_text("title,body,tags,where\n" + rows)
    np.save(folder / "docs.npy", np.eye(len(TEXTS), dtype=np.float32))
    (folder / "docs.ft").write_text("".join(f"__label__{tags.replace(';', '')} {body}\n" for _, body, tags, _ in TEXTS))
    shutil.copytree(STATE, folder / "state")
    shutil.copytree(FOREIGN, folder / "foreign")
    (folder / "foreign.lst").write_text("".join(f"foreign{number}\n" for number in range(90)))
    (folder / "docs.jsonl").write_text("".join(map(_record, TEXTS)))
    for words in (
        "train train.txt -o ids --n-jobs 1",
        "train train.txt -o vectors --label-names names.lst --n-jobs 1",
        "train train.txt -o forest --method ldsm-forest --n-trees 2 --n-jobs 1",
        "train docs.csv -o texts --n-jobs 1",
        "train docs.csv -o grows --method online-tree --encoder hashing --n-features 1000",
        "train train.txt -o growing-vectors --method online-tree",
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            assert main([*words.split(), "-q"]) == 0
    return folder


def _record(row):
    """A row as a line of JSON whose labels are lists."""
    title, body, tags, where = row
    record = {"title": title, "body": body, "tags": tags.split(";"), "where": where.split(";")}
    return json.dumps(record) + "\n"


class Run:
    """What a command line does in a copy of the world."""

    def __init__(self, world, words, situation, tmp_path, monkeypatch, capsys):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(world, copy)
        monkeypatch.chdir(copy)
        pipe = PIPES.get(situation, "").encode()
        monkeypatch.setattr(demo, "source_files", lambda: source_files()[:150])  # all of Python takes long
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pipe)))
        capsys.readouterr()
        self.code = main(words)
        self.out, self.err = capsys.readouterr()
        self.found = (
            _lasting(self.out),
            {str(path.relative_to(copy)): _content(path) for path in sorted(copy.rglob("*")) if path.is_file()},
        )


def _lasting(text):
    """A text without what changes from run to run: times and peaks of memory."""
    text = re.sub(r'"(seconds|estimate_seconds|peak_memory_bytes)": (\{[^}]*\}|[\d.e-]+)', "", text)
    text = re.sub(r'"peak_bytes": \{[^}]*\}|"bytes"|\d+\.\d+ s \([^)]*\)', "", text)
    text = re.sub(r'"free_memory": "[^"]*"|^free_memory .*$', "", text, flags=re.MULTILINE)
    return re.sub(r"^(time|estimated in|peak memory) .*$|^.* candidates? in .*$", "", text, flags=re.MULTILINE)


def _content(path):
    if path.name == "manifest.json":
        manifest = json.loads(path.read_text())
        manifest.pop("trained", None)
        return json.dumps(manifest, sort_keys=True)
    return path.read_bytes()


@cache
def own_flags(situation):
    """The flags of a command, without the parameters of methods and encoders."""
    words = SITUATIONS[situation].split()
    parameters = {
        flag for cls in (*METHODS.values(), *ENCODERS.values()) for name in declared(cls)
        for flag in (flag_of(name), f"--no-{flag_of(name)[2:]}", f"--encoder-{flag_of(name)[2:]}")
    }  # fmt: skip
    own = {"tree": "--tree", "demo": "--random-state"}
    kept = {"--n-jobs", "--threshold", "--seed", own.get(words[0], "--n-jobs")}
    parser = parser_of(words[0], words[1:])
    return [flag for flag in parser.flags() if flag not in {"-h", "--help", "-o", *(parameters - kept)}]


def looked_up(table, situation, flag):
    """The entry for a situation, for its command, or for every situation; None if there is none."""
    command = SITUATIONS[situation].split()[0]
    return table.get((situation, flag)) or table.get((command, flag)) or table.get(flag)


def value_of(situation, flag):
    if (found := looked_up(VALUES_HERE, situation, flag)) is not None:
        return found
    if flag == "--format":
        if "lists" in situation:
            return "jsonl"
        return "xmc" if "vectors" in situation or situation in ("eval ids", "plot trees", "plot depth") else "csv"
    assert flag in VALUES, (
        f"{flag} is new: give it a value in VALUES, and a line in UNSEEN if no output shows its effect"
    )
    return VALUES[flag]


CASES = [(situation, flag) for situation in SITUATIONS for flag in own_flags(situation)]


def test_every_command_is_tried():
    tried = {words.split()[0] for words in SITUATIONS.values()} | set(ELSEWHERE)
    assert tried == set(COMMANDS)


@pytest.fixture(scope="module")
def without_flag():
    return {}


@pytest.mark.parametrize(("situation", "flag"), CASES)
def test_a_flag_has_an_effect_or_is_told(situation, flag, world, without_flag, tmp_path, monkeypatch, capsys):
    base = SITUATIONS[situation].split()
    if flag in base:
        base = [word for place, word in enumerate(base) if flag not in (word, *base[max(0, place - 1) : place])]
        if flag in ("--json", "--dot", "--data"):
            pytest.skip("the situation is made by this flag")
    if situation not in without_flag:
        plain = Run(world, SITUATIONS[situation].split(), situation, tmp_path, monkeypatch, capsys)
        assert plain.code == 0, plain.err
        assert "has no effect" not in plain.err
        without_flag[situation] = plain.found
    value = value_of(situation, flag)
    run = Run(world, [*base, flag, *([] if value is None else [value])], situation, tmp_path, monkeypatch, capsys)
    if f"{flag} has no effect: " in run.err:
        assert flag not in ("-q", "-v"), run.err
        return
    if run.code != 0:
        assert looked_up(REFUSED, situation, flag) is not None, run.err
        assert looked_up(REFUSED, situation, flag) in run.err
        return
    assert "has no effect" not in run.err
    if flag not in UNSEEN:
        assert run.found != without_flag[situation], f"{flag} changed nothing, and nobody said so"


def is_allowed(parameter, value):
    try:
        parameter.check(value, "")
    except LabelwoodError:
        return False
    return True


def spoilers():
    """Parameters that need others, each with a value of another by which it has no effect."""
    for kind, classes in (("--method", METHODS), ("--encoder", ENCODERS)):
        for name, cls in classes.items():
            known = declared(cls)
            defaults = {one.name: one.default for one in known.values()}
            for parameter in known.values():
                needs = parameter.param.needs
                if needs is None:
                    continue
                found = [
                    (kind, name, parameter.name, other.name, value)
                    for other in known.values()
                    for value in (*other.choices, True, False, None, 0, "[]")
                    if other.name != parameter.name
                    and is_allowed(other, value)
                    and not needs.are_met({**defaults, other.name: value})
                ]
                assert found, f"{name}: nothing takes the effect of {parameter.name} away"
                yield found[0]


def as_flag(name, value):
    if isinstance(value, bool):
        return [flag_of(name) if value else f"--no-{flag_of(name)[2:]}"]
    return [flag_of(name), "none" if value is None else str(value)]


@pytest.mark.parametrize(("kind", "owner", "name", "other", "value"), list(spoilers()))
def test_a_parameter_that_another_makes_pointless_is_refused(labelwood, world, kind, owner, name, other, value):
    cls = (METHODS if kind == "--method" else ENCODERS)[owner]
    data = world / ("train.txt" if kind == "--method" else "docs.csv")
    words = [*as_flag(name, declared(cls)[name].default), *as_flag(other, value)]
    complaint = labelwood("train", data, "-o", world / "never", kind, owner, *words).complaint(2)
    assert f"{flag_of(name)} has no effect: it needs " in complaint
    assert not (world / "never").exists()


@pytest.mark.parametrize("method", [name for name, cls in METHODS.items() if not cls.divides_work])
def test_work_that_is_not_divided_takes_no_checkpoint(labelwood, world, method):
    words = ("train", world / "train.txt", "-o", world / "never", "--method", method)
    assert "a checkpoint has no effect" in labelwood(*words, "--checkpoint", world / "parts").complaint(1)
    assert "an executor has no effect" in labelwood(*words, "--executor", "ray").complaint(1)


def test_what_nobody_read_is_told(capsys):
    parser = parser_of("info", [])
    parser.add_argument("--unused", action="store_true")
    options = parser.parse_args(["texts", "--unused", "--json"])
    assert options.json
    capsys.readouterr()
    options.remark_unread()
    assert capsys.readouterr().err == "labelwood info: --unused has no effect: nothing here depends on it\n"
