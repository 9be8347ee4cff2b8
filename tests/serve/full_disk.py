"""Fills the disk that a service's state is on; run by test_crash.py in a mount namespace with a small tmpfs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from serving import Running, assert_same_state, example

from labelwood import load
from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.recovery import restore


def main(model: Path, disk: Path) -> None:
    state = disk / "state"
    expected = load(model)
    service = Running(model, "--state", state, "--snapshot-seconds", 0.5)
    learned = refused = 0
    while refused < 20:
        if learned == 40 and not refused:
            fill(disk)
        answer = service.learn(learned)
        if answer.status_code == 200:
            one = example(learned)
            estimator_of(expected).partial_fit(expected.encode([one["text"]]), [one["labels"]])
            learned += 1
            continue
        assert answer.status_code == 507, answer.text
        assert "No space left" in answer.json()["detail"]
        assert service.suggest("tax law", k=1)[0]["label"] == "law"
        assert service.http.get("/readyz").json()["learning"]
        assert service.metric("learning_refused") == 1
        refused += 1
    (disk / "ballast").unlink()
    for _ in range(5):  # there is room again, and learning goes on where it was
        assert service.learn(learned).status_code == 200
        one = example(learned)
        estimator_of(expected).partial_fit(expected.encode([one["text"]]), [one["labels"]])
        learned += 1
    assert service.metric("learning_refused") == 0
    service.kill()
    assert_same_state(restore(state).model, expected)
    print(f"{learned} examples learned, {refused} refused with 507, none lost")


def fill(disk: Path) -> None:
    """Write until nothing more fits."""
    with (disk / "ballast").open("ab", buffering=0) as file:
        for size in (100_000, 1000, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
