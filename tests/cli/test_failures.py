"""Bad data, lost files, interruptions: one line, the right exit code, nothing half-written."""

from __future__ import annotations

import lzma
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from labelwood.cli.support.output import open_output

BROKEN = {
    "a token that is no number": ("2 5 3\n0 1:1\n1 2:x\n", ["line 3", "2:x"]),
    "a feature past the header": ("2 5 3\n0 1:1\n1 9:1\n", ["line 3", "9"]),
    "a label past the header": ("2 5 3\n0 1:1\n7 2:1\n", ["line 3", "7"]),
    "not a number": ("2 5 3\n0 1:nan\n1 2:1\n", ["line 2", "nan"]),
    "a negative id": ("2 5 3\n0 -1:1\n1 2:1\n", ["line 2", "-1"]),
    "a file that ends too early": ("3 5 3\n0 1:1\n1 2:1\n", ["3"]),
    "an empty file": ("", ["empty"]),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_data(labelwood, tmp_path, case):
    text, expected = BROKEN[case]
    file = tmp_path / "broken.txt"
    file.write_text(text)
    complaint = labelwood("train", file, "-o", tmp_path / "model").complaint(1)
    assert str(file) in complaint
    assert all(part in complaint for part in expected)
    assert os.listdir(tmp_path) == ["broken.txt"]


def test_binary_and_truncated_files(labelwood, data, tmp_path):
    binary = tmp_path / "binary.txt"
    binary.write_bytes(bytes(range(256)) * 8)
    assert str(binary) in labelwood("train", binary, "-o", tmp_path / "model").complaint(1)
    cut = tmp_path / "cut.txt.xz"
    cut.write_bytes(lzma.compress(data.read_bytes())[:-40])
    assert str(cut) in labelwood("train", cut, "-o", tmp_path / "model").complaint(1)
    assert not (tmp_path / "model").exists()


def test_missing_files(labelwood, model, tmp_path):
    nowhere = tmp_path / "nowhere.txt"
    for words in (("train", nowhere, "-o", tmp_path / "new"), ("predict", model, nowhere), ("eval", model, nowhere)):
        assert str(nowhere) in labelwood(*words).complaint(1)
    assert str(nowhere) in labelwood("convert", nowhere, tmp_path / "new.npz").complaint(1)
    for words in (("info", nowhere), ("predict", nowhere, nowhere)):
        assert "not a Labelwood model" in labelwood(*words).complaint(1)
    assert not list(tmp_path.glob("*new*"))


def test_a_model_never_replaces_what_is_no_model(labelwood, data, tmp_path):
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter1.tex").write_text("...")
    complaint = labelwood("train", data, "-o", precious).complaint(1)
    assert str(precious) in complaint
    assert os.listdir(precious) == ["chapter1.tex"]


def test_a_damaged_model_is_refused(labelwood, model, test_data, tmp_path):
    array = next(model.glob("*.npy"))
    array.write_bytes(array.read_bytes()[:-1])
    for words in (("info", model), ("predict", model, test_data), ("eval", model, test_data)):
        assert array.name in labelwood(*words).complaint(1)


def test_predictions_appear_whole_or_not_at_all(labelwood, model, test_data, tmp_path):
    target = tmp_path / "missing" / "out.txt"
    assert "missing" in labelwood("predict", model, test_data, "-o", target).complaint(1)
    kept = tmp_path / "kept.txt"
    kept.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        _write_half(kept)
    assert kept.read_text() == "old"
    assert not list(tmp_path.glob(".kept*"))


def _write_half(path):
    with open_output(path) as file:
        file.write("half of the new")
        raise KeyboardInterrupt


def test_interrupted_training_leaves_nothing(process, data, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    child = process("train", data, "-o", folder / "model", "--n-trees", 10_000_000, "--max-memory", "900TB")
    time.sleep(4)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    start = time.monotonic()
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, "", "labelwood: interrupted\n")
    assert time.monotonic() - start < 10
    assert os.listdir(folder) == []


def test_a_reader_that_goes_away_is_no_error(process, model, test_data):
    child = process("predict", model, test_data)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    err = child.stderr.read()
    child.stderr.close()
    assert (child.wait(timeout=60), err) == (141, "")


def test_the_installed_command(model, test_data):
    program = shutil.which("labelwood", path=os.path.dirname(sys.executable))
    if program is None:
        pytest.skip("labelwood is not installed as a command beside this Python")
    done = subprocess.run([program, "eval", model, test_data, "--json"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith('{"P@1": ')
    assert done.stderr == ""
