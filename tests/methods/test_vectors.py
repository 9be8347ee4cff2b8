"""What every method must do with vectors: dense rows, and sparse rows with vectors beside them."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from battery import assert_sound, damaged, saved_bytes

import labelwood
from labelwood import METHODS, FormatError, LabelwoodError
from labelwood.hybrid import Hybrid
from labelwood.storage.model_directory import read_model, write_model

N_LABELS, WIDTH, N_SPARSE = 24, 40, 30
KINDS = ("dense", "hybrid", "float16")


@pytest.fixture(params=list(METHODS))
def method(request):
    return METHODS[request.param]


@pytest.fixture(params=KINDS)
def rows(request):
    """A function from a number of rows and a seed to X and Y; the vectors show the labels, the words some of them."""
    fixed = np.random.default_rng(0)
    centres = fixed.standard_normal((N_LABELS, WIDTH))

    def made(n_rows, seed=1):
        random = np.random.default_rng((seed, n_rows))
        label = random.integers(N_LABELS, size=n_rows)
        E = (centres[label] + 0.4 * random.standard_normal((n_rows, WIDTH))).astype(np.float32)
        Y = sp.csr_array((np.ones(n_rows, np.float32), label, np.arange(n_rows + 1)), shape=(n_rows, N_LABELS))
        if request.param == "dense":
            return E, Y
        if request.param == "float16":
            return E.astype(np.float16), Y
        words = sp.csr_array((np.ones(n_rows, np.float32), label, np.arange(n_rows + 1)), shape=(n_rows, N_SPARSE))
        return {"words": words, "vectors": E}, Y

    return made


def n_rows_of(X):
    return len(X["vectors"]) if isinstance(X, dict) else len(X)


def part(X, rows):
    return {name: block[rows] for name, block in X.items()} if isinstance(X, dict) else X[rows]


class Shaped:
    """Rows with the shape that ``assert_sound`` asks for."""

    def __init__(self, model, X):
        self.model, self.X, self.shape = model, X, (n_rows_of(X), 0)

    def predict_topk(self, X, k):
        return self.model.predict_topk(self.X, k)

    def topk_ids(self, X, k):
        return self.model.topk_ids(self.X, k)

    @property
    def n_labels_(self):
        return self.model.n_labels_


def sound(model, X, k):
    shaped = Shaped(model, X)
    return assert_sound(shaped, shaped, k)


@pytest.fixture
def fitted(method, rows):
    X, Y = rows(300)
    return method(n_jobs=1, random_state=3).fit(X, Y)


def test_learns_and_ranks(fitted, rows):
    X, Y = rows(100, seed=2)
    assert fitted.score(X, Y) > 0.9
    for k in (1, 3, 30):
        sound(fitted, X, k)
    assert fitted.predict_topk(part(X, slice(0, 0)), 3)[0].shape == (0, 3)


def test_a_row_is_predicted_alike_alone_and_in_a_batch(fitted, rows):
    X, _ = rows(100, seed=2)
    labels, scores = fitted.predict_topk(X, 5)
    for row in range(0, 100, 9):
        alone = fitted.predict_topk(part(X, slice(row, row + 1)), 5)
        np.testing.assert_array_equal(alone[0][0], labels[row])
        np.testing.assert_allclose(alone[1][0], scores[row], rtol=1e-5, atol=1e-6)


def test_threads_give_the_same_bytes(method, rows, fitted, tmp_path):
    X, Y = rows(300)
    other = method(n_jobs=2, random_state=3).fit(X, Y)
    assert saved_bytes(fitted, tmp_path / "one") == saved_bytes(other, tmp_path / "two")
    queries, _ = rows(100, seed=2)
    for left, right in zip(fitted.predict_topk(queries), other.predict_topk(queries), strict=True):
        np.testing.assert_array_equal(left, right)


def test_load_predicts_the_same_bits(fitted, rows, tmp_path):
    X, _ = rows(100, seed=2)
    fitted.save(tmp_path / "model")
    loaded = labelwood.load(tmp_path / "model", verify=True)
    for left, right in zip(fitted.predict_topk(X), loaded.predict_topk(X), strict=True):
        np.testing.assert_array_equal(left, right)


def test_sparse_queries_are_understood(fitted, rows):
    """A model of vectors takes the same rows as one sparse matrix; blocks come in the order sparse, dense."""
    X, _ = rows(100, seed=2)
    whole = sp.hstack([X["words"], sp.csr_array(X["vectors"])]) if isinstance(X, dict) else sp.csr_array(np.float32(X))
    for left, right in zip(fitted.predict_topk(X), fitted.predict_topk(whole.tocsr()), strict=True):
        if left.dtype.kind == "f":
            np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)
        else:
            assert (left == right).mean() > 0.99


def test_rows_of_zeros(fitted, method, rows):
    X, Y = rows(60)
    blank = part(X, np.arange(60))
    for block in blank.values() if isinstance(blank, dict) else [blank]:
        if isinstance(block, np.ndarray):
            block[::7] = 0
    sound(method(n_jobs=1).fit(blank, Y), blank, 5)
    nothing = np.zeros((3, WIDTH), np.float32)
    queries = {"words": sp.csr_array((3, N_SPARSE)), "vectors": nothing} if isinstance(X, dict) else nothing
    sound(fitted, queries, 5)


def test_one_row_and_one_label(method, rows):
    X, Y = rows(60)
    sound(method(n_jobs=1).fit(part(X, slice(0, 1)), Y[:1]), X, 2)
    sound(method(n_jobs=1).fit(X, Y[:, [0]]), X, 1)


def test_only_allowed_labels_are_predicted(fitted, rows):
    X, _ = rows(30, seed=2)
    labels, _ = fitted.predict_topk(X, 3, allowed=[1, 5, 9])
    assert set(np.unique(labels)) <= {-1, 1, 5, 9}


def test_explanations_add_up(fitted, rows):
    X, _ = rows(3, seed=2)
    for explanation in fitted.explain(X, 2):
        assert len(explanation.suggestions) >= 1
        assert not explanation.row_is_empty
        for suggestion in explanation.suggestions:
            for path in suggestion.paths:
                for step in path.steps:
                    told = step.bias + step.rest + sum(each.amount for each in step.contributions)
                    assert told == pytest.approx(step.score, abs=1e-3)


def test_bad_vectors_are_refused(fitted, method, rows):
    X, Y = rows(60)
    spoilt = rows(60)[0]
    block = spoilt["vectors"] if isinstance(spoilt, dict) else spoilt
    block[3, 3] = np.nan
    with pytest.raises(LabelwoodError, match="must be finite"):
        method(n_jobs=1).fit(spoilt, Y)
    with pytest.raises(LabelwoodError, match="must be finite"):
        fitted.predict_topk(spoilt)
    narrow = {**X, "vectors": X["vectors"][:, 1:]} if isinstance(X, dict) else X[:, 1:]
    with pytest.raises(LabelwoodError, match=r"features, but .* is expecting"):
        fitted.predict_topk(narrow)
    with pytest.raises(LabelwoodError):
        method(n_jobs=1).fit(part(X, slice(0, 0)), Y[:0])


def test_wild_arrays_are_refused_or_harmless(fitted, method, rows, tmp_path):
    fitted.save(tmp_path / "model")
    manifest, arrays = read_model(tmp_path / "model")
    queries, _ = rows(20, seed=2)
    for name, array in arrays.items():
        if "vector" not in name:
            continue
        for _, changed in damaged(np.array(array)):
            write_model(tmp_path / "forged", manifest, {**arrays, name: changed})
            try:
                forged = method.load(tmp_path / "forged")
            except FormatError:
                continue
            sound(forged, queries, 5)


def test_a_data_directory_of_another_process_is_not_needed(fitted, rows, tmp_path):
    """Another process predicts the same bits from a mapped file."""
    X, _ = rows(20, seed=2)
    if isinstance(X, dict):
        pytest.skip("the file holds one block")
    fitted.save(tmp_path / "model")
    np.save(tmp_path / "X.npy", X)
    script = (
        "import sys, numpy as np, labelwood\n"
        "X = np.load(sys.argv[2], mmap_mode='r')\n"
        "np.savez(sys.argv[3], *labelwood.load(sys.argv[1]).predict_topk(X, 5))\n"
    )
    arguments = [str(tmp_path / name) for name in ("model", "X.npy", "top.npz")]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, timeout=120)
    with np.load(tmp_path / "top.npz") as there:
        for name, own in zip(there, fitted.predict_topk(X, 5), strict=True):
            np.testing.assert_array_equal(there[name], own)


def test_label_trees_keep_vectors_dense(rows):
    X, Y = rows(60)
    model = labelwood.LinearTree(n_jobs=1).fit(X, Y)
    assert isinstance(model.encode(X), Hybrid)
    assert model.trees_[0].n_columns == WIDTH
