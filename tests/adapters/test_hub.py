"""Push, pull and model cards with huggingface_hub, against a hub on this machine."""

import os

import numpy as np
import pytest

import labelwood
from labelwood import FormatError, LabelwoodError, LinearTree, TextClassifier
from labelwood.adapters.hub import model_card, prepare, pull, push

huggingface_hub = pytest.importorskip(
    "huggingface_hub", reason="huggingface_hub is not installed; use make test-adapters"
)

TEXTS = ["cats and dogs", "a dog barks", "tax law", "income tax"]
TAGS = [["pets"], ["pets"], ["law"], ["law", "money"]]
CARD = {"data": "Four sentences.", "metrics": {"P@1": 0.75, "nDCG@5": 0.5}, "license": "mit", "language": "en"}


@pytest.fixture
def texts():
    return TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS, TAGS)


def same_answers(left, right, rows):
    for one, other in zip(left.predict_topk(rows), right.predict_topk(rows), strict=True):
        np.testing.assert_array_equal(one, other)


def test_push_pull_and_load_from_the_cache(texts, tiny_hub, tmp_path):
    address = push(texts, "someone/tagger", endpoint=tiny_hub.address, token="hf_any", **CARD)
    assert address.startswith(f"{tiny_hub.address}/someone/tagger/commit/")
    where = {"cache_dir": tmp_path / "cache", "endpoint": tiny_hub.address}
    folder = pull("someone/tagger", **where)
    assert all(file.is_symlink() for file in folder.iterdir())
    same_answers(labelwood.load(folder, verify=True), texts, TEXTS)
    n_requests = len(tiny_hub.requests)
    assert pull("someone/tagger", **where, local_files_only=True) == folder
    assert len(tiny_hub.requests) == n_requests


def test_a_pulled_model_can_be_pushed_elsewhere(texts, tiny_hub, tmp_path):
    hub = {"endpoint": tiny_hub.address, "token": "hf_any"}
    push(texts, "someone/tagger", **hub)
    folder = pull("someone/tagger", cache_dir=tmp_path, **hub)
    push(folder, "another/tagger", **hub)
    own, copied = (tiny_hub.repositories[name] for name in ("someone/tagger", "another/tagger"))
    assert {name for name in own if own[name] != copied[name]} == {"README.md"}
    assert b'hub.pull("another/tagger")' in copied["README.md"]


def test_a_push_removes_arrays_that_the_new_model_lacks(tiny_hub):
    hub = {"endpoint": tiny_hub.address, "token": "hf_any"}
    X, Y = np.eye(4), np.eye(4)
    push(LinearTree(n_jobs=1, n_trees=2).fit(X, Y), "someone/vectors", **hub)
    assert "tree1.label.npy" in tiny_hub.repositories["someone/vectors"]
    push(LinearTree(n_jobs=1, n_trees=1).fit(X, Y), "someone/vectors", **hub)
    assert "tree0.label.npy" in tiny_hub.repositories["someone/vectors"]
    assert "tree1.label.npy" not in tiny_hub.repositories["someone/vectors"]


def test_the_card_shows_data_parameters_metrics_and_size(texts, tmp_path):
    folder = prepare(texts, tmp_path / "model", name="someone/tagger", **CARD)
    card = huggingface_hub.ModelCard.load(folder / "README.md")
    assert card.data.library_name == "labelwood"
    assert card.data.license == "mit"
    assert card.data.language == ["en"]
    assert card.data.pipeline_tag == "text-classification"
    assert "linear-tree" in card.data.tags
    size = sum(file.stat().st_size for file in folder.glob("*.npy"))
    for line in (
        "# tagger",
        "Four sentences.",
        "| rows | 4 |",
        "| labels | 3 |",
        "| LinearTree | n_trees | 1 |",
        "| tfidf encoder | sublinear_tf | True |",
        "| P@1 | 75.00 |",
        f"{size:,} bytes in {len(list(folder.glob('*.npy')))} arrays.",
    ):
        assert line in card.content.splitlines(), line
    same_answers(labelwood.load(folder), texts, TEXTS)


def test_a_card_without_metrics_says_so(tmp_path):
    LinearTree(n_jobs=1).fit(np.eye(4), np.eye(4)).save(tmp_path / "vectors")
    card = model_card(tmp_path / "vectors")
    assert "# vectors" in card
    assert "None were given." in card
    assert "tabular-classification" in card


def test_a_folder_that_is_not_empty_is_refused(texts, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(LabelwoodError, match="folder must be new or empty"):
        prepare(texts, tmp_path / "notes")
    with pytest.raises(FormatError, match="not a Labelwood model"):
        prepare(tmp_path / "notes", tmp_path / "out")
    assert os.listdir(tmp_path / "notes") == ["a.txt"]
