"""MLflow logs, loads and runs Labelwood models."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwood import FormatError, LabelwoodError, LinearTree, OnlineTree, TextClassifier

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed; use make test-adapters")
pd = pytest.importorskip("pandas", reason="pandas is not installed; use make test-adapters")

from labelwood.adapters.mlflow import log_model, save_model  # noqa: E402

TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax"]
TAGS = [["pets"], ["pets"], ["law"], ["law", "money"]]


@pytest.fixture
def texts():
    return TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS, TAGS)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """An MLflow run in a file store, the only store of mlflow-skinny."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as started:
        yield started


def same(table, expected):
    labels, scores = expected
    assert list(table.columns) == ["labels", "scores"]
    assert table["labels"].tolist() == [[name for name in row if name is not None] for row in labels.tolist()]
    assert [len(row) for row in table["scores"]] == [len(row) for row in table["labels"]]
    np.testing.assert_allclose(np.concatenate(table["scores"]), scores[scores > 0])


@pytest.mark.filterwarnings("ignore")  # warnings of MLflow itself
def test_a_logged_model_predicts_the_same(run, texts, tmp_path):
    texts.save(tmp_path / "model")
    for number, given in enumerate((texts, tmp_path / "model", str(tmp_path / "model"))):
        info = log_model(given, name=f"tagger-{number}")
        loaded = mlflow.pyfunc.load_model(info.model_uri)
        same(loaded.predict(TEXTS, params={"k": 2}), texts.predict_topk(TEXTS, k=2))
        same(loaded.predict(TEXTS), texts.predict_topk(TEXTS, k=5))


@pytest.mark.filterwarnings("ignore")  # warnings of MLflow itself
def test_texts_come_as_lists_columns_or_tables(texts, tmp_path):
    save_model(tmp_path / "tagger", texts)
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "tagger"))
    expected = texts.predict_topk(TEXTS, k=5)
    wide = pd.DataFrame({"id": range(4), "text": TEXTS})
    for given in (TEXTS, np.array(TEXTS), pd.Series(TEXTS), pd.DataFrame({"body": TEXTS}), wide):
        same(loaded.predict(given), expected)
    with pytest.raises(LabelwoodError, match="must have one column, or a column 'text'; got id, body"):
        loaded.predict(wide.rename(columns={"text": "body"}))


@pytest.mark.filterwarnings("ignore")  # warnings of MLflow itself
@pytest.mark.parametrize("method", [LinearTree, OnlineTree])
def test_vectors(method, tmp_path):
    X, Y = np.eye(6, dtype=np.float32), np.eye(6)[:, :3] + np.eye(6)[:, 3:]
    model = method(n_jobs=1).fit(X, Y)
    save_model(tmp_path / "model", model)
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    for given in (X, sp.csr_matrix(X), pd.DataFrame(X)):
        found = loaded.predict(given, params={"k": 4})
        labels, _ = model.predict_topk(X, k=3)
        assert found["labels"].tolist() == labels.tolist()  # only three labels exist, so there is no padding


def test_a_folder_that_is_not_a_model_is_not_logged(tmp_path):
    with pytest.raises(FormatError, match="not a Labelwood model"):
        save_model(tmp_path / "out", tmp_path)
    assert not (tmp_path / "out").exists()
