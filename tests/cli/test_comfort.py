"""What makes the command pleasant: progress on terminals, quiet and loud, completion, examples in every help."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest

from labelwood import data as labelwood_data
from labelwood.progress import SHOWN, Bar, Lines, loading, watched


def test_loud_tells_the_phases(labelwood, data, tmp_path):
    loud = labelwood("train", data, "-o", tmp_path / "m", "-v")
    assert loud.code == 0
    assert "train: 0." in loud.err
    assert "train: 0." not in labelwood("train", data, "-o", tmp_path / "m").err


def test_loud_does_not_list_work_units(labelwood, data, tmp_path):
    loud = labelwood("train", data, "-o", tmp_path / "m", "-v", "--n-trees", 8, "--checkpoint", tmp_path / "units")
    assert "train: 0." in loud.err
    assert "unit" not in loud.err
    assert len(loud.err.splitlines()) < 12


def test_off_a_terminal_a_minute_makes_a_line(capsys, monkeypatch):
    now = iter([0.0, 30.0, 61.0, 90.0, 122.0])
    monkeypatch.setattr("labelwood.progress.time.monotonic", lambda: next(now))
    lines = Lines("train", 1000)
    for done in (100, 250, 300, 500):
        lines(done)
    assert capsys.readouterr().err.splitlines() == [
        "train: 25% after 61 s, about 183 s left",
        "train: 50% after 122 s, about 122 s left",
    ]


def test_a_batch_job_sees_lines_unless_quiet(tmp_path):
    """A real command whose stderr is a pipe; a line is due at once, so that the test need not wait a minute."""
    docs = tmp_path / "docs.csv"
    docs.write_text("text,tags\n" + "".join(f"word{i % 50} text,tag{i % 9}\n" for i in range(20_000)))
    program = (
        "import sys, labelwood.progress as p; p._LINE_SECONDS = 0; "
        "from labelwood.cli import main; sys.exit(main(sys.argv[1:]))"
    )

    def stderr(*words):
        command = [sys.executable, "-c", program, "train", str(docs), "-o", str(tmp_path / "m"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr

    assert re.search(r"^read table: \d+% after \d s", stderr(), re.MULTILINE)
    assert stderr("-q") == ""


def test_quiet_makes_no_remarks(labelwood, data, tmp_path):
    words = ("train", data, "-o", tmp_path / "m", "--method", "auto")
    assert "one-vs-rest" in labelwood(*words).err
    assert labelwood(*words, "-q").err == ""


def test_bars_are_drawn_on_terminals_only_and_not_when_quiet(tmp_path):
    """A long load on a terminal, as people see it."""
    docs = tmp_path / "docs.csv"
    program = (
        "import sys, labelwood.progress as p; p._SHOW_AFTER_SECONDS = p._REDRAW_SECONDS = 0; "
        "from labelwood.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    docs.write_text("text,tags\n" + "".join(f"word{i % 50} text,tag{i % 9}\n" for i in range(20_000)))

    def seen(*more):
        leader, follower = pty.openpty()
        words = ["train", str(docs), "-o", str(tmp_path / "model"), *more]
        done = subprocess.run(
            [sys.executable, "-c", program, *words], stderr=follower, stdout=subprocess.PIPE, check=True
        )
        os.close(follower)
        drawn = b""
        try:
            while part := os.read(leader, 1 << 16):
                drawn += part
        except OSError:  # the end of a terminal
            pass
        os.close(leader)
        assert b"linear-tree" in done.stdout
        return drawn.decode()

    drawn = seen()
    assert "read table" in drawn
    assert "s left" in drawn
    assert seen("-q") == ""


def test_loading_is_silent_unless_asked_for(capsys, data):
    labelwood_data.load(data)
    assert not SHOWN.loading
    with loading("read", 10) as progress:
        assert progress is None
    assert list(watched(range(5), "count", 5)) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().err == ""


def test_a_bar_tells_the_time_left(capsys, monkeypatch):
    now = iter([0.0, 10.0])
    monkeypatch.setattr("labelwood.progress.time.monotonic", lambda: next(now))
    Bar("load", 100)(25)
    assert " 25%   10.0 s    30 s left" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["labelwood", "tr"], {"train", "tree"}),
        (["labelwood", "train", "--n-tr"], {"--n-trees"}),
        (["labelwood", "train", "--centroid"], {"--centroid-rows", "--centroid-share", "--centroid-size"}),
        (["labelwood", "train", "--method", "craft"], {"craft-forest"}),
        (["labelwood", "eval", "--comp"], {"--compare"}),
    ],
)
def test_bash_completes(labelwood, words, expected):
    script = labelwood("completion", "bash").out
    ask = (
        f"{script}\nCOMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _labelwood; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected


def test_other_shells(labelwood):
    assert labelwood("completion", "zsh").out.startswith("autoload -U +X bashcompinit")
    fish = labelwood("completion", "fish").out
    assert "complete -c labelwood -n '__fish_seen_subcommand_from eval' -l compare" in fish
    assert "SHELL takes one of bash, zsh, fish; got 'cmd'" in labelwood("completion", "cmd").complaint(2)


def test_json_is_one_line_whatever_is_remarked(labelwood, data):
    found = labelwood("tune", data, "--budget", "1s", "--json", "--n-jobs", 1)
    assert found.err == ""
    assert json.loads(found.out)["trials"]
