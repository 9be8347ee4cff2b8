"""Choosing a method and its parameters by trial, within a time budget: successive halving.

Some rows are held out. Every candidate is first trained on a small part of the other rows and measured on the held-out
rows. The better candidates go on to twice the rows, and so on, until the last round trains on all rows. The best
candidate of every method goes on even if others are ahead, time permitting, because methods gain differently from more
rows. A candidate whose next training would exceed the rest of the budget is dropped. What is left of the budget after
the last round is spent on the best of the dropped candidates.

Encoders of texts are tried with linear-tree in the first round. From the second round on, the candidates of other
methods and parameters take the best encoder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from labelwood.errors import LabelwoodError
from labelwood.estimator import TreeEstimator
from labelwood.methods import METHODS
from labelwood.metrics import Interval, inverse_propensities, label_counts, paired_intervals
from labelwood.metrics.scorers import Scorer, scorer
from labelwood.sparse import CSR, TopK
from labelwood.tuning.encodings import Rows, Texts, VectorRows, as_flags
from labelwood.tuning.time_limit import OutOfTimeError, time_limit

# Tried in this order; the defaults of every method come first, but the ranker, which takes most time, is last.
CANDIDATES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("linear-tree", {}),
    ("craft-forest", {}),
    ("one-vs-rest", {}),
    ("online-tree", {}),
    ("graph-forest", {}),
    ("ldsm-forest", {}),
    ("fastxml-forest", {}),
    ("linear-tree", {"C": 0.5}),
    ("linear-tree", {"n_trees": 3}),
    ("linear-tree", {"n_trees": 3, "C": 0.5}),
    ("linear-tree", {"n_trees": 3, "C": 0.25}),
    ("craft-forest", {"centroid_size": 200, "centroid_rows": 100}),
    ("craft-forest", {"centroid_size": 200, "centroid_rows": 100, "n_trees": 100}),
    ("craft-forest", {"centroid_share": 1.0, "centroid_size": 60, "centroid_rows": 100, "max_leaf": 30}),
    ("one-vs-rest", {"C": 0.5}),
    ("one-vs-rest", {"C": 0.25}),
    ("online-tree", {"epochs": 3}),
    ("graph-forest", {"graph": "tail", "epochs": 2}),
    ("ldsm-forest", {"weight_threshold": 0.0}),
    ("ranker", {}),
)
_HELD_OUT = 0.2
_MOST_HELD_OUT = 5000
_FEWEST_ROWS = 1500  # least rows of the first round, if the data have as many
_KEPT = 0.4  # share of the candidates that go on to the next round
_FIRST_ROUND = 0.4  # share of the budget that the first round may take
# A candidate is stopped after this many times its expected seconds: its share of the first round, or by its last.
_MOST_TIMES = 3.0
_LEAST_SECONDS = 1.0  # no candidate is stopped before this
_MAY_RETURN = ("behind others", "too slow for")  # openings of reasons to stop that more time may undo
_SLACK = 1.3  # twice the rows may take a little more than twice the time


@dataclass(frozen=True)
class Trial:
    """A candidate and its last round: the share of the rows, the score, the seconds and the bytes of the model.

    ``seconds`` covers training and measuring. ``stopped`` says why it went no further; empty after the last round.
    """

    method: str
    parameters: dict[str, Any]
    share: float = 0.0
    score: float = 0.0
    seconds: float = 0.0
    model_bytes: int = 0
    stopped: str = ""
    encoder: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The method, and what differs from its defaults and from those of the encoder, as flags."""
        return f"{self.method} {as_flags({**self.parameters, **self.encoder})}".rstrip()


@dataclass(frozen=True)
class Tuned:
    """The result of :func:`tune`: the best trial, all trials (best first), and the reason in words."""

    best: Trial
    trials: tuple[Trial, ...]
    metric: str
    n_held_out: int
    why: str

    def estimator(self, **changes: Any) -> TreeEstimator:
        """The winner, not fitted."""
        return METHODS[self.best.method](**{**self.best.parameters, **changes})


