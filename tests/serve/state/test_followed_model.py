"""A model that is replaced on disk is taken up."""

from __future__ import annotations

from serving import LABELS, TEXTS

from labelwood import LinearTree, TextClassifier
from labelwood.serve.state.followed_model import FollowedModel


def test_a_model_that_is_replaced_is_taken_up(still_model):
    followed = FollowedModel(lambda: still_model, n_jobs=1)
    try:
        with followed.read() as old:
            assert "more" not in old.classes_.tolist()
        other = TextClassifier(LinearTree(n_jobs=1)).fit(TEXTS, [[*labels, "more"] for labels in LABELS])
        other.save(still_model)
        followed.look()
        with followed.read() as new:
            assert "more" in new.classes_.tolist()
        assert old.predict_topk(["tax"], k=1)[0].tolist() == [["law"]]  # a reader may still hold the old model
        (still_model / "manifest.json").write_text("{}")
        assert not followed.look()
        with followed.read() as kept:
            assert kept is new
    finally:
        followed.close()
