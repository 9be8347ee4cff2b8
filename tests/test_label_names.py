"""What a label name may be: the same rule at every door, and old names that break it are escaped."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import online_model

from labelwood import LinearTree, OnlineTree, TextClassifier, load
from labelwood.cli import main
from labelwood.data import Dataset, load_label_texts, load_text, save
from labelwood.data import load as load_data
from labelwood.errors import LabelwoodError
from labelwood.label_names import MAX_NAME, LabelNames, name_problem, readable
from labelwood.methods.forest.label_neighbors import label_neighbors
from labelwood.packed.tree_shape import flat_tree
from labelwood.sparse import from_lists
from labelwood.storage import packed_strings
from labelwood.storage.model_directory import write_model
from labelwood.validation.label_texts import read_label_texts
from labelwood.vocabulary import load_vocabulary

REFUSED = {
    "lone surrogate": "a\ud800b",
    "escape sequence": "a\x1b[2Jb",
    "null": "a\x00b",
    "delete": "a\x7fb",
    "one byte control": "a\x9bb",
    "line break": "a\nb",
    "line separator": "a\u2028b",
    "too long": "x" * (MAX_NAME + 1),
}
ACCEPTED = [
    "tax law",
    "a\tb",
    "é",
    "e\u0301",
    "\u00a0x",
    "می\u200cخواهم",
    "👩\u200d🔬",
    "x" * MAX_NAME,
    "\\ud800",
    "😀",
    "日本",
]
X = np.eye(3, dtype=np.float32)


def file_of(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def read_csv(folder, name):
    load_text(file_of(folder, "a.csv", f'text,labels\none,good\ntwo,"{name}"\n'), sep=";")


def read_json_lines(folder, name):
    rows = [{"text": "one", "labels": ["good"]}, {"text": "two", "labels": [name]}]
    load_text(file_of(folder, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))


def read_parquet(folder, name):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    try:
        table = pa.table({"text": ["one", "two"], "labels": [["good"], [name]]})
    except UnicodeEncodeError:
        pytest.skip("Parquet cannot hold this name")
    pyarrow.parquet.write_table(table, folder / "a.parquet")
    load_text(folder / "a.parquet")


def read_fasttext(folder, name):
    if name.split() != [name]:
        pytest.skip("white space ends a label of this format")
    load_text(file_of(folder, "a.fasttext", f"__label__good one\n__label__{name} two\n"))


def read_annif(folder, name):
    if name.split() != [name]:
        pytest.skip("white space ends a label of this format")
    load_text(file_of(folder, "a.tsv", f"one\t<good>\ntwo\t<{name}>\n"), format="annif")


def read_lines_with_labels(folder, name):
    if "\n" in name:
        pytest.skip("a line break ends a label of this format")
    load_text(
        file_of(folder, "a.texts", "one\ntwo\n"), format="lines", sep=";",
        labels=str(file_of(folder, "labels.csv", f"good\n{name}\n")),
    )  # fmt: skip


def read_label_file(folder, name):
    if "\n" in name:
        pytest.skip("a line break ends a label of this format")
    file_of(folder, "labels.txt", f"good\n{name}\n")
    load_data(file_of(folder, "a.txt", "1 3 2\n0,1 0:1\n"))


def read_archive(folder, name):
    if "\n" in name:
        pytest.skip("a line break ends a label of this format")
    Y = from_lists([[0], [1]], 2)
    save(folder / "a.npz", Dataset(Y, Y, ("good", "other")))
    with np.load(folder / "a.npz") as archive:
        arrays = {**archive, "label_names": np.frombuffer(f"good\n{name}\n".encode("utf-8", "surrogatepass"), np.uint8)}
    np.savez(folder / "a.npz", **arrays)
    load_data(folder / "a.npz")


def read_directory(folder, name):
    if "\n" in name:
        pytest.skip("a line break ends a label of this format")
    Y = from_lists([[0], [1]], 2)
    save(folder / "a.lw", Dataset(Y, Y, ("good", "other")))
    file_of(folder / "a.lw", "labels.txt", f"good\n{name}\n")
    load_data(folder / "a.lw")


def save_as(suffix):
    def door(folder, name):
        Y = from_lists([[0], [1]], 2)
        save(folder / f"a{suffix}", Dataset(Y, Y, ("good", name)))

    return door


def fit(folder, name):
    LinearTree().fit(X, [["good"], [name], ["good"]])


def fit_with_names(folder, name):
    LinearTree().fit(X, np.array([[0, 1], [1, 0], [1, 1]]), label_names=["good", name])


def fit_with_tuples(folder, name):
    LinearTree().fit(X, [[("good", "x")], [("good", name)], [("good", "x")]])


def fit_texts(folder, name):
    TextClassifier(LinearTree()).fit(["one", "two", "three"], [["good"], [name], ["good"]])


def fit_frame(folder, name):
    pd = pytest.importorskip("pandas")
    LinearTree().fit(X, pd.DataFrame([[0, 1], [1, 0], [1, 1]], columns=["good", name]))


def partial_fit(folder, name):
    OnlineTree().partial_fit(X, [["good"], [name], ["good"]])


def partial_fit_with_names(folder, name):
    OnlineTree().partial_fit(X, np.array([[0, 1], [1, 0], [1, 1]]), label_names=["good", name])


def progressive(folder, name):
    OnlineTree().fit(X, [["good"], ["other"], ["good"]]).progressive(X, [["good"], [name], ["good"]])


def learn_tree(folder, name):
    tree = flat_tree(2)
    OnlineTree().learn_tree(tree, X, np.array([[0, 1], [1, 0], [1, 1]]), label_names=["good", name])


def rename(folder, name):
    OnlineTree().fit(X, [["good"], ["other"], ["good"]]).labels.rename("good", name)


def neighbors(folder, name):
    label_neighbors([["good"], [name], ["good", name]])


def rename_command(folder, name):
    online_model().save(folder / "model")
    if main(["labels", str(folder / "model"), "rename", "law", name]) != 0:
        raise LabelwoodError("a label name must be refused; see stderr")


def read_vocabulary(folder, name):
    if "\n" in name or "\t" in name:
        pytest.skip("a tab or a line break ends a label of this format")
    load_vocabulary(file_of(folder, "vocabulary.tsv", f"<http://x/1>\tgood\n<http://x/2>\t{name}\n"))


def read_texts_of_labels(folder, name):
    if "\n" in name or "\t" in name or name != name.strip():
        pytest.skip("a tab, a line break or a space at its end ends a label of this format")
    load_label_texts(file_of(folder, "label_texts.tsv", f"good\ta text\n{name}\ta text\n"))


def fit_texts_of_labels(folder, name):
    read_label_texts({"good": "a text", name: ["a text"]}, owner="Test")


def learn_texts_of_labels(folder, name):
    pytest.importorskip("pydantic")
    from labelwood.serve.messages import LearnRequest

    LearnRequest.model_validate({"label_texts": [{"label": name, "texts": ["a text"]}]})


def learn_request(folder, name):
    pytest.importorskip("pydantic")
    from labelwood.serve.messages import LearnRequest

    body = json.dumps({"examples": [{"text": "one", "labels": ["good", name]}]})
    LearnRequest.model_validate_json(body)
    LearnRequest.model_validate(json.loads(body))


def rename_request(folder, name):
    pytest.importorskip("pydantic")
    from labelwood.serve.messages import LabelChange

    LabelChange.model_validate_json(json.dumps({"action": "rename", "label": "good", "to": name}))


DOORS = [
    read_csv, read_json_lines, read_parquet, read_fasttext, read_annif, read_lines_with_labels, read_label_file,
    read_archive, read_directory, save_as(".txt"), save_as(".npz"), save_as(".lw"), fit, fit_with_names,
    fit_with_tuples, fit_texts, fit_frame, partial_fit, partial_fit_with_names, progressive, learn_tree, rename,
    neighbors, rename_command, read_vocabulary, learn_request, rename_request,
    read_texts_of_labels, fit_texts_of_labels, learn_texts_of_labels,
]  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__qualname__)
def test_every_door_refuses_the_same_names(door, kind, tmp_path):
    with pytest.raises(
        ValueError, match=r"label name|preferred name|UTF-8|hex escape"
    ):  # LabelwoodError, or pydantic's error
        door(tmp_path, REFUSED[kind])


@pytest.mark.parametrize("name", ACCEPTED, ids=ascii)
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__qualname__)
def test_every_door_accepts_the_same_names(door, name, tmp_path):
    door(tmp_path, name)


def test_names_are_kept_as_they_are(tmp_path):
    """Two spellings of one word in Unicode are two names: a name comes back as it was given."""
    model = LinearTree().fit(X, [["é"], ["e\u0301"], ["é"]])
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == ["e\u0301", "é"]


def test_the_file_and_the_row_are_named(tmp_path):
    with pytest.raises(LabelwoodError, match=r"a.csv, row 2: a label name must not contain control .* got 'a\\x00b'"):
        read_csv(tmp_path, "a\x00b")
    with pytest.raises(LabelwoodError, match=r"labels.txt, line 2: a label name must have 1 to 1000 characters; got 0"):
        read_label_file(tmp_path, "")


@given(st.text(st.characters(codec=None), min_size=1, max_size=20))
def test_readable_names_pass_and_good_names_stay(name):
    assert name_problem(readable(name)) is None
    assert readable(readable(name)) == readable(name)
    if name_problem(name) is None:
        assert readable(name) == name


def old_model(folder, names):
    """A model that an earlier version saved, with names that are refused now."""
    model = OnlineTree(random_state=0).fit(np.eye(len(names)), [[f"label {i}"] for i in range(len(names))])
    manifest, arrays = model.to_saved()
    utf8, offsets = packed_strings.pack(names)
    write_model(folder, manifest, {**arrays, "label_names.utf8": utf8, "label_names.offsets": offsets})
    return folder


def test_old_models_load_with_escaped_names(tmp_path):
    names = ["a\ud800b", "\x1b[2J", "good", "a\\ud800b", "a\x9bb", "x" * 3000, "\u2028"]
    model = load(old_model(tmp_path / "model", names))
    expected = ["a\\ud800b_", "\\x1b[2J", "good", "a\\ud800b", "a\\x9bb", "x" * 3000, "\\u2028"]
    assert model.classes_.tolist() == expected
    assert model.predict_topk(np.eye(7, dtype=np.float32), k=1)[0][:, 0].tolist() == expected
    model.save(tmp_path / "again")
    assert load(tmp_path / "again").classes_.tolist() == expected


def test_old_mixed_names_are_escaped():
    facts, arrays = LabelNames.of([("a\x00", 1), 5, "b\udfff"]).state()
    assert LabelNames.restore(facts, arrays).array.tolist() == [("a\\x00", 1), 5, "b\\udfff"]


@pytest.mark.parametrize(
    "words",
    [["predict", "-k", "3"], ["predict", "-k", "3", "--json"], ["labels", "list"], ["labels", "list", "--json"],
     ["tree", "--json"], ["explain"], ["explain", "--json"], ["info"]],
    ids=" ".join,
)  # fmt: skip
def test_every_command_prints_an_old_model(tmp_path, capfd, words):
    model = old_model(tmp_path / "model", ["a\ud800b", "\x1b[2J", "good"])
    rows = tmp_path / "rows.txt"
    rows.write_text(" 0:1\n")
    command, *more = words
    data = [str(rows)] if command in ("predict", "explain") else []
    assert main([command, str(model), *([more.pop(0)] if command == "labels" else []), *data, *more]) == 0
    said = capfd.readouterr()
    assert "\x1b" not in said.out + said.err
    if command != "info":
        assert "ud800b" in said.out


def test_a_terminal_gets_no_control_characters(tmp_path):
    """Names may hold marks that turn the direction of writing, words of a text anything: a terminal gets escapes."""
    model = TextClassifier(LinearTree(n_jobs=1)).fit(
        ["one two", "three four", "one three"], [["a\u202eb"], ["other"], ["a\u202eb"]]
    )
    model.save(tmp_path / "model")
    program = "import sys; from labelwood.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "predict", str(tmp_path / "model"), "one two", "-k", "1"]
    main_end, terminal = pty.openpty()
    subprocess.run(command, stdout=terminal, check=True)
    os.close(terminal)
    assert re.match(rb"a\\u202eb:", os.read(main_end, 1000))
    os.close(main_end)
    piped = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert piped.stdout.decode().startswith("a\u202eb:")


def test_a_terminal_of_another_encoding(tmp_path):
    LinearTree(n_jobs=1).fit(X, [["日本"], ["b"], ["日本"]]).save(tmp_path / "model")
    (tmp_path / "rows.txt").write_text(" 0:1\n")
    program = "import sys; from labelwood.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "predict", str(tmp_path / "model"), str(tmp_path / "rows.txt"), "-k", "1"]
    said = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, check=False)
    assert (said.returncode, said.stdout[:12], said.stderr) == (0, b"\\u65e5\\u672c", b"")