@dataclass(frozen=True)
class _Task:
    """The training rows in random order, the held-out rows, and how to measure."""

    rows: Rows
    Y: CSR
    Y_out: CSR
    scorer: Scorer
    settings: dict[str, Any]
    max_bytes: int | None


def tune(
    X: CSR | Texts,
    Y: CSR,
    *,
    budget: float = 600.0,
    metric: str = "P@5",
    max_bytes: int | None = None,
    candidates: Sequence[tuple[str, dict[str, Any]]] = CANDIDATES,
    n_jobs: int | None = None,
    random_state: int = 0,
    report: Callable[[Trial, float], None] | None = None,
) -> Tuned:
    """The best method and parameters for data, found in ``budget`` seconds; of texts, also of their encoder.

    ``metric`` is named as in :func:`labelwood.metrics.scorer`. ``max_bytes`` bounds the size of the model on all rows,
    which is estimated from the trials: bytes grow at most in proportion to rows. ``report`` is called
    with every trial as it ends, and with the share of the budget used.
    """
    if budget <= 0:
        raise LabelwoodError(f"tune: budget must be greater than 0 seconds; got {budget}")
    if not candidates:
        raise LabelwoodError("tune: at least one candidate is needed; got none")
    task = _split(X, Y, metric, {"n_jobs": n_jobs, "random_state": random_state}, max_bytes, random_state)
    shares = _shares(task.Y.n_rows)
    running = [Trial(method, dict(parameters)) for method, parameters in candidates]
    if isinstance(X, Texts):
        running[1:1] = [replace(running[0], encoder=own) for own in X.variants()]
    budget_left = _Budget(budget)
    search = _Search(task, budget_left, report)
    for number, share in enumerate(shares):
        allowed = budget_left.seconds * (_FIRST_ROUND if number == 0 and len(shares) > 1 else 1.0)
        measured = search.round(running, share, allowed)
        if number + 1 == len(shares):
            search.ended += measured
            break
        running, dropped = _promote(measured, budget_left.seconds, shares[number + 1] / share, len(shares) - number - 1)
        search.ended += dropped
        running = _with_best_encoder(running) if number == 0 else running
    search.spend()
    return _conclude(search.ended, search.predictions, task, metric)


class _Budget:
    """Seconds that are left."""

    def __init__(self, seconds: float) -> None:
        self._total, self._begin = seconds, time.monotonic()

    @property
    def seconds(self) -> float:
        return self._total - (time.monotonic() - self._begin)

    @property
    def used(self) -> float:
        """The share of the budget that is used."""
        return min(1.0, 1 - self.seconds / self._total)


class _Search:
    """The trials so far: those that ended, and the predictions of those that came to all rows."""

    def __init__(self, task: _Task, budget: _Budget, report: Callable[[Trial, float], None] | None) -> None:
        self._task, self._budget, self._report = task, budget, report
        self.ended: list[Trial] = []
        self.predictions: dict[str, TopK] = {}

    def round(self, running: Sequence[Trial], share: float, allowed: float) -> list[Trial]:
        """Try every candidate on a share of the rows, within so many seconds; return those that were measured."""
        started = time.monotonic()
        measured: list[Trial] = []
        slow: list[Trial] = []
        for trial in sorted(running, key=lambda trial: trial.seconds):  # cheap ones get their turn
            if any(_is_dearer(trial, other) for other in slow):
                self.ended.append(replace(trial, stopped="took too long with fewer changes"))
                continue
            rest = allowed - (time.monotonic() - started)
            fair = trial.seconds * share / trial.share if trial.share else allowed / len(running)
            done = self._try(trial, share, min(rest, max(_LEAST_SECONDS, _MOST_TIMES * fair)))
            if "took more" in done.stopped:
                slow.append(done)
            (self.ended if done.stopped else measured).append(done)
        self._task.rows.forget()
        return measured

    def spend(self) -> None:
        """Spend what is left of the budget on all rows: dropped candidates, and others with the best encoder.

        The best by their last score come first.
        """
        finished = [trial for trial in self.ended if not trial.stopped]
        tried = {trial.name for trial in self.ended}
        again = [trial for trial in _with_best_encoder(finished) if trial.name not in tried]
        waiting = [trial for trial in self.ended if trial.stopped.startswith(_MAY_RETURN) and trial.share > 0]
        for trial in sorted([*waiting, *again], key=lambda trial: -trial.score):
            needed = _SLACK * trial.seconds / trial.share
            if needed < self._budget.seconds:
                done = self._try(trial, 1.0, min(self._budget.seconds, max(_LEAST_SECONDS, _MOST_TIMES * needed)))
                if not done.stopped:
                    self.ended = [*(other for other in self.ended if other.name != trial.name), done]

    def _try(self, trial: Trial, share: float, limit: float) -> Trial:
        done, top = _try(self._task, trial, share, limit)
        if top is not None:
            self.predictions[done.name] = top
        if self._report is not None:
            self._report(done, self._budget.used)
        return done


