"""What fuzzing and faults have found, each as the smallest case that shows it; see docs/develop/testing.md."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import labelwood
from labelwood import METHODS, Blend, CraftForest, FormatError, LabelwoodError, LinearTree, OnlineTree
from labelwood.cli import main
from labelwood.data import load, load_text
from labelwood.packed.tree_shape import hierarchy_tree

X = np.eye(6, dtype=np.float32)
Y = [["a"], ["b"], ["a", "c"], ["d"], ["e", "b"], ["f"]]


def forge(folder: Path, change=lambda manifest: None, **arrays: np.ndarray) -> None:
    """Change a saved model as an attacker would: with matching checksums and sizes."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        data = (folder / f"{name}.npy").read_bytes()
        manifest["files"][name] = {
            "dtype": array.dtype.str, "shape": list(array.shape), "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }  # fmt: skip
    change(manifest)
    plain = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    path.write_text(json.dumps({**manifest, "sha256": hashlib.sha256(plain).hexdigest()}))


def array_of(folder: Path, name: str) -> np.ndarray:
    return np.load(folder / f"{name}.npy")


def refused(folder: Path, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        labelwood.load(folder)
    assert "\n" not in str(caught.value)


@pytest.fixture
def tree(tmp_path):
    LinearTree(n_jobs=1).fit(X, Y).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def online(tmp_path):
    OnlineTree(n_jobs=1).fit(X, Y).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999"])
def test_numbers_that_json_does_not_have(tree, number):
    path = tree / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"n_features": 6', b'"n_features": ' + number))
    refused(tree, "damaged")


def test_an_array_header_is_not_run_as_python(tree):
    path = tree / "tree0.bias.npy"
    good = path.read_bytes()
    for old, new in (
        (b"'shape': (", b"'shape': [("),
        (b"{'descr'", b"((((((("),
        (b", }", b" (("),
        (b"False", b"0or 1"),
    ):
        path.write_bytes(good.replace(old, new))
        forge(tree, lambda m: m["files"]["tree0.bias"].update(bytes=path.stat().st_size,
              sha256=hashlib.sha256(path.read_bytes()).hexdigest()))  # fmt: skip
        refused(tree, "not an array file")


def test_names_too_long_for_a_file(tree):
    forge(tree, lambda m: m["files"].update({"x" * 300: m["files"]["tree0.bias"]}))
    refused(tree, "must be a plain file")


def test_a_socket_in_place_of_a_file(tree):
    (tree / "tree0.bias.npy").unlink()
    home = Path.cwd()
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(tree)  # the path of a socket must be short
        try:
            listener.bind("tree0.bias.npy")
        finally:
            os.chdir(home)
        refused(tree, "must be a plain file")


@pytest.mark.parametrize("name", ["features", "weights", "child", "row_start", "bias", "weight_ptr", "feature_ptr"])
def test_arrays_of_two_dimensions(tree, name):
    forge(tree, **{f"tree0.{name}": array_of(tree, f"tree0.{name}")[None, :]})
    refused(tree, ":")


def test_rerank_means_of_two_dimensions(tmp_path):
    CraftForest(n_jobs=1, n_trees=2, rerank=True).fit(X, Y).save(tmp_path / "model")
    name = next(path.stem for path in (tmp_path / "model").glob("*.indices.npy"))
    forge(tmp_path / "model", **{name: array_of(tmp_path / "model", name)[None, :]})
    refused(tmp_path / "model", "one-dimensional")


@pytest.mark.parametrize("name", ["rows", "feature_entries", "label_entries"])
@pytest.mark.parametrize("value", [None, -1, 2**63, "3"])
def test_wrong_counts_in_the_training_facts(online, name, value):
    forge(online, lambda m: m["trained"].pop(name) if value is None else m["trained"].update({name: value}))
    refused(online, name)


@pytest.mark.parametrize("value", ["ab", [], 3, {"rows": 1}])
def test_training_facts_that_are_no_object(online, value):
    forge(online, lambda m: m.update(trained=value))
    refused(online, "trained must be an object")


@pytest.mark.parametrize("name", ["support", "first_seen", "last_seen"])
def test_counts_that_would_overflow(online, name):
    """After 2**63 - 1 the next example would make the count negative."""
    forge(online, **{name: np.full_like(array_of(online, name), 2**63 - 1)})
    refused(online, f"{name} must be counts")


def test_label_counts_that_would_overflow(online):
    forge(online, label_counts=np.full(6, 2**63 - 1))
    refused(online, "label_counts")


@pytest.mark.parametrize(("name", "value"), [("seed", 2**64), ("seen", 2**64), ("updates", -1), ("cursor", 10**30)])
def test_counters_beyond_their_type(online, name, value):
    forge(online, lambda m: m["facts"].update({name: value}))
    refused(online, ":")


def test_negative_sums_of_squares(online):
    """Their square roots would make weights NaN in the next update."""
    sums = array_of(online, "sums")
    sums[0] = -3
    forge(online, sums=sums)
    refused(online, "sums must not be negative")


@pytest.mark.parametrize("value", [3e38, -3e38, np.nan, np.inf])
@pytest.mark.parametrize(
    ("method", "name"), [("linear-tree", "tree0.bias"), ("online-tree", "weights"), ("craft-forest", "bias")]
)
def test_weights_whose_sums_are_infinite(tmp_path, method, name, value):
    METHODS[method](n_jobs=1).fit(X, Y).save(tmp_path / "model")
    weights = array_of(tmp_path / "model", name).copy()
    weights[-1] = value
    forge(tmp_path / "model", **{name: weights})
    refused(tmp_path / "model", "finite")


@pytest.mark.parametrize("value", [[1, [2]], "ab", {"a": 1}, [[]], None])
def test_wrong_weights_of_a_blend(tmp_path, value):
    Blend(["linear-tree", "one-vs-rest"], n_jobs=1).fit(X, Y).save(tmp_path / "model")
    forge(tmp_path / "model", lambda m: m["facts"].update(weights=value))
    refused(tmp_path / "model", ":")


@pytest.mark.parametrize(
    ("name", "value"), [("score_power", 9), ("beam_width", 2**31), ("arity", 10**30), ("C", 1e300), ("n_trees", 2**63)]
)
def test_parameters_beyond_their_type(name, value):
    """The check must come before the kernels, which would raise a long TypeError or compute with infinity."""
    with pytest.raises(LabelwoodError, match=f"LinearTree: {name} must be at most"):
        LinearTree(n_jobs=1, **{name: value}).fit(X, Y)


@pytest.mark.parametrize("method", list(METHODS))
def test_rows_too_short_to_scale(method):
    """For the smallest rows 1 / |x| is not a float32; a model must neither predict nor learn NaN."""
    model = METHODS[method](n_jobs=1).fit(X, Y)
    tiny = np.full((2, 6), 1e-45, np.float32)
    assert np.isfinite(model.predict_topk(tiny, 3)[1]).all()
    if hasattr(model, "partial_fit"):
        model.partial_fit(tiny, [["a"], ["b"]])
        assert np.isfinite(model.predict_topk(X, 3)[1]).all()


def test_rows_too_large_to_learn():
    model = OnlineTree(n_jobs=1, normalize=False).fit(X, Y)
    for call in (lambda: model.predict_topk(X * 3e38, 3), lambda: model.partial_fit(X * 3e38, Y)):
        with pytest.raises(LabelwoodError, match="values of X must be at most 1e\\+15"):
            call()
    assert np.isfinite(model.predict_topk(X, 3)[1]).all()
    assert np.isfinite(OnlineTree(n_jobs=1).fit(X * 3e38, Y).predict_topk(X * 3e38, 3)[1]).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1, ", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"3", "must be nested lists"),
        (b"null", "must be nested lists"),
        (b"[99999999999999999999, -1]", "ids of other nodes"),
    ],
)
def test_malformed_hierarchy_files(tmp_path, content, message):
    (tmp_path / "tree.json").write_bytes(content)
    with pytest.raises(LabelwoodError, match=message) as caught:
        hierarchy_tree(str(tmp_path / "tree.json"), ["a", "b", "c"])
    assert "\n" not in str(caught.value)


