"""Models of other tools give their own answers here; damaged and hostile files give one clear error."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import labelwood
from labelwood.cli import main
from labelwood.errors import FormatError, LabelwoodError
from labelwood.importing import FORMATS, from_sklearn, import_model
from labelwood.importing.pickled_values import read_values

MODELS = Path(__file__).parent / "models"
N_FEATURES = 30


def answers(name):
    with np.load(MODELS / f"{name}.npz") as archive:
        return archive["X"], archive["labels"], archive["scores"]


@pytest.fixture(params=sorted(FORMATS))
def tool(request):
    return request.param


def test_the_answers_are_those_of_the_tool(tool, tmp_path):
    X, labels, scores = answers(tool)
    model = import_model(MODELS / tool, n_features=N_FEATURES)
    found, given = model.predict_topk(X, 5)
    np.testing.assert_allclose(given, scores, atol=1e-5)
    apart = np.abs(np.diff(scores, axis=1, append=-1)) > 1e-5
    apart[:, 1:] &= apart[:, :-1]
    np.testing.assert_array_equal(found[apart], labels[apart])
    model.save(tmp_path / "model")
    again = labelwood.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_topk(X, 5)[0], found)
    assert "imported_from" in again.trained_


def test_imported_models_do_what_all_models_do(tool):
    X, labels, _ = answers(tool)
    model = import_model(MODELS / tool, n_features=N_FEATURES)
    explained = model.explain(X[:1], k=2)
    assert [one.label for one in explained[0].suggestions] == labels[0, :2].tolist()
    Y = [[label] for label in labels[:, 0].tolist()]
    assert model.shrink_curve(X, Y, thresholds=(0.2,), dtypes=("int8",))[0].precision[1] == 1.0
    model.calibrate(X, Y)
    assert model.predict_topk(X, 1, allowed=labels[0, 1:2].tolist())[0][0, 0] == labels[0, 1]
    model.prune(threshold=0.3).quantize("int8").predict_topk(X, 3)
    assert type(model)().get_params().keys() == model.get_params().keys()


def test_the_command(tool, tmp_path, capsys):
    names = tmp_path / "names.txt"
    names.write_text("".join(f"label {number}\n" for number in range(90)))
    words = ["import", MODELS / tool, "-o", tmp_path / "model", "--labels", names, "--features", N_FEATURES]
    assert main([str(word) for word in words]) == 0
    assert "imported_from" in capsys.readouterr().out
    X, labels, _ = answers(tool)
    assert labelwood.load(tmp_path / "model").predict_topk(X[:1], 1)[0][0, 0] == f"label {labels[0, 0]}"


@pytest.mark.parametrize("name", ["squared hinge", "logistic"])
def test_scikit_learn(name):
    X, labels, _ = answers(next(iter(sorted(FORMATS))))
    Y = np.zeros((len(X), 90), int)
    Y[np.arange(len(X))[:, None], labels[:, :2]] = 1
    Y = Y[:, Y.any(axis=0)]
    base = LinearSVC() if name == "squared hinge" else LogisticRegression()
    theirs = OneVsRestClassifier(base).fit(X, Y)
    margin = theirs.decision_function(X)
    found, scores = from_sklearn(theirs).predict_topk(X, 5)
    wanted = np.argsort(-margin, axis=1, kind="stable")[:, :5]
    sure = 1 / (1 + np.exp(-np.take_along_axis(margin, wanted, axis=1)))
    np.testing.assert_allclose(scores, sure, atol=1e-5)
    np.testing.assert_array_equal(found, wanted)
    if name == "logistic":
        np.testing.assert_allclose(scores, np.take_along_axis(theirs.predict_proba(X), found, axis=1), atol=1e-5)


def test_labels_of_scikit_learn_keep_their_names():
    theirs = OneVsRestClassifier(LinearSVC()).fit(np.eye(3), ["a", "b", "c"])
    assert from_sklearn(theirs).predict_topk(np.eye(3), 1)[0].ravel().tolist() == ["a", "b", "c"]


def test_only_linear_classifiers_are_taken():
    with pytest.raises(LabelwoodError, match="must be a fitted OneVsRestClassifier"):
        from_sklearn(LinearSVC())


class Node:
    """As LibMultiLabel's, by name."""

    def __init__(self, index, label_map, *children):
        self.index, self.label_map, self.children = index, np.array(label_map, int), list(children)


class FlatModel:
    """As LibMultiLabel's, by name."""

    def __init__(self, weights):
        self.weights, self.bias, self.thresholds = sp.csc_matrix(weights), -1.0, 0


