"""Lists after labels were retired or merged, against a plain loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelwood.scoring.current_lists import current_lists, targets_of
from labelwood.sparse import TopK


@given(st.data())
def test_the_best_score_of_merged_labels_counts(data):
    n_labels, k = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 6))
    kept = data.draw(st.sets(st.integers(0, n_labels - 1)))
    others = sorted(set(range(n_labels)) - kept)
    choices = st.sampled_from([-1, *sorted(kept)])
    moved = {label: data.draw(choices) for label in others}
    ids = data.draw(st.lists(st.permutations(range(n_labels)), min_size=1, max_size=3))
    length = data.draw(st.integers(1, n_labels))
    labels = np.array([row[:length] for row in ids], np.int32)
    scores = np.sort(np.random.default_rng(0).random(labels.shape).astype(np.float32))[:, ::-1]
    found = current_lists(TopK(labels, scores), targets_of(moved, n_labels), k)
    for row in range(len(labels)):
        best = {}
        for label, score in zip(labels[row].tolist(), scores[row].tolist(), strict=True):
            target = moved.get(label, label)
            if target >= 0:
                best.setdefault(target, score)
        wanted = (list(best.items()) + [(-1, 0.0)] * k)[:k]
        assert list(zip(found.labels[row].tolist(), found.scores[row].tolist(), strict=True)) == wanted
