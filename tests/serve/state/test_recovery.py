"""The state is rebuilt from snapshot and log, whatever a record holds and whatever a service removes meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.sparse import csr_array
from serving import TEXTS, assert_same_state, learn, taught, teach

from labelwood import HashingEncoder, OnlineTree, TextClassifier, load
from labelwood.errors import FormatError
from labelwood.methods.text_classifier import estimator_of
from labelwood.serve.state.frames import OPENINGS, encode_frame
from labelwood.serve.state.log import LogWriter, read_log
from labelwood.serve.state.recovery import restore, snapshots
from labelwood.serve.state.store import Store
from labelwood.serve.state.writer import Writer

POISON = {"kind": "learn", "examples": [{"text": "tax", "labels": [2**31 + 5]}], "key": "p", "digest": "d"}


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """A model whose labels are numbers."""
    encoder = HashingEncoder(n_features=2**12, n_jobs=1)
    model = TextClassifier(OnlineTree(n_jobs=1, max_leaf=4), encoder).fit(TEXTS[:2], csr_array([[1, 0], [0, 1]]))
    model.save(tmp_path / "numbered")
    return tmp_path / "numbered"


@pytest.mark.parametrize("label", [2**31 + 5, 2**31 - 2, 10**8, 1002])
def test_a_large_number_behind_a_swap_to_numbered_labels(writer_at, numbered, label):
    """The record was checked against the model before the swap, whose labels are names."""
    writer = writer_at()
    record = {**POISON, "examples": [{"text": "tax", "labels": [label]}]}
    writer.swap(numbered).result(60)
    futures = [writer.submit(one) for one in (record, learn_number(1001), record)]
    answers = [future.result(60).answer for future in futures]
    assert "numbers from 0 to 1001" in answers[0]["refused"]
    assert answers[1]["learned"] == 1
    assert answers[2] == answers[0]
    writer.close(snapshot=False)
    writer = writer_at(numbered)
    assert writer.submit(record).result(60).answer == answers[0]
    assert estimator_of(writer.store.machine.model).n_labels_ == 1002
    assert writer.store.machine.skipped == 0


def learn_number(number: int) -> dict[str, object]:
    return {"kind": "learn", "examples": [{"text": "tax", "labels": [number]}]}


@pytest.mark.parametrize("label", [2**31 + 5, 2**31 - 2])
def test_a_poisoned_log_of_version_1(tmp_path, numbered, label):
    """A log that an earlier version wrote, and that no later one could start from."""
    state = tmp_path / "old"
    store = Store(state, model=numbered)
    store.close()
    bad = {**POISON, "examples": [{"text": "tax", "labels": [label]}]}
    frames = [[{"kind": "model", "model": f"{1:020d}"}], [learn_number(5000), bad, learn_number(1)]]
    data = encode_frame(1, 0, frames[0]) + encode_frame(2, 0, frames[1])
    (state / "log" / f"{1:020d}.log").write_bytes(OPENINGS[1] + data)
    for _ in range(2):
        writer = Writer(Store(state))
        assert "numbers from 0 to" in writer.submit(bad).result(60).answer["refused"]
        machine = writer.store.machine
        assert (machine.learned, estimator_of(machine.model).n_labels_) == (2, 5001)
        writer.close()


def test_a_record_that_cannot_be_applied_is_skipped_every_time(writer_at, tmp_path, model, caplog):
    writer = writer_at()
    writer.submit(learn(1)).result()
    writer.close(snapshot=False)
    log = LogWriter(tmp_path / "state" / "log")
    log.append([learn(2), {"kind": "nonsense", "key": "k", "digest": "d"}, learn(3)])
    log.append([learn(4)])
    log.close()
    for _ in range(2):
        writer = writer_at()
        assert writer.store.machine.skipped == 1
        assert writer.gauges()["records_skipped"] == 1
        assert "record 4 cannot be applied and is skipped: KeyError" in caplog.text
        again = writer.submit({"kind": "nonsense", "key": "k", "digest": "d"}).result()
        assert again.answer == {"refused": "this record cannot be applied (KeyError)", "sequence": 4}
        assert_same_state(writer.store.machine.model, taught(model, [1, 2, 3, 4]))
        writer.close(snapshot=False)


def test_a_log_that_begins_behind_the_snapshot_is_an_error(writer_at, tmp_path):
    """Without a service beside, there is nothing to wait for."""
    for start in (0, 10):
        writer = writer_at()
        writer.submit(learn(*range(start, start + 10))).result()
        writer.submit(learn(start + 20)).result()
        writer.close()
    for path in sorted((tmp_path / "state" / "log").glob("*.log"))[:-1]:
        path.unlink()
    newest = snapshots(tmp_path / "state")[-1]
    (newest / "state.json").unlink()
    with pytest.raises(FormatError, match="the log begins with record 6, but the snapshot before it ends with 3"):
        restore(tmp_path / "state")


RESTORER = """
import itertools, json, sys, threading
from pathlib import Path
sys.path[:0] = sys.argv[4:]
import os
import httpx
from injection import Faults
from serving import example
from labelwood.serve.state.recovery import restore

url, state, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
faults = Faults(Path(os.environ["LD_PRELOAD"]), Path(os.environ["LABELWOOD_FAULTS"]))
numbers, acknowledged, ended = itertools.count(), [0], threading.Event()

def teach():
    with httpx.Client(base_url=url, timeout=60) as client:
        while not ended.is_set():
            answer = client.post("/learn", json={"examples": [example(next(numbers))]})
            acknowledged[0] = answer.json()["sequence"]

teacher = threading.Thread(target=teach)
teacher.start()
pauses = itertools.cycle(["*/snapshots/*/state.json", "*/snapshots/*/manifest.json", "*/log/*.log"])
try:
    for pause in itertools.islice(pauses, count):
        faults.set(f"open {pause} 0 1 delay 250")
        before = acknowledged[0]
        try:
            machine = restore(state)
        except Exception as error:
            print(json.dumps({"error": repr(error)}), flush=True)
            continue
        machine.model.save(state.with_name("restored"))
        print(json.dumps({"before": before, "sequence": machine.sequence, "learned": machine.learned}), flush=True)
        sys.stdin.readline()
finally:
    ended.set()
    teacher.join()
"""


@pytest.mark.parametrize("count", [40])
def test_restore_beside_a_running_service(serving, model, tmp_path, faults, count):
    """Restoring is paused while the service replaces its snapshots and removes their log: 40 times the right state."""
    state = tmp_path / "state"
    service = serving(model, "--state", state, "--snapshot-seconds", 0.05, "--keep", 2)
    support = str(Path(__file__).parents[2] / "support")
    command = [sys.executable, "-c", RESTORER, service.facts["url"], str(state), str(count), support]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **faults.environment}
    ) as restorer:
        expected, known = load(model), 0
        right = 0
        for line in restorer.stdout:
            told = json.loads(line)
            assert "error" not in told, told
            assert told["sequence"] >= told["before"]
            assert told["learned"] == told["sequence"] - 1
            for number in range(known, told["learned"]):
                teach(expected, [number])
            known = told["learned"]
            assert_same_state(load(tmp_path / "restored"), expected)
            right += 1
            restorer.stdin.write("\n")
            restorer.stdin.flush()
        assert restorer.wait() == 0
    assert right == count
    assert known > count
    assert next(read_log(state / "log")).sequence > 1, "no log was removed meanwhile"