class TreeModel:
    """As LibMultiLabel's, by name."""

    def __init__(self, root, weights, node_ptr):
        self.root, self.flat_model, self.node_ptr = root, FlatModel(weights), np.array(node_ptr)


def test_a_cluster_without_labels_is_left_out(tmp_path):
    """LibMultiLabel keeps the clusters that k-means left empty: here the second of three."""
    root = Node(0, [0, 1, 2], Node(1, [1, 2]), Node(2, []), Node(3, [0]))
    weights = np.random.default_rng(0).normal(size=(4, 6))
    model = TreeModel(root, weights, [0, 3, 5, 5, 6])
    (tmp_path / "linear_pipeline.pickle").write_bytes(pickle.dumps({"preprocessor": None, "model": model}))
    X = np.eye(4)
    found = import_model(tmp_path).predict_topk(X, 3)
    step = 1 / (1 + np.exp(-3 * X @ weights))
    wanted = np.stack([step[:, 2] * step[:, 5], step[:, 0] * step[:, 3], step[:, 0] * step[:, 4]], axis=1)
    order = np.argsort(-wanted, axis=1)
    np.testing.assert_array_equal(found[0], order)
    np.testing.assert_allclose(found[1], np.take_along_axis(wanted, order, axis=1), atol=1e-6)


def test_a_pickle_is_never_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    (tmp_path / "linear_pipeline.pickle").write_bytes(pickle.dumps({"preprocessor": None, "model": Trap()}))
    with pytest.raises(FormatError, match=r"the model must be a TreeModel"):
        import_model(tmp_path)
    assert not (tmp_path / "sprung").exists()
    made = read_values(pickle.dumps(Trap()))
    assert made.by.name == "getattr" or made.by.name.endswith("touch")
    (tmp_path / "model.joblib").write_bytes(b"")
    with pytest.raises(FormatError, match="may run any code and is not opened"):
        import_model(tmp_path / "model.joblib")


def test_a_cut_file_is_one_error(tool, tmp_path):
    for file in sorted(path for path in (MODELS / tool).rglob("*") if path.is_file()):
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        shutil.copytree(MODELS / tool, tmp_path / "model")
        broken = tmp_path / "model" / file.relative_to(MODELS / tool)
        broken.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        if tool == "pecos" and broken.parent == tmp_path / "model":
            continue  # the outer param.json is not needed
        with pytest.raises(FormatError, match=r"model"):
            import_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("omikuji/settings.json", {"n_features": -1}, "n_features must be a whole number"),
        ("omikuji/settings.json", {"classifier_loss_type": "Cosh"}, "must be Hinge or Log; got 'Cosh'"),
        ("omikuji/settings.json", {"n_features": 29}, "do not fit its shape"),
        ("pecos/ranker/param.json", {"depth": 2}, "every node|label|clusters|children"),
        ("pecos/ranker/param.json", {"model": "other"}, "must be HierarchicalMLModel"),
        (
            "pecos/ranker/1.model/param.json",
            {"pred_kwargs": {"only_topk": 20, "post_processor": "noop"}},
            "l1-hinge to",
        ),
        ("pecos/ranker/1.model/param.json", {"is_mmap": True}, "compiled for mmap"),
    ],
)
def test_messages(name, changes, message, tmp_path):
    top = name.split("/")[0]
    shutil.copytree(MODELS / top, tmp_path / top)
    file = tmp_path / name
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    if "depth" in changes:  # fewer layers are a smaller model, not a damaged one
        assert import_model(tmp_path / top).n_labels_ < 90
        return
    with pytest.raises(FormatError, match=message):
        import_model(tmp_path / top)


def test_what_is_no_model(tmp_path):
    with pytest.raises(FormatError, match="no model of omikuji, pecos, napkinxc, libmultilabel is here"):
        import_model(tmp_path)
    with pytest.raises(FileNotFoundError):
        import_model(tmp_path / "nowhere")
    with pytest.raises(LabelwoodError, match="format must be one of"):
        import_model(tmp_path, format="vw")


def test_names_must_fit(tool):
    with pytest.raises(LabelwoodError, match="label 89 has no name; there are 3 names"):
        import_model(MODELS / tool, label_names=["a", "b", "c"])
    with pytest.raises(LabelwoodError, match="label names must be distinct"):
        import_model(MODELS / tool, label_names=["a"] * 90)
    with pytest.raises(LabelwoodError, match="n_features must be at least"):
        import_model(MODELS / tool, n_features=1)
