"""A model of which some or all labels are retired predicts, freezes, saves and loads."""

from __future__ import annotations

import pytest

import labelwood
from labelwood import OnlineForest, OnlineTree

ROWS = [{0: 1.0}, {1: 1.0}, {2: 1.0}, {3: 1.0}, {4: 1.0}]


@pytest.fixture(params=[OnlineTree, OnlineForest])
def taught(request):
    def teach(n_labels):
        options = {"tree": {"max_leaf": 2}} if request.param is OnlineForest else {"max_leaf": 2}
        return request.param(n_jobs=1, **options).partial_fit(ROWS[:n_labels], [[str(n)] for n in range(n_labels)])

    return teach


def answers(model, path, *, inference_only):
    model.save(path, inference_only=inference_only)
    loaded = labelwood.load(path)
    return [set(row) - {None} for row in loaded.predict_topk(ROWS, 5)[0].tolist()]


@pytest.mark.parametrize("n_labels", [1, 2, 5])
@pytest.mark.parametrize("inference_only", [False, True])
def test_every_label_is_retired(taught, tmp_path, n_labels, inference_only):
    model = taught(n_labels)
    for label in range(n_labels):
        model.labels.retire(str(label))
    assert answers(model, tmp_path / "model", inference_only=inference_only) == [set()] * len(ROWS)
    assert model.freeze().explain(ROWS[:1], 2, missed=["0"])[0].suggestions == ()
    model.labels.restore("0")
    assert answers(model, tmp_path / "model", inference_only=inference_only) == [{"0"}] * len(ROWS)


@pytest.mark.parametrize("inference_only", [False, True])
def test_a_label_is_merged_into_a_retired_one(taught, tmp_path, inference_only):
    """With two labels below a node, one merged into the other, nothing below that node may be suggested."""
    for source in range(5):
        for target in set(range(5)) - {source}:
            model = taught(5)
            model.labels.merge(str(source), str(target))
            model.labels.retire(str(target))
            kept = {str(label) for label in range(5)} - {str(source), str(target)}
            assert answers(model, tmp_path / "model", inference_only=inference_only) == [kept] * len(ROWS)


@pytest.mark.parametrize("inference_only", [False, True])
def test_there_is_no_label_yet(taught, tmp_path, inference_only):
    model = taught(1)
    model = type(model)(**model.get_params()).partial_fit(ROWS[:1], [[]])
    assert answers(model, tmp_path / "model", inference_only=inference_only) == [set()] * len(ROWS)
