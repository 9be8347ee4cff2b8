"""The lock of a growing model: which methods take it, copies that have their own, waiting that ends."""

import copy
import inspect
import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone

from labelwood import OnlineForest, OnlineTree
from labelwood.methods.online.model_lock import changes, reads

KINDS = [OnlineTree, OnlineForest]

# Methods that do without the lock: they read one value, or only parameters, or are steps of methods that take it.
FREE = {
    "begun", "can_learn", "changing", "classifier_", "decided", "decisions", "describe", "encode", "estimate",
    "explain_one", "feature_namer", "fit", "fit_rows", "follow", "from_saved", "get_metadata_routing", "get_params",
    "id_of", "knows_any", "label_entries", "label_names", "label_records", "labels", "learn_rows", "learn_tree", "load",
    "main_member", "n_labels_", "n_seen_", "n_threads", "predict_then_learn", "preset", "reading", "row_in_tree",
    "save", "set_lifecycle", "set_params",
    "set_fit_request", "set_partial_fit_request", "set_predict_proba_request", "set_predict_request",
    "set_score_request", "set_threads", "threshold_", "topk_by_tree", "topk_rows", "warm_start_from",
    "with_classifier", "objective",
    "batch_rows_and_age", "begin_refit", "can_refit", "drop_refit", "end_refit", "refit_due", "refit_under_way",
    "moved_labels", "vocabulary_",
}  # fmt: skip
READING = {
    "classes_", "coef_of", "encode_labels", "explain", "freeze", "predict", "predict_proba", "predict_topk", "score",
    "thresholds_of", "to_saved", "top_features", "topk_ids", "trees",
}  # fmt: skip
CHANGING = {"calibrate", "choose_thresholds", "partial_fit", "progressive", "test_then_learn", "use_vocabulary"}


def takes_lock(kind, name, wrap):
    found = inspect.getattr_static(kind, name)
    code = getattr(getattr(found, "fget", found), "__code__", None)
    return code is wrap(len).__code__


@pytest.mark.parametrize("kind", KINDS)
def test_every_public_method_is_decided_upon(kind):
    public = {
        name for name in dir(kind)
        if not name.startswith("_") and (callable(getattr(kind, name)) or isinstance(getattr(kind, name), property))
    }  # fmt: skip
    assert public <= FREE | READING | CHANGING
    assert {name for name in public if takes_lock(kind, name, changes)} == CHANGING
    assert {name for name in public if takes_lock(kind, name, reads)} >= READING


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_has_no_lock(kind):
    """Tools that list the members of a class, as the API page does, meet the descriptors."""
    assert {"_reading", "_changing"} <= {name for name, _ in inspect.getmembers(kind)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "duplicate", [clone, copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_copy_has_a_lock_of_its_own(kind, duplicate):
    model = kind(n_jobs=1).partial_fit([{0: 1.0}], [["a"]])
    with model.changing:
        other = duplicate(model)
    held, free = threading.Event(), threading.Event()

    def hold():
        with model.changing:
            held.set()
            free.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    try:
        assert other.partial_fit([{1: 1.0}], [["b"]]).n_labels_ >= 1
    finally:
        free.set()
        thread.join()
    assert model.classes_.tolist() == ["a"]


def test_fit_keeps_the_lock_of_the_object():
    model = OnlineTree(n_jobs=1)
    lock = model.reading
    model.fit(np.eye(3, dtype=np.float32), [["a"], ["b"], ["c"]])
    assert model.reading is lock


def test_a_method_that_reads_must_not_change_the_model():
    model = OnlineTree(n_jobs=1).partial_fit([{0: 1.0}], [["a"]])
    with model.reading, pytest.raises(RuntimeError, match="cannot change a model while it reads it"):
        model.partial_fit([{1: 1.0}], [["b"]])
    assert model.partial_fit([{1: 1.0}], [["b"]]).n_labels_ == 2


def test_readers_share_and_a_waiting_writer_comes_before_new_readers():
    model = OnlineTree(n_jobs=1).partial_fit([{0: 1.0}], [["a"]])
    seen = []
    with model.reading:
        reader = threading.Thread(target=lambda: seen.append(len(model.predict_topk([{0: 1.0}], 1)[0])))
        reader.start()
        reader.join(60)
        assert seen == [1]
        writer = threading.Thread(target=lambda: seen.append(model.partial_fit([{1: 1.0}], [["b"]]).n_labels_))
        writer.start()
        assert model.predict_topk([{0: 1.0}], 1)[0].tolist() == [["a"]]  # this thread reads already
        assert seen == [1]
    writer.join(60)
    assert seen == [1, 2]


def test_two_threads_start_one_model():
    model = OnlineTree(n_jobs=1)
    start = threading.Barrier(4)

    def learn(number):
        start.wait(60)
        model.partial_fit([{number: 1.0}], [[f"label {number}"]])

    threads = [threading.Thread(target=learn, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert model.n_seen_ == 4
    assert sorted(model.classes_.tolist()) == [f"label {number}" for number in range(4)]
