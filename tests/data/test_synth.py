"""Generated data: what the shape asks for is there, and labels can be told from words."""

import subprocess
import sys

import numpy as np
import pytest

from labelwood import LabelwoodError, LinearTree
from labelwood.cli.main import main
from labelwood.data import load
from labelwood.data.dataset import Dataset
from labelwood.data.synth import PUBLISHED, Shape, published, synth, synth_parts
from labelwood.sparse import CSR


def test_same_seed_same_data_and_sound():
    shape = Shape(n_rows=3000, n_labels=200, n_features=5000)
    one, other, third = synth(shape, seed=5), synth(shape, seed=5), synth(shape, seed=6)
    one.check()
    assert one.X.indices.tobytes() == other.X.indices.tobytes()
    assert one.Y.indices.tobytes() == other.Y.indices.tobytes()
    assert one.X.indices.tobytes() != third.X.indices.tobytes()
    assert (np.diff(one.Y.indptr) >= 1).all()
    assert 2.3 < one.Y.nnz / one.n_rows < 3.2


def test_frequencies_fall():
    counts = np.bincount(synth(Shape(n_rows=20000, n_labels=500), seed=0).Y.indices, minlength=500)
    assert counts[:5].sum() > 4 * counts[250:255].sum()
    assert (counts > 0).mean() > 0.95


def test_labels_of_a_stream_keep_appearing():
    made = synth(Shape(n_rows=10000, n_labels=2000, stream=True), seed=1)
    first_row = np.full(2000, 10000)
    rows = np.repeat(np.arange(10000), np.diff(made.Y.indptr))
    np.minimum.at(first_row, made.Y.indices, rows)
    new_by_quarter = np.histogram(first_row, bins=4, range=(0, 10000))[0]
    assert (new_by_quarter > 50).all()


def test_labels_can_be_learned():
    made = synth(Shape(n_rows=6000, n_labels=100, n_features=3000), seed=2)
    train, test = (CSR(*_part(made.X, a, b)) for a, b in ((0, 5000), (5000, 6000)))
    model = LinearTree(n_jobs=1).fit(train, made.Y.rows(0, 5000))
    assert model.score(test, made.Y.rows(5000, 6000)) > 0.7


def _part(matrix, start, stop):
    part = matrix.rows(start, stop)
    return part.indptr, part.indices, part.data, part.n_cols


@pytest.mark.parametrize(
    "wrong",
    [{"n_rows": 0}, {"branching": 1}, {"labels_per_row": 0.5}, {"exponent": 0.0}, {"stream": True, "natural": True}],
)
def test_impossible_shapes(wrong):
    with pytest.raises(LabelwoodError, match="synth: "):
        synth(Shape(**{"n_rows": 10, **wrong}))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name):
    public = PUBLISHED[name]
    shape, test_rows = published(name, scale=0.01)
    train, test = synth(shape), synth(shape, test_rows=test_rows)
    assert (train.n_rows, train.X.n_cols, train.Y.n_cols, test.n_rows) == tuple(
        round(0.01 * count) for count in (public.train_rows, public.features, public.labels, public.test_rows)
    )
    for made in (train.check(), test.check()):
        assert made.Y.nnz / made.n_rows == pytest.approx(public.row_labels, rel=0.04)
        assert made.X.nnz / made.n_rows == pytest.approx(public.row_words, rel=0.03)
    assert np.bincount(train.Y.indices, minlength=train.Y.n_cols).min() >= 1
    words = np.sort(np.bincount(train.X.indices, minlength=train.X.n_cols))[::-1]
    assert words[0] > 10 * words[len(words) // 2]
    assert train.X.data.min() > 0


def test_labels_of_test_rows_have_the_words_of_training():
    shape, test_rows = published("amazon-670k", scale=0.01)
    train, test = synth(shape, seed=3), synth(shape, seed=3, test_rows=test_rows)
    model = LinearTree(n_jobs=1).fit(train.X, train.Y)
    assert model.score(test.X, test.Y) > 0.4
    other = synth(shape, seed=4, test_rows=test_rows)  # other words: nothing to recognise
    assert model.score(other.X, other.Y) < 0.1
    assert test.X.indices[:500].tobytes() != train.X.indices[:500].tobytes()


def test_every_label_has_its_turn_whatever_the_rest():
    for n_rows, n_labels in ((7, 40), (50, 13), (33, 33)):
        shape = Shape(n_rows, n_labels, 300, labels_per_row=1, levels=1, natural=True)
        assert set(synth(shape).Y.indices) == set(range(n_labels))


def test_parts_are_the_whole_and_long_rows_come_in_small_parts():
    shape = Shape(n_rows=3000, n_labels=100, n_features=50_000, words_per_row=1000)
    parts = list(synth_parts(shape))
    assert max(part.X.nnz for part in parts) < 1.1 * 20 * 2**16
    assert len(parts) > 1
    whole = synth(shape)
    assert Dataset.joined(parts).X.indices.tobytes() == whole.X.indices.tobytes()


def test_a_directory_is_written_in_bounded_memory(tmp_path):
    """Eight times the rows need no more memory: less than a third of what the larger set takes on disk."""
    peaks = {}
    for rows in (50_000, 400_000):
        script = (
            "import resource, sys; from labelwood.cli.main import main;"
            f"main(['data','synth',{str(tmp_path / f'{rows}.lw')!r},'--rows','{rows}','-q']);"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        peaks[rows] = int(done.stderr.split()[-1])
    assert peaks[400_000] < peaks[50_000] + 60e6
    assert load(tmp_path / "400000.lw").n_rows == 400_000


def test_command_writes_a_shape(tmp_path, capsys):
    words = ["data", "synth", "--shape", "amazon-670k", "--scale", "0.01", "-q"]
    for name in ("a.lw", "b.lw"):
        assert main([*words[:2], str(tmp_path / name), *words[2:]]) == 0
    assert main([*words[:2], str(tmp_path / "test.lw"), *words[2:], "--test"]) == 0
    files = sorted(path.name for path in (tmp_path / "a.lw").iterdir())
    assert [(tmp_path / "a.lw" / n).read_bytes() for n in files] == [
        (tmp_path / "b.lw" / n).read_bytes() for n in files
    ]
    assert (load(tmp_path / "a.lw").n_rows, load(tmp_path / "test.lw").n_rows) == (4904, 1530)
    capsys.readouterr()
    assert main([*words[:2], str(tmp_path / "c.lw"), *words[2:], "--rows", "5"]) == 2
    assert "--rows has no effect: --shape sets the counts" in capsys.readouterr().err
    assert main(["data", "synth", str(tmp_path / "c.lw"), "--scale", "0.5"]) == 2
    assert "it needs --shape" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "scale", "told"),
    [("amazon", 1.0, "shape must be one of"), ("amazon-3m", 0.0, "greater than 0"), ("amazon-3m", 2.0, "at most 1"),
     ("amazon-3m", 1e-6, "take a larger scale")],
)  # fmt: skip
def test_impossible_published_shapes(name, scale, told):
    with pytest.raises(LabelwoodError, match=told):
        published(name, scale=scale)


def test_no_test_rows():
    with pytest.raises(LabelwoodError, match="test_rows must be at least 1; got 0"):
        synth(Shape(n_rows=10), test_rows=0)
