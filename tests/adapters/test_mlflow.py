"""MLflow logging, loading and asking models of Labelwood."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood import FormatError, LabelwoodError, LinearTree, OnlineTree, TextClassifier

mlflow = pytest.importorskip("mlflow", reason="mlflow is absent; make test-adapters brings it")
pd = pytest.importorskip("pandas", reason="pandas is absent; make test-adapters brings it")

from labelwood.adapters.mlflow import log_model, save_model  # noqa: E402

TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax"]
TAGS = [["pets"], ["pets"], ["law"], ["law", "money"]]


@pytest.fixture
def texts():
    return TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS, TAGS)


@pytest.fixture
def run(tmp_path):
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.create_experiment("tagging", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("tagging")
    with mlflow.start_run() as started:
        yield started


def same(table, expected):
    labels, scores = expected
    assert list(table.columns) == ["labels", "scores"]
    assert table["labels"].tolist() == [[name for name in row if name is not None] for row in labels.tolist()]
    assert [len(row) for row in table["scores"]] == [len(row) for row in table["labels"]]
    np.testing.assert_allclose(np.concatenate(table["scores"]), scores[scores > 0])


@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_a_logged_model_comes_back(run, texts, tmp_path):
    pytest.importorskip("sqlalchemy", reason="the tracking store of whole MLflow")
    texts.save(tmp_path / "model")
    for given in (texts, tmp_path / "model"):
        info = log_model(given, name="tagger")
        loaded = mlflow.pyfunc.load_model(info.model_uri)
        same(loaded.predict(TEXTS, params={"k": 2}), texts.predict_topk(TEXTS, k=2))
