"""The rows of a living model: whole, a window or a sample, whatever the batches that brought them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import living_tree as twin

from labelwood import FormatError, _core
from labelwood.methods.online.row_store import NearestRows, RowBounds, RowStore, count_recent, window_start
from labelwood.run_context import RunContext
from labelwood.sparse import CSR, from_lists

BOUNDS = st.fixed_dictionaries(
    {
        "keep": st.sampled_from(["window", "sample"]),
        "max_rows": st.none() | st.integers(1, 60),
        "max_bytes": st.none() | st.integers(40, 4000),
        "half_life": st.none() | st.integers(1, 200),
        "seed": st.integers(0, 2**32 - 1),
    }
)


def rows(count: int, seed: int) -> tuple[CSR, CSR]:
    random = np.random.default_rng(seed)
    features = from_lists([sorted(random.choice(30, random.integers(0, 9), replace=False)) for _ in range(count)], 30)
    features = CSR(features.indptr, features.indices, random.random(features.nnz).astype(np.float32), 30)
    return features, from_lists(
        [sorted(random.choice(9, random.integers(0, 4), replace=False)) for _ in range(count)], 9
    )


def test_kept_by_hand():
    assert twin.kept([1] * 5, keep="window", max_rows=2) == [3, 4]
    assert twin.kept([5, 1, 4, 1, 2], keep="window", max_bytes=7) == [2, 3, 4]
    assert twin.recent(20, 2) == {8, 16}
    assert twin.stored([1] * 20, n_recent=2, keep="window", max_rows=2) == [8, 16, 18, 19]
    order = sorted(range(4), key=lambda p: twin.rank(p, keep="sample", seed=7, half_life=None))
    assert twin.kept([1] * 4, keep="sample", seed=7, max_rows=2) == sorted(order[:2])


@settings(max_examples=60, deadline=None)
@given(
    bounds=BOUNDS,
    cuts=st.lists(st.integers(1, 90), min_size=1, max_size=5),
    n_recent=st.integers(0, 20),
    trims=st.lists(st.booleans(), min_size=5, max_size=5),
    seed=st.integers(0, 99),
    reload=st.booleans(),
)
def test_the_store_keeps_what_the_twin_keeps(bounds, cuts, n_recent, trims, seed, reload):
    total, start = sum(cuts), 0
    X, Y = rows(total, seed)
    sizes = (8 * np.diff(X.indptr) + 4 * np.diff(Y.indptr) + 24).tolist()
    store = RowStore(RowBounds(**bounds))
    for is_trimmed, count in zip(trims, cuts, strict=False):
        stop = start + count
        store.append(X.rows(start, stop), Y.rows(start, stop))
        if is_trimmed or store.is_too_large(n_recent):
            store.trim(n_recent=n_recent)
        if reload:
            store = RowStore.restore(RowBounds(**bounds), store.arrays(), stop, 30, 9)
        start = stop
    store.trim(n_recent=n_recent)
    assert not store.trim(n_recent=n_recent)
    assert not store.is_too_large(n_recent)
    found = store.arrays()["positions"].tolist()
    assert found == twin.stored(sizes, n_recent=n_recent, **bounds)
    trained = store.training(total, n_recent, 30, 9)
    expected = twin.kept(sizes, leaving_out=twin.recent(total, n_recent), **bounds)
    assert trained.positions.tolist() == expected
    np.testing.assert_array_equal(trained.X.toarray(), X.toarray()[expected])
    np.testing.assert_array_equal(trained.Y.toarray(), Y.toarray()[expected])
    last = [position for position in found if position >= total // 2]
    assert store.after(total // 2).arrays()["positions"].tolist() == last
    np.testing.assert_array_equal(store.since(total // 2, 30, 9).X.toarray(), X.toarray()[last])
    recent = sorted(twin.recent(total, n_recent))
    assert count_recent(total, n_recent) == len(recent)
    np.testing.assert_array_equal(store.recent(n_recent, 30, 9).X.toarray(), X.toarray()[recent])


def test_a_sample_prefers_new_rows_by_half_life():
    bounds = RowBounds("sample", max_rows=2000, half_life=5000)
    kept, _ = bounds.kept(np.arange(20_000), np.ones(20_000, np.int64), np.inf)
    first, last = kept[5000:10_000].sum(), kept[15_000:].sum()
    assert 2.5 < last / first < 6.5  # two half-lives, of rows that are not all kept


@pytest.mark.parametrize(
    "damage",
    [
        lambda arrays: arrays.update(positions=arrays["positions"][::-1].copy()),
        lambda arrays: arrays.update(positions=arrays["positions"] + 100),
        lambda arrays: arrays.update(x_indices=arrays["x_indices"] + 30),
        lambda arrays: arrays.update(y_indptr=arrays["y_indptr"][:-1]),
        lambda arrays: arrays.update(x_data=arrays["x_data"].astype(np.float64)),
    ],
)
def test_damaged_rows_are_refused(damage):
    store = RowStore(RowBounds())
    store.append(*rows(20, 1))
    arrays = store.arrays()
    damage(arrays)
    with pytest.raises((FormatError, ValueError)):
        RowStore.restore(RowBounds(), arrays, 20, 30, 9)


def test_votes_by_hand():
    known, labels = [{1: 1.0}, {1: 1.0, 2: 1.0}, {3: 1.0}, {3: 0.5}], [[7], [8], [9], [6, 9]]
    assert [number for _, number in twin.nearest(known, {3: 2.0}, max_visits=99)] == [3, 2]
    assert twin.nearest(known, {3: 2.0}, max_visits=1) == []
    assert [number for _, number in twin.nearest(known, {1: 1.0}, max_visits=99)] == [0, 1]
    assert twin.votes([(1.0, 2), (0.5, 1)], labels) == pytest.approx({9: 16 / 17, 8: 1 / 17})
    assert twin.votes([(1.0, 2), (1.0, 3)], labels) == {9: 1.0, 6: 0.5}


FEATURES = st.dictionaries(st.integers(0, 9), st.sampled_from([0.25, 1.0, 3.0]), max_size=5)


@settings(max_examples=80, deadline=None)
@given(
    known=st.lists(st.tuples(FEATURES, st.sets(st.integers(0, 5), max_size=3)), min_size=1, max_size=12),
    query=FEATURES,
    n_neighbors=st.integers(1, 5),
    max_visits=st.sampled_from([4, 20, 1000]),
)
def test_the_nearest_rows_are_those_of_the_twin(known, query, n_neighbors, max_visits):
    features, labels = [one for one, _ in known], [sorted(one) for _, one in known]
    index = _core.NearestRows(n_neighbors, max_visits)
    X, Y = matrix([*features, query]), from_lists([*labels, []], 6)
    progressive = index.search_then_add(X, Y, 6)
    for number, row in enumerate([*features, query]):
        near = twin.nearest(features[:number], row, max_visits=max_visits)
        cosines = [cosine for cosine, _ in near]
        if len(near) > n_neighbors and cosines[n_neighbors - 1] - cosines[n_neighbors] < 1e-5:
            continue  # rounding decides which row votes
        found = dict(zip(progressive[0][number].tolist(), progressive[1][number].tolist(), strict=True))
        found.pop(-1, None)
        assert found == pytest.approx(twin.votes(near[:n_neighbors], labels), abs=1e-5)
    again = _core.NearestRows(n_neighbors, max_visits)
    again.add(X.rows(0, len(known)), Y.rows(0, len(known)))
    for one, other in zip(again.search(X.rows(len(known), len(known) + 1), 6, 1, None), progressive, strict=True):
        np.testing.assert_array_equal(one, other[-1:])
    assert again.n_rows == len(known) == index.n_rows - 1


def test_newer_rows_come_first_among_equals():
    index = _core.NearestRows(1, 1000)
    index.add(matrix([{1: 1.0}, {2: 1.0}, {1: 1.0}]), from_lists([[0], [1], [2]], 3))
    assert index.search(matrix([{1: 1.0}]), 1, 1, None)[0].tolist() == [[2]]


def matrix(rows):
    ids = from_lists([sorted(row) for row in rows], 10)
    data = np.array([row[feature] for row in rows for feature in sorted(row)], np.float32)
    return CSR(ids.indptr, ids.indices, data, 10)


def test_the_window_of_the_rows_that_vote():
    starts = [window_start(seen, 1024, 128) for seen in range(5000)]
    assert starts[1279] == 0
    assert max(seen - start for seen, start in enumerate(starts)) < 1024 + 256
    assert all(start % 256 == 0 for start in starts)
    store = RowStore(RowBounds())
    store.append(*rows(50, 3))
    index = NearestRows(3, 20)
    voting = store.since(20, 30, 9)
    index.add(voting.X, voting.Y)
    whole = NearestRows(3, 0)
    everything = store.since(0, 30, 9)
    whole.add(everything.X, everything.Y)
    X, run = everything.X, RunContext()
    assert (index.search(X, 5, run).labels != whole.search(X, 5, run).labels).any()
