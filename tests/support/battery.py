"""What the batteries of all methods share: the checks of a prediction, the bytes of a model, damaged arrays."""

from pathlib import Path

import numpy as np


def assert_sound(model, X, k):
    """The shape, order and padding that every prediction has."""
    labels, scores = model.predict_topk(X, k)
    assert labels.shape == scores.shape == (X.shape[0], k)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    ids = model.topk_ids(X, k).labels
    assert ids.dtype == np.int32
    assert ((ids >= -1) & (ids < model.n_labels_)).all()
    real = ids >= 0
    assert (real[:, :-1] >= real[:, 1:]).all(), "padding comes last"
    assert (scores[~real] == 0).all()
    falls = (np.diff(scores, axis=1) <= 0) | ~real[:, 1:]
    assert falls.all(), "best first"
    tied = (np.diff(scores, axis=1) == 0) & real[:, 1:]
    assert (np.diff(ids, axis=1)[tied] > 0).all(), "equal scores are ordered by label"
    for row in ids:
        kept = row[row >= 0]
        assert len(set(kept)) == len(kept), "a label appears once"
    return labels, scores


def saved_bytes(model, path: Path) -> dict[str, bytes]:
    model.save(path)
    return {file.name: file.read_bytes() for file in path.glob("*.npy")}


def damaged(array):
    """Ways in which an array of a model can be wrong though its file is whole."""
    if array.ndim and len(array):
        yield "shorter", array[:-1]
        yield "longer", np.concatenate([array, array[-1:]])
    if array.dtype.kind in "iu":
        bounds = np.iinfo(array.dtype)
        for position in {0, array.size // 2, array.size - 1} if array.size else ():
            for wild in {max(-5, bounds.min), min(1_000_000, bounds.max)}:
                changed = array.copy()
                changed.flat[position] = wild
                yield f"{wild} at {position}", changed
