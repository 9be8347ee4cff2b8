"""Every flag of ``labelwood serve`` has an effect that a test shows, or the service says that it has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from serving import Running, assert_flags_have_tests, online_model, wait_for

from labelwood.cli import main

HERE = Path(__file__).parent
# The test that shows the effect of a flag whatever the model is.
SHOWN = {
    "--host": "http/test_refusals.py::test_without_tokens_only_loopback",
    "--port": "http/test_running.py::test_serving_needs_a_model",
    "--workers": "http/test_running.py::test_several_processes",
    "--tokens": "http/test_refusals.py::test_roles",
    "--log": "test_event_log.py::test_requests_and_events",
    "--log-level": "test_event_log.py::test_levels_and_connections_ended_early",
    "--max-body": "http/test_connections.py::test_bodies_under_way_have_a_limit",
    "--max-bodies": "http/test_connections.py::test_bodies_under_way_have_a_limit",
    "--max-header": "test_flags.py::test_large_headers_are_taken_where_they_may_come",
    "--timeout": "test_flags.py::test_an_answer_that_takes_too_long",
    "--header-timeout": "test_event_log.py::test_levels_and_connections_ended_early",
    "--body-timeout": "http/test_connections.py::test_half_requests_are_closed",
    "--idle-timeout": "http/test_connections.py::test_idle_connections_are_closed",
    "--at-once": "http/test_refusals.py::test_too_many_at_once",
    "--max-connections": "http/test_connections.py::test_strangers_make_room_for_holders_of_a_token",
    "--max-per-address": "http/test_connections.py::test_strangers_make_room_for_holders_of_a_token",
    "--language": "http/test_names.py::test_deprecated_labels_are_learned_as_their_replacement",
    "--json": "test_flags.py::test_facts_go_to_stdout_and_remarks_to_stderr",
    "-q": "test_flags.py::test_facts_go_to_stdout_and_remarks_to_stderr",
}
UNSEEN = {"--n-jobs": "answers never depend on threads", "--refit-jobs": "likewise", "-v": "it goes to stderr"}
# Flags for models that learn: value, and the test that shows the effect.
LEARNING = {
    "--state": ("elsewhere", "test_processes.py::test_the_directories_of_killed_services_are_removed"),
    "--queue": ("10", "http/test_refusals.py::test_too_much_at_once"),
    "--snapshot-seconds": ("5", "http/test_running.py::test_several_processes"),
    "--keep": ("3", "test_flags.py::test_snapshots_are_kept"),
    "--drift-window": ("7", "http/test_running.py::test_drift_alarm"),
    "--drift-alarm": ("0.5", "http/test_running.py::test_drift_alarm"),
    "--vocabulary": ("uris.tsv", "http/test_names.py::test_another_vocabulary_and_a_wrong_language"),
}
# Flags for models that are trained again.
REFITS = {
    "--refit-seconds": ("60", "test_flags.py::test_refits_by_the_clock_and_none"),
    "--refit-jobs": ("2", None),
    "--no-refits": (None, "test_flags.py::test_refits_by_the_clock_and_none"),
}
NO_LEARN = "http/test_running.py::test_hot_swap_without_a_failed_request"


def words_of(flags: dict[str, tuple[str | None, str | None]], folder: Path) -> list[str]:
    places = ("--state", "--vocabulary")
    values = {flag: str(folder / value) if flag in places else value for flag, (value, _) in flags.items()}
    return [word for pair in values.items() for word in pair if word is not None]


def test_every_flag_has_a_test():
    tests = {**SHOWN, **{flag: test for flag, (_, test) in {**LEARNING, **REFITS}.items()}, "--no-learn": NO_LEARN}
    assert {flag for flag, test in tests.items() if test is None} <= set(UNSEEN)
    assert_flags_have_tests("serve", {flag: test for flag, test in tests.items() if test}, UNSEEN, HERE)


def said_by(*words: object) -> str:
    """What a service says on stderr from its start to its end."""
    code, said = Running(*words).stop()
    assert code == 0, said
    return said


def test_flags_that_the_model_does_not_use_are_told(model, still_model, tmp_path):
    names = tmp_path / "uris.tsv"
    names.write_text("<http://x.org/1>\tsomething else\n")
    flags, refits = words_of(LEARNING, tmp_path), words_of(REFITS, tmp_path)
    said = said_by(still_model, "--no-learn", *flags, *refits)
    for flag in (*LEARNING, *REFITS, "--no-learn"):
        assert f"labelwood serve: {flag} has no effect: " in said
    said = said_by(model, "--no-learn", *flags)
    for flag in LEARNING:
        assert f"labelwood serve: {flag} has no effect: " in said
    assert "--no-learn has no effect" not in said
    names.write_text("<http://x.org/1>\tpets\n")
    assert "has no effect" not in said_by(model, *flags)
    said = said_by(model, *refits)
    assert all(f"{flag} has no effect: {model} is never trained again" in said for flag in REFITS)
    online_model("living-tree").save(tmp_path / "living")
    said = said_by(tmp_path / "living", *refits)
    assert [f"{flag} has no effect: --no-refits is given" in said for flag in REFITS] == [True, True, False]


def test_flags_that_exclude_each_other(model, capsys):
    for words, complaint in (
        (["--log-level", "error"], "--log-level has no effect: it needs --log"),
        (["--max-body", "200", "--max-bodies", "100"], "--max-bodies has no effect: it must be at least --max-body"),
    ):
        assert main(["serve", str(model), *words]) == 2
        assert complaint in capsys.readouterr().err


def test_facts_go_to_stdout_and_remarks_to_stderr(still_model):
    loud, quiet = Running(still_model, "--no-learn", "--json"), Running(still_model, "--no-learn", "-q")
    assert loud.facts.keys() == quiet.facts.keys() >= {"url", "learns"}
    remark = "--no-learn has no effect"
    assert (remark in loud.stop()[1], remark in quiet.stop()[1]) == (True, False)


def test_large_headers_are_taken_where_they_may_come(serving, still_model):
    padding = {"x-padding": "y" * 20_000}
    assert serving(still_model).http.get("/healthz", headers=padding).status_code == 431
    assert serving(still_model, "--max-header", 40_000).http.get("/healthz", headers=padding).status_code == 200


def test_an_answer_that_takes_too_long(serving, still_model):
    batch = {"inputs": [{"text": "income tax " * 300}] * 1000}
    assert serving(still_model).http.post("/suggest-batch", json=batch).status_code == 200
    answer = serving(still_model, "--timeout", 0.001).http.post("/suggest-batch", json=batch)
    assert (answer.status_code, answer.json()["detail"]) == (503, "not answered within 0.001 seconds")


@pytest.mark.parametrize("keep", [2, 4])
def test_snapshots_are_kept(serving, model, keep):
    service = serving(model, "--keep", keep, "--snapshot-seconds", 0.05)
    folder = Path(service.facts["state"]) / "snapshots"
    for number in range(6):
        before = set(folder.iterdir())
        assert service.learn(number).status_code == 200
        wait_for(lambda before=before: set(folder.iterdir()) - before)
    service.stop()
    assert len([path for path in folder.iterdir() if path.name.isdigit()]) == keep


def test_refits_by_the_clock_and_none(serving, tmp_path):
    online_model("living-tree").save(tmp_path / "model")

    def refits(service: Running) -> float:
        return service.metric("refits_taken") + service.metric("refits_not_taken")

    timed = serving(tmp_path / "model", "--refit-seconds", 0.2, "--state", tmp_path / "timed")
    timed.learn(*range(3))
    wait_for(lambda: refits(timed) >= 1)
    never = serving(tmp_path / "model", "--no-refits", "--state", tmp_path / "never")
    due = serving(tmp_path / "model", "--state", tmp_path / "due")
    for number in range(60):
        assert never.learn(number).status_code == due.learn(number).status_code == 200
    wait_for(lambda: refits(due) >= 1)
    assert refits(never) == 0
