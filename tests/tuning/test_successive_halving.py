"""Tuning: it keeps to its budget, drops what is slow, large or behind, and says why."""

import threading
import time

import numpy as np
import pytest

from labelwood import LabelwoodError
from labelwood.data.synth import Shape, synth
from labelwood.sparse import CSR, from_lists
from labelwood.tuning import Trial, tune
from labelwood.tuning.rules_of_thumb import rule_of_thumb
from labelwood.tuning.successive_halving import _promote, _shares
from labelwood.tuning.time_limit import OutOfTimeError, time_limit

QUICK = (("linear-tree", {}), ("linear-tree", {"C": 1e-6}), ("online-tree", {}))


@pytest.fixture(scope="module")
def rows():
    dataset = synth(Shape(4000, 40, 300), seed=0)
    return dataset.X, dataset.Y


def test_the_best_wins_and_all_are_told(rows):
    told = []
    found = tune(*rows, budget=60, candidates=QUICK, n_jobs=1, report=lambda trial, used: told.append(trial))
    assert len(found.trials) == 3
    assert found.best.share == 1
    assert found.best.score == max(trial.score for trial in found.trials if trial.share == 1)
    assert found.best.parameters == {} or found.best.method == "online-tree"
    assert found.best.name in found.why
    assert f"{found.n_held_out:,} rows held out" in found.why
    assert found.n_held_out == 800
    assert {trial.share for trial in told} == {0.5, 1.0}
    model = found.estimator(n_jobs=1).fit(*rows)
    assert model.method_name == found.best.method


def test_the_same_seed_finds_the_same(rows):
    first, again = (tune(*rows, budget=60, candidates=QUICK, n_jobs=1) for _ in range(2))
    assert [(t.name, t.score, t.share) for t in first.trials] == [(t.name, t.score, t.share) for t in again.trials]


def test_the_budget_holds(rows):
    slow = (("linear-tree", {}), ("ldsm-forest", {"n_trees": 100_000}))
    begin = time.process_time()
    found = tune(*rows, budget=2, candidates=slow, n_jobs=1)
    assert time.process_time() - begin < 6
    assert found.best.method == "linear-tree"
    assert "took more than" in next(t for t in found.trials if t.method == "ldsm-forest").stopped


def test_models_that_are_too_large_are_left_out(rows):
    found = tune(*rows, budget=60, candidates=QUICK, n_jobs=1, max_bytes=10_000)
    assert all(trial.stopped.startswith("would need") for trial in found.trials if trial is not found.best)
    assert found.best.parameters == {"C": 1e-6}, "the only one whose weights are all cut away"
    with pytest.raises(LabelwoodError, match="no candidate could be trained"):
        tune(*rows, budget=60, candidates=QUICK[:1], n_jobs=1, max_bytes=10)


def test_the_leader_of_every_method_goes_on():
    measured = [Trial("a", {"x": number}, share=0.5, score=0.9 - number / 100, seconds=1.0) for number in range(8)] + [
        Trial("b", {}, share=0.5, score=0.1, seconds=1.0)
    ]
    kept, dropped = _promote(measured, left=1000, grows=2, rounds_left=1)
    assert {trial.method for trial in kept} == {"a", "b"}
    assert len(kept) == 4
    assert all("behind others" in trial.stopped for trial in dropped)
    kept, dropped = _promote(measured, left=6, grows=2, rounds_left=1)
    assert [trial.name for trial in kept] == ["a --x 0", "b"]
    assert "too slow for the budget" in dropped[0].stopped


def test_rounds_double_up_to_all_rows():
    assert _shares(100) == [1.0]
    assert _shares(4000) == [0.5, 1.0]
    assert _shares(10**6) == [0.125, 0.25, 0.5, 1.0]


def test_wrong_requests_are_refused(rows):
    for wrong, message in (({"budget": 0}, "budget"), ({"candidates": ()}, "candidate"), ({"metric": "Q"}, "scorer")):
        with pytest.raises(LabelwoodError, match=message):
            tune(*rows, **wrong)
    with pytest.raises(LabelwoodError, match="at least 10 rows"):
        tune(from_lists([[0]] * 5, 1), from_lists([[0]] * 5, 1))


def test_the_limit_ends_what_takes_too_long_and_nothing_else():
    with pytest.raises(OutOfTimeError), time_limit(0.05):
        time.sleep(5)
    with time_limit(0.05):
        pass
    time.sleep(0.1)
    ended = []

    def elsewhere():  # signals reach the main thread only
        with time_limit(0.01):
            time.sleep(0.05)
        ended.append(True)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert ended


def test_code_that_answers_the_alarm_with_an_error_of_its_own_is_out_of_time_too():
    def read_format():
        try:
            time.sleep(5)
        except OutOfTimeError:
            raise ValueError("not a valid format") from None

    with pytest.raises(OutOfTimeError), time_limit(0.05):
        read_format()
    with pytest.raises(ValueError, match="before the alarm"), time_limit(5):
        raise ValueError("before the alarm")


def matrix(n_rows, n_cols, per_row):
    columns = np.tile(np.arange(per_row, dtype=np.int32), n_rows)
    indptr = np.arange(0, n_rows * per_row + 1, per_row, dtype=np.int64)
    return CSR(indptr, columns, np.ones(len(columns), np.float32), n_cols)


@pytest.mark.parametrize(
    ("X", "Y", "method"),
    [
        (matrix(100, 1000, 50), matrix(100, 50, 20), "craft-forest"),
        (matrix(100, 1000, 50), matrix(100, 50, 2), "one-vs-rest"),
        (matrix(20_000, 1000, 50), matrix(20_000, 200_000, 2), "linear-tree"),
    ],
)
def test_rules_of_thumb(X, Y, method):
    choice = rule_of_thumb(X, Y)
    assert choice.method == method
    assert choice.estimator(n_jobs=1).method_name == method
    assert choice.why
