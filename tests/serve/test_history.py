"""Gauges over time: bounded memory, even steps, and the route that tells them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelwood.serve.history import WATCHED, History
from labelwood.serve.telemetry import Metrics


@given(st.lists(st.floats(0, 50), max_size=300), st.integers(2, 20))
def test_samples_are_bounded_and_apart(steps, most):
    now = [0.0]
    history = History(every=5, most=most, clock=lambda: now[0])
    for step in steps:
        now[0] += step
        history.note({"labels": now[0]})
    assert len(history.seconds) <= most
    assert (np.diff(history.seconds) >= 5).all()
    assert history.values()["labels"] == history.seconds
    if steps:
        assert history.seconds[0] <= steps[0]
        assert now[0] - history.seconds[-1] <= history.every + max(steps)


def test_a_clock_that_goes_back_does_not_stop_the_samples():
    times = iter([100.0, 50.0, 60.0])
    history = History(every=5, clock=lambda: next(times))
    for _ in range(3):
        history.note({})
    assert history.seconds == [100.0, 50.0, 60.0]


def test_every_watched_gauge_exists():
    assert set(WATCHED) <= Metrics().gauges().keys()


def test_the_route(serving, model):
    service = serving(model)
    told = service.http.get("/history").json()
    assert len(told["seconds"]) >= 1
    assert told["values"]["labels"][0] == 4
    assert set(told["values"]) == set(WATCHED)
    page = service.http.get("/watch")
    assert page.headers["content-type"].startswith("text/html")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


def test_the_figures_need_a_token_and_the_page_does_not(serving, model, tmp_path):
    (tmp_path / "tokens").write_text("read reading-token-0001\n")
    service = serving(model, "--tokens", tmp_path / "tokens")
    assert service.http.get("/watch").status_code == 200
    assert service.http.get("/history").status_code == 401
    known = {"Authorization": "Bearer reading-token-0001"}
    assert service.http.get("/history", headers=known).status_code == 200