def _is_dearer(trial: Trial, other: Trial) -> bool:
    """True if a candidate is another with more changes, so that it takes as long at least."""
    same = trial.method == other.method and trial.encoder == other.encoder
    return same and other.parameters.items() <= trial.parameters.items()


def _with_best_encoder(running: list[Trial]) -> list[Trial]:
    """The candidates with the encoder of the best one, where they have the default encoder."""
    best = max(running, key=lambda trial: trial.score, default=None)
    if best is None or not best.encoder:
        return running
    plain = replace(best, encoder={}).name
    seconds = next((trial.seconds for trial in running if trial.name == plain), best.seconds)
    slower = max(1.0, best.seconds / max(seconds, 1e-9))
    return [
        trial
        if trial.encoder or trial.name == plain
        else replace(trial, encoder=best.encoder, seconds=slower * trial.seconds)
        for trial in running
    ]


def _split(X: CSR | Texts, Y: CSR, metric: str, settings: dict[str, Any], max_bytes: int | None, seed: int) -> _Task:
    labelled = np.flatnonzero(np.diff(Y.indptr) > 0)
    if len(labelled) < 10:
        raise LabelwoodError(f"tune: at least 10 rows with labels are needed; got {len(labelled)}")
    order = np.random.default_rng(seed).permutation(labelled)
    n_out = min(_MOST_HELD_OUT, max(1, round(_HELD_OUT * len(order))))
    out, rest = np.sort(order[:n_out]), order[n_out:]
    inner = Y.take(rest)
    weights = inverse_propensities(label_counts(inner), inner.n_rows)
    rows = X.split(rest, out) if isinstance(X, Texts) else VectorRows(X.take(rest), X.take(out))
    return _Task(rows, inner, Y.take(out), scorer(metric, inv_propensity=weights), settings, max_bytes)


def _shares(n_rows: int) -> list[float]:
    """The shares of the rows that the rounds train on, doubling up to 1."""
    shares = [1.0]
    while len(shares) < 4 and n_rows * shares[0] / 2 >= _FEWEST_ROWS:
        shares.insert(0, shares[0] / 2)
    return shares