def test_a_hierarchy_file_with_a_byte_order_mark(tmp_path):
    (tmp_path / "tree.json").write_bytes(b'\xef\xbb\xbf[["a", "b"], ["c"]]')
    assert hierarchy_tree(str(tmp_path / "tree.json"), ["a", "b", "c"]).n_labels == 3


def test_labels_without_a_name(tmp_path):
    (tmp_path / "a.ft").write_text("__label__ __label__x some text\n")
    assert load_text(tmp_path / "a.ft").labels == [["x"]]
    (tmp_path / "b.tsv").write_text("text\t<> <x>\n")
    assert load_text(tmp_path / "b.tsv", format="annif").labels == [["x"]]


def test_a_damaged_parquet_file_gives_a_message_of_one_line(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"text": ["a"], "labels": ["b"]}), tmp_path / "a.parquet")
    good = (tmp_path / "a.parquet").read_bytes()
    told = []
    for position in range(len(good) - 200, len(good)):
        (tmp_path / "a.parquet").write_bytes(good[:position] + bytes([good[position] ^ 0x55]) + good[position + 1 :])
        try:
            load_text(tmp_path / "a.parquet")
        except LabelwoodError as error:
            told.append(str(error))
    assert told
    assert not any("\n" in line for line in told)


@pytest.mark.timeout(20)
def test_label_ids_of_a_file_that_claims_billions(tmp_path):
    """No names of two billion labels may be made: the claim is out of proportion to the file."""
    (tmp_path / "texts").write_text("a text\n")
    (tmp_path / "y.txt").write_text("1 2 2147483647\n0,2147483646 1:1\n")
    with pytest.raises(FormatError, match=r"2147483647 labels need at least .* is in proportion to the file"):
        load_text(tmp_path / "texts", format="lines", labels=str(tmp_path / "y.txt"))


