import pytest
from serving import LABELS, TEXTS, online_model

from labelwood import LinearTree, OnlineTree
from labelwood.errors import LabelwoodError
from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.service import suggest
from labelwood.serve.state.records import rows_of


@pytest.fixture(scope="module")
def model():
    return online_model()


def ask(model, text, **options):
    return suggest(estimator_of(model), rows_of(model, [{"text": text}]), **options)[0]


def test_the_models_own_answers(model):
    labels, scores = model.predict_topk(TEXTS, k=3)
    for text, names, values in zip(TEXTS, labels.tolist(), scores.tolist(), strict=True):
        found = ask(model, text, k=3)
        assert [(one.label, one.score) for one in found] == list(zip(names, values, strict=True))


def test_threshold(model):
    every = ask(model, "tax law", k=10)
    cut = (every[0].score + every[1].score) / 2
    assert ask(model, "tax law", k=10, threshold=cut) == every[:1]


def test_allowed_labels_are_found_however_far_down(model):
    every = ask(model, "tax law", k=10)
    assert len(every) == len({label for labels in LABELS for label in labels})
    worst = every[-1]
    assert ask(model, "tax law", k=1, allowed=[worst.label]) == [worst]
    assert ask(model, "tax law", k=5, allowed=[worst.label, every[1].label, "unknown"]) == [every[1], worst]
    assert ask(model, "tax law", k=5, allowed=[]) == []


def test_features():
    rows, labels = [{0: 1.0}, {3: 1.0}], [["red"], ["blue"]]
    online = OnlineTree(n_jobs=1).partial_fit(rows, labels)
    asked = [{"features": {"3": 1.0, "99": 2.0}}]
    assert suggest(online, rows_of(online, asked), k=1)[0][0].label == "blue"
    import numpy as np

    still = LinearTree(n_jobs=1).fit(np.eye(4, dtype=np.float32)[[0, 3, 0, 3]], labels * 2)
    assert suggest(still, rows_of(still, asked), k=1)[0][0].label == "blue"


def test_text_or_features_as_the_model_takes(model):
    with pytest.raises(LabelwoodError, match="takes text, not features; example 1"):
        rows_of(model, [{"text": "a"}, {"features": {"1": 1.0}}])