def _try(task: _Task, trial: Trial, share: float, limit: float) -> tuple[Trial, TopK | None]:
    """Train and measure one candidate on a share of the rows; its predictions, if it came to all rows."""
    n_rows = max(1, round(share * task.Y.n_rows))
    settings = {**trial.parameters, **task.settings}
    model = METHODS[trial.method](**settings)
    begin = time.monotonic()
    try:
        if limit <= 0:
            raise OutOfTimeError
        with time_limit(limit):
            X, X_out = task.rows.vectors(trial.encoder, n_rows)
            model.fit(X, task.Y.rows(0, n_rows))
            score = task.scorer(model, X_out, task.Y_out)
            seconds = time.monotonic() - begin
    except OutOfTimeError:
        spent = time.monotonic() - begin
        reason = f"took more than {spent:.1f} s" if limit > 0 else "had no time left"
        return replace(trial, stopped=f"{reason} on {share:.0%} of the rows"), None
    except LabelwoodError as error:
        if not trial.encoder:
            raise
        return replace(trial, stopped=f"failed: {error}"), None
    size = sum(array.nbytes for array in model.to_saved()[1].values())
    done = replace(trial, share=share, score=score, seconds=seconds, model_bytes=size, stopped="")
    if task.max_bytes is not None and size / share > task.max_bytes:
        return replace(done, stopped=f"would need {size / share / 1e6:.0f} MB on all rows"), None
    return done, model.topk_ids(X_out, task.scorer.k) if share == 1 else None


def _promote(measured: list[Trial], left: float, grows: float, rounds_left: int) -> tuple[list[Trial], list[Trial]]:
    """The candidates that go on: the best of every method, then the others by score, as long as time allows."""
    by_score = sorted(measured, key=lambda trial: -trial.score)
    leaders: dict[str, Trial] = {}  # by method
    for trial in by_score:
        leaders.setdefault(trial.method, trial)
    n_kept = max(1, round(_KEPT * len(by_score)))
    wanted = [*leaders.values(), *(t for t in by_score if t is not leaders[t.method])]
    # Leave time for the later rounds: each has `grows` times the rows of the one before.
    allowed = left / sum(grows**later * _KEPT**later for later in range(rounds_left))
    kept: list[Trial] = []
    dropped: list[Trial] = []
    for trial in wanted:
        needed = trial.seconds * grows * _SLACK
        if trial is not leaders[trial.method] and len(kept) >= max(n_kept, len(leaders)):
            dropped.append(replace(trial, stopped=f"behind others on {trial.share:.0%} of the rows"))
        elif needed > allowed and kept:
            dropped.append(replace(trial, stopped=f"too slow for the budget: {needed:.0f} s more"))
        else:
            kept.append(trial)
            allowed -= needed
    return kept, dropped


def _conclude(ended: list[Trial], predictions: dict[str, TopK], task: _Task, metric: str) -> Tuned:
    ranked = sorted(ended, key=lambda trial: (bool(trial.stopped), -trial.share, -trial.score, trial.name))
    scored = [trial for trial in ranked if trial.share > 0]
    fitting = [trial for trial in scored if not trial.stopped.startswith("would need")]
    if not fitting:
        raise LabelwoodError(
            "tune: no candidate could be trained within the budget and the memory; "
            f"{ranked[0].name}: {ranked[0].stopped}"
        )
    best = fitting[0]
    why = f"{best.name} has the highest {metric}, {100 * best.score:.2f}, on {task.Y_out.n_rows:,} rows held out"
    rival = next((trial for trial in fitting if trial.method != best.method and trial.share == best.share), None)
    if rival is not None:
        why += f"; the best of another method, {rival.name}, has {100 * rival.score:.2f}"
        difference = _difference(best, rival, predictions, task)
        if difference is not None:
            sure = "beyond chance" if difference.low > 0 else "within what chance could do"
            why += f" ({100 * difference.low:+.2f} to {100 * difference.high:+.2f} for the former, {sure})"
    return Tuned(best, tuple(ranked), metric, task.Y_out.n_rows, why + ".")


def _difference(best: Trial, rival: Trial, predictions: dict[str, TopK], task: _Task) -> Interval | None:
    """The interval of the difference, if both reached the last round and the metric is a mean over rows."""
    if not {best.name, rival.name} <= set(predictions):
        return None
    pair = [(task.Y_out, predictions[trial.name]) for trial in (rival, best)]
    found = paired_intervals(pair[0], pair[1], [task.scorer.k])
    return found.get(f"{task.scorer.metric}@{task.scorer.k}")
