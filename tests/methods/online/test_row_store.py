"""The rows of a living model: whole, a window or a sample, whatever the batches that brought them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import living_tree as twin

from labelwood import FormatError
from labelwood.methods.online.row_store import RowBounds, RowStore, count_recent
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
    assert twin.stored([1] * 20, n_recent=2, held=None, keep="window", max_rows=2) == [8, 16, 18, 19]
    assert twin.stored([1] * 20, n_recent=1, held=10, keep="window", max_rows=1) == [8, 9, 16, 19]
    order = sorted(range(4), key=lambda p: twin.rank(p, keep="sample", seed=7, half_life=None))
    assert twin.kept([1] * 4, keep="sample", seed=7, max_rows=2) == sorted(order[:2])


@settings(max_examples=60, deadline=None)
@given(
    bounds=BOUNDS,
    cuts=st.lists(st.integers(1, 90), min_size=1, max_size=5),
    n_recent=st.integers(0, 20),
    held=st.none() | st.integers(0, 4),
    seed=st.integers(0, 99),
    reload=st.booleans(),
)
def test_the_store_keeps_what_the_twin_keeps(bounds, cuts, n_recent, held, seed, reload):
    total, start, until = sum(cuts), 0, None
    X, Y = rows(total, seed)
    sizes = (8 * np.diff(X.indptr) + 4 * np.diff(Y.indptr) + 24).tolist()
    store = RowStore(RowBounds(**bounds))
    for number, count in enumerate(cuts):
        stop = start + count
        store.append(X.rows(start, stop), Y.rows(start, stop), n_recent=n_recent, held=until)
        if number == held:  # a refit begins, and holds its rows from here on
            store.trim(n_recent=n_recent)
            until = stop
        if reload:
            arrays = store.arrays(n_recent=n_recent, held=until)
            store = RowStore.restore(RowBounds(**bounds), arrays, stop, 30, 9)
        start = stop
    found = store.arrays(n_recent=n_recent, held=until)["positions"].tolist()
    assert found == twin.stored(sizes, n_recent=n_recent, held=until, **bounds)
    if until is not None:
        trained = store.training(until, n_recent, 30, 9)
        expected = twin.kept(sizes[:until], leaving_out=twin.recent(until, n_recent), **bounds)
        assert trained.positions.tolist() == expected
        np.testing.assert_array_equal(trained.X.toarray(), X.toarray()[expected])
        np.testing.assert_array_equal(trained.Y.toarray(), Y.toarray()[expected])
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
    store.append(*rows(20, 1), n_recent=0)
    arrays = store.arrays(n_recent=0)
    damage(arrays)
    with pytest.raises((FormatError, ValueError)):
        RowStore.restore(RowBounds(), arrays, 20, 30, 9)
