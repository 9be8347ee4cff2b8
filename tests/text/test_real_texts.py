"""The raw texts of eurlex57k: the encoder gives what scikit-learn gives, the model what the given vectors give."""

from __future__ import annotations

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from labelwood import LinearTree, TextClassifier, TfidfEncoder, data
from labelwood.metrics import evaluate


def test_real_prose_gives_what_scikit_learn_gives(real_data):
    texts = data.load_text(real_data("eurlex57k") / "test.raw.txt.xz", needs_labels=False).texts[:1500]
    options = {"sublinear_tf": True, "min_df": 2, "ngram_range": (1, 2), "max_features": 50_000}
    theirs = TfidfVectorizer(**options)
    expected = theirs.fit_transform(texts)
    expected.sort_indices()
    ours = TfidfEncoder(**options, n_jobs=2)
    found = ours.fit_transform(texts)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert np.array_equal(found.indptr, expected.indptr)
    assert np.array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.data, expected.data, atol=1e-6)


def test_texts_do_as_well_as_the_given_vectors(real_data):
    folder = real_data("eurlex57k")
    train, test = (
        data.load_text(folder / f"{part}.raw.txt.xz", labels=str(folder / f"{part}.txt.xz"))
        for part in ("train", "test")
    )
    model = TextClassifier(LinearTree(n_trees=3)).fit(train.texts, train.labels)
    truth = model.classifier_.encode_labels(test.labels)
    found = evaluate(truth, model.classifier_.topk_ids(model.encode(test.texts), 5), ks=(1, 3, 5))
    assert found["P@1"] >= 0.918
    assert found["P@3"] >= 0.820
    assert found["P@5"] >= 0.689
