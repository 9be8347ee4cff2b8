"""Model directories: what goes in comes out, a damaged one is refused, a failed write leaves no trace."""

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelwood.errors import FormatError, LabelwoodError
from labelwood.label_names import LabelNames, name_problem
from labelwood.storage import atomic, model_directory
from labelwood.storage.model_directory import fingerprint, read_model, write_model

ARRAYS = {"weights": np.arange(12, dtype=np.float32).reshape(3, 4), "ids": np.array([3, 1, 2], np.int32)}
FACTS = {"method": "linear-tree", "facts": {"depth": 3}}


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "model", FACTS, ARRAYS)
    return tmp_path / "model"


def rewrite(folder: Path, change) -> None:
    """Change the manifest the way a careful forger would: with a right checksum of its own."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    change(manifest)
    plain = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    path.write_text(json.dumps({**manifest, "sha256": hashlib.sha256(plain).hexdigest()}))


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float16, np.int64, np.int32, np.uint8, np.bool_, ">i4"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
    )
)
def test_arrays_round_trip(tmp_path_factory, array):
    folder = tmp_path_factory.mktemp("round") / "model"
    write_model(folder, {}, {"a": array, "transposed": array.T})
    _, arrays = read_model(folder)
    np.testing.assert_array_equal(arrays["a"], array)
    np.testing.assert_array_equal(arrays["transposed"], array.T)
    assert arrays["a"].dtype == array.dtype.newbyteorder("<")
    assert not arrays["a"].flags.writeable


def test_manifest(model):
    manifest, arrays = read_model(model)
    assert manifest["method"] == "linear-tree"
    assert manifest["facts"] == {"depth": 3}
    assert manifest["format_version"] == 1
    assert manifest["files"]["weights"]["shape"] == [3, 4]
    assert set(arrays) == set(ARRAYS)
    assert sorted(file.name for file in model.iterdir()) == ["ids.npy", "manifest.json", "weights.npy"]


def test_arrays_are_mapped_not_read(model):
    _, arrays = read_model(model)
    with (model / "weights.npy").open("r+b") as file:  # a mapping shows what is written to its file
        file.seek(-4, 2)
        file.write(np.float32(7.5).tobytes())
    assert arrays["weights"][-1, -1] == 7.5
    assert arrays["weights"].ctypes.data % 64 == 0  # kernels like aligned rows


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda m: (m / "manifest.json").unlink(), "not a Labelwood model: it has no manifest.json"),
        (lambda m: (m / "manifest.json").write_text("{"), "manifest.json is damaged: it is not JSON"),
        (lambda m: (m / "manifest.json").write_bytes(b"\xff\x00"), "it is not JSON"),
        (lambda m: (m / "manifest.json").write_text("[" * 100_000), "it is not JSON"),
        (lambda m: (m / "manifest.json").write_text("[]"), "does not belong to a Labelwood model"),
        (lambda m: (m / "manifest.json").write_text('{"format": "other"}'), "does not belong to a Labelwood model"),
        (lambda m: rewrite(m, lambda d: d.update(format_version=2)), "reads up to format 1. Upgrade labelwood"),
        (lambda m: rewrite(m, lambda d: d.update(format_version="1")), "format_version is '1'"),
        (lambda m: rewrite(m, lambda d: d.pop("files")), "list of files is malformed"),
        (lambda m: rewrite(m, lambda d: d["files"]["ids"].pop("dtype")), "list of files is malformed"),
        (lambda m: rewrite(m, lambda d: d["files"]["ids"].update(shape=[-3])), "list of files is malformed"),
        (lambda m: rewrite(m, lambda d: d["files"]["ids"].update(shape=[2])), r"\[3\], the manifest says <i4 \[2\]"),
        (lambda m: rewrite(m, lambda d: d["files"]["ids"].update(dtype="<f4")), "the manifest says <f4"),
        (lambda m: rewrite(m, lambda d: d["files"].update({"../x": d["files"]["ids"]})), "invalid file name: '../x'"),
        (lambda m: rewrite(m, lambda d: d["files"].update(other=d["files"]["ids"])), "other.npy is missing"),
        (lambda m: (m / "ids.npy").unlink(), "ids.npy is missing"),
        (lambda m: (m / "ids.npy").write_bytes((m / "ids.npy").read_bytes()[:-1]), "139 bytes, the manifest says 140"),
        (lambda m: (m / "ids.npy").write_bytes(bytes(140)), "checksum does not match"),
        (lambda m: ((m / "ids.npy").unlink(), (m / "ids.npy").symlink_to("ids.npy")), "must be a plain file"),
        (lambda m: ((m / "ids.npy").unlink(), (m / "ids.npy").symlink_to("..")), "must be a plain file"),
        (lambda m: ((m / "ids.npy").unlink(), (m / "ids.npy").symlink_to("/dev/zero")), "must be a plain file"),
        (lambda m: ((m / "ids.npy").unlink(), (m / "ids.npy").symlink_to("x")), "ids.npy is missing"),
        (
            lambda m: ((m / "ids.npy").unlink(), (m / "ids.npy").symlink_to("manifest.json")),
            "bytes, the manifest says 140",
        ),
        (lambda m: ((m / "ids.npy").unlink(), (m / "ids.npy").mkdir()), "must be a plain file"),
    ],
)
def test_damage_is_refused_in_one_sentence(model, damage, message):
    damage(model)
    with pytest.raises(FormatError, match=message) as caught:
        read_model(model)
    assert str(model) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_may_be_links_as_in_the_cache_of_a_hub(model):
    expected = {name: array.tolist() for name, array in read_model(model)[1].items()}
    blobs = model.parent / "blobs"
    blobs.mkdir()
    for number, file in enumerate(sorted(model.iterdir())):
        file.rename(blobs / str(number))
        file.symlink_to(f"../blobs/{number}")
    assert {name: array.tolist() for name, array in read_model(model, verify=True)[1].items()} == expected


def test_what_is_not_there(tmp_path):
    with pytest.raises(FormatError, match="not a Labelwood model: not found"):
        read_model(tmp_path / "absent")
    (tmp_path / "file").write_text("x")
    with pytest.raises(FormatError, match="a model is a directory"):
        read_model(tmp_path / "file")


def test_every_flipped_byte_is_noticed(model):
    """Whatever bit rots in whatever file: refused, or (white space of the manifest) without effect."""
    expected_manifest, expected = read_model(model)
    for file in model.iterdir():
        good = file.read_bytes()
        for position in range(len(good)):
            file.write_bytes(good[:position] + bytes([good[position] ^ 0x20]) + good[position + 1 :])
            try:
                manifest, arrays = read_model(model)
            except FormatError:
                continue
            assert manifest == expected_manifest, (file.name, position)
            assert all(np.array_equal(arrays[name], expected[name]) for name in expected)
        file.write_bytes(good)


def test_header_lies_without_checksums(model):
    """With verification off, a header still cannot make the map reach past the file."""
    path = model / "ids.npy"
    path.write_bytes(path.read_bytes().replace(b"(3,)", b"(9,)"))
    with pytest.raises(FormatError, match=r"\[9\], the manifest says"):
        read_model(model, verify=False)
    rewrite(model, lambda d: d["files"]["ids"].update(shape=[9]))
    with pytest.raises(FormatError, match="do not hold"):
        read_model(model, verify=False)


def test_objects_are_never_unpickled(model):
    np.save(model / "ids.npy", np.array([{}], dtype=object), allow_pickle=True)
    size = (model / "ids.npy").stat().st_size
    rewrite(model, lambda d: d["files"]["ids"].update(dtype="|O", shape=[1], bytes=size))
    with pytest.raises(FormatError, match="damaged"):
        read_model(model, verify=False)


def test_large_models_are_verified_on_request(model, monkeypatch):
    path = model / "weights.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(FormatError, match="checksum"):
        read_model(model)
    monkeypatch.setattr(model_directory, "VERIFY_UP_TO_BYTES", 10)
    read_model(model)
    with pytest.raises(FormatError, match="checksum"):
        read_model(model, verify=True)


@pytest.mark.parametrize("exchange", [True, False])
def test_replaces_a_model(model, monkeypatch, exchange):
    if not exchange:  # as on a system that cannot swap directories
        monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    _, before = read_model(model)
    write_model(model, FACTS, {"only": np.zeros(2, np.float32)})
    _, after = read_model(model)
    assert list(after) == ["only"]
    np.testing.assert_array_equal(before["weights"], ARRAYS["weights"])  # who has it open keeps it
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_replaces_what_a_link_points_to(model):
    link = model.parent / "current"
    link.symlink_to("model")
    write_model(link, FACTS, {"only": np.zeros(2)})
    assert link.is_symlink()
    assert list(read_model(model)[1]) == ["only"]


def test_never_replaces_what_is_no_model(tmp_path, model):
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "manifest.json").write_text('{"name": "some web app"}')
    (model / "notes.txt").write_text("precious")
    write_model(tmp_path / "other", FACTS, ARRAYS)
    (tmp_path / "other" / "ids.npy").unlink()
    (tmp_path / "other" / "ids.npy").mkdir()
    for name, message in (
        ("file", "not a Labelwood model"),
        ("folder", "not a Labelwood model"),
        ("model", "also notes.txt"),
        ("other", "also ids.npy"),
    ):
        with pytest.raises(LabelwoodError, match=message):
            write_model(tmp_path / name, FACTS, ARRAYS)
    assert (tmp_path / "file").read_text() == "precious"
    assert (model / "notes.txt").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "model", "other"]


def test_free_places(tmp_path):
    (tmp_path / "empty").mkdir()
    for place in ("empty", "deep/er/model"):
        write_model(tmp_path / place, FACTS, ARRAYS)
        assert read_model(tmp_path / place)[0]["method"] == "linear-tree"


@pytest.mark.parametrize(
    ("manifest", "arrays"),
    [
        (FACTS, {"a": np.zeros(3), "z": np.array([object()])}),
        (FACTS, {"../escape": np.zeros(3)}),
        ({"facts": object()}, ARRAYS),
        ({"facts": float("nan")}, ARRAYS),
    ],
)
def test_a_failed_write_leaves_no_trace(model, manifest, arrays):
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    for target in (model, model.parent / "new"):
        with pytest.raises(LabelwoodError):
            write_model(target, manifest, arrays)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_a_full_disk_leaves_no_trace(tmp_path):
    """A real limit on the size of a file, in a process of its own."""
    script = textwrap.dedent("""
        import resource, signal, sys
        import numpy as np
        from labelwood.storage.model_directory import write_model
        write_model(sys.argv[1], {}, {"a": np.zeros(10)})
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            write_model(sys.argv[1], {}, {"a": np.zeros(100_000)})
        except OSError:
            sys.exit(7)
    """)
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "model")], timeout=60, check=False)
    assert done.returncode == 7
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert len(read_model(tmp_path / "model")[1]["a"]) == 10


def test_a_reader_sees_the_old_or_the_new_model(tmp_path):
    """One process rewrites a model until it is killed; whoever reads meanwhile or after finds one, whole."""
    script = textwrap.dedent("""
        import sys
        import numpy as np
        from labelwood.storage.model_directory import write_model
        for version in range(1_000_000):
            arrays = {name: np.full(100, version) for name in "abcdef"}
            write_model(sys.argv[1], {"version": version}, arrays)
            if version == 0:
                print("ready", flush=True)
    """)
    folder = tmp_path / "model"
    with subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"ready\n"
        seen, end = set(), time.monotonic() + 60
        try:
            while len(seen) < 2 and time.monotonic() < end:
                for verify in [True, False] * 100:
                    manifest, arrays = read_model(folder, verify=verify)
                    assert all((array == manifest["version"]).all() for array in arrays.values())
                    seen.add(manifest["version"])
        finally:
            writer.send_signal(signal.SIGKILL)
    assert len(seen) > 1
    manifest, arrays = read_model(folder)
    assert (arrays["a"] == manifest["version"]).all()


text = st.text(min_size=1).filter(lambda name: name_problem(name) is None)
names = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text | st.binary(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)


@given(st.one_of(st.lists(kind, unique=True, max_size=6) for kind in (names, text, st.integers())))
def test_label_names_round_trip(tmp_path_factory, given_names):
    folder = tmp_path_factory.mktemp("names") / "model"
    kept = LabelNames.of(given_names)
    facts, arrays = kept.state()
    write_model(folder, {"labels": facts}, arrays)
    manifest, arrays = read_model(folder)
    loaded = LabelNames.restore(manifest["labels"], arrays)
    assert loaded.array.tolist() == given_names
    assert list(map(type, loaded.array.tolist())) == list(map(type, given_names))
    assert loaded.index == {name: label for label, name in enumerate(given_names)}


def test_a_name_that_cannot_be_saved_says_so():
    kept = LabelNames.of([Path("a"), 1])
    assert kept.take(np.array([[0, -1]])).tolist() == [[Path("a"), None]]
    with pytest.raises(LabelwoodError, match=r"a label name must be a string.*PosixPath"):
        kept.state()


@pytest.mark.parametrize(
    "damage",
    [
        lambda facts, arrays: facts.update(count=4),
        lambda facts, arrays: facts.update(count="3"),
        lambda facts, arrays: facts.update(kind="other"),
        lambda facts, arrays: facts.pop("kind"),
        lambda facts, arrays: arrays.pop("label_names.offsets"),
        lambda facts, arrays: arrays.update({"label_names.offsets": np.array([0, 5, 2, 3])}),
        lambda facts, arrays: arrays.update({"label_names.offsets": np.array([0, 1, 2, 9])}),
        lambda facts, arrays: arrays.update({"label_names.utf8": np.zeros(3, np.int8)}),
    ],
)
def test_damaged_label_names_are_refused(damage):
    facts, arrays = LabelNames.of(["a", "b", "c"]).state()
    damage(facts, arrays)
    with pytest.raises(FormatError, match="label names"):
        LabelNames.restore(facts, arrays)


def test_a_million_names_load_at_once(tmp_path):
    """The names are not decoded before they are asked for."""
    facts, arrays = LabelNames.of([f"label number {i}" for i in range(1_000_000)]).state()
    loaded = LabelNames.restore(facts, arrays)
    assert loaded.take(np.array([[999_999, 5]])).tolist() == [["label number 999999", "label number 5"]]
    assert not {"array", "index"} & vars(loaded).keys()


def test_the_fingerprint_is_that_of_the_contents(model, tmp_path):
    shutil.copytree(model, tmp_path / "copy")
    assert fingerprint(tmp_path / "copy") == fingerprint(model)
    for facts, arrays in (({**FACTS, "facts": {"depth": 4}}, ARRAYS), (FACTS, {**ARRAYS, "ids": ARRAYS["ids"] + 1})):
        write_model(tmp_path / "other", facts, arrays)
        assert fingerprint(tmp_path / "other") != fingerprint(model)
    with pytest.raises(FormatError, match="not found"):
        fingerprint(tmp_path / "none")