@pytest.mark.parametrize("method", list(METHODS))
def test_values_at_the_edges_of_float32(method):
    random = np.random.default_rng(0)
    rows = sp.csr_array(np.where(random.random((20, 6)) < 0.5, 3e38, -3e38).astype(np.float32))
    model = METHODS[method](n_jobs=1).fit(rows, [[str(number % 3)] for number in range(20)])
    assert np.isfinite(model.predict_topk(rows, 3)[1]).all()


def test_an_empty_file_of_rows(tmp_path):
    (tmp_path / "rows.txt").write_bytes(b"")
    with pytest.raises(FormatError, match="empty"):
        load(tmp_path / "rows.txt")


def test_a_second_double_dash_is_not_an_action(online, capsys):
    assert main(["labels", str(online), "--", "--"]) == 2
    assert "ACTION is needed" in capsys.readouterr().err


def test_offsets_whose_differences_wrap_around(tmp_path):
    encoder = labelwood.TfidfEncoder(n_jobs=1)
    labelwood.TextClassifier(OnlineTree(n_jobs=1), encoder).fit(["cats and dogs", "tax law"], [["a"], ["b"]]).save(
        tmp_path / "model"
    )
    name = next(path.stem for path in (tmp_path / "model").glob("*offsets.npy") if "encoder" in path.stem)
    offsets = array_of(tmp_path / "model", name)
    offsets[1:3] = np.iinfo(np.int64).max, -(2**31)
    forge(tmp_path / "model", **{name: offsets})
    refused(tmp_path / "model", "vocabulary of the encoder is damaged")


@pytest.mark.parametrize("name", ["feature_ptr", "row_ptr"])
def test_pointers_whose_differences_wrap_around(online, name):
    pointer = array_of(online, name)
    pointer[1:3] = np.iinfo(np.int64).max, -(2**31)
    forge(online, **{name: pointer})
    refused(online, name)


def test_terms_longer_than_any_text():
    with pytest.raises(LabelwoodError, match="ngram_range must be two integers"):
        labelwood.HashingEncoder(ngram_range=(1, 10**30)).encode(["cats"])


def test_more_threads_than_memory_has_room_for():
    model = CraftForest(n_jobs=2**31 - 2, n_trees=2, rerank=True).fit(X, Y)
    labels, _ = model.predict_topk(X, k=1)
    assert labels.shape == (6, 1)


def test_the_explanation_of_a_frozen_tree_without_leaves(tmp_path):
    model = OnlineTree(n_jobs=1).fit(X, Y)
    for label in "abcdef":
        model.labels.retire(label)
    assert model.freeze().explain(X[:1], k=1)[0].suggestions == ()


@pytest.mark.parametrize("model", [LinearTree(n_jobs=1), OnlineTree(n_jobs=1)], ids=lambda model: model.method_name)
def test_a_beam_wider_than_memory_has_room_for(model):
    model.fit(X, Y)
    model = model.freeze() if isinstance(model, OnlineTree) else model
    expected = model.set_params(beam_width=100).predict_topk(X, k=6)
    found = model.set_params(beam_width=2**31 - 1).predict_topk(X, k=6)
    for part, whole in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, whole)


def test_empty_arrays_of_a_wrong_type(tmp_path):
    OnlineTree(n_jobs=1).fit(X, Y).freeze().save(tmp_path / "model")
    name = next(path.stem for path in (tmp_path / "model").glob("*child.npy"))
    forge(tmp_path / "model", **{name: np.empty(0, np.float32)})
    refused(tmp_path / "model", "child must be uint8, uint16 or int32")


def test_a_threshold_beyond_its_type(tmp_path):
    CraftForest(n_jobs=1, n_trees=2).fit(X, Y).save(tmp_path / "model")

    def widen(manifest):
        text = json.dumps(manifest)
        assert '"threshold": ' in text
        manifest.update(json.loads(re.sub(r'"threshold": [^,}]+', '"threshold": 1e300', text)))

    forge(tmp_path / "model", widen)
    refused(tmp_path / "model", "bad threshold")
