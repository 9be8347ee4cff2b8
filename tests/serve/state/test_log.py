"""The log: what is flushed stays, what a crash tears is cut off and told, what is damaged is not passed over."""

from __future__ import annotations

import os
import shutil
import threading

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from labelwood.errors import FormatError
from labelwood.serve.state.frames import OPENING, OPENINGS, SEAL_BYTES, Frame, LogRefusedError, encode_frame
from labelwood.serve.state.log import LogWriter, read_log, segments

RECORD = {"kind": "learn", "examples": [{"text": "é\u2028\x00", "labels": ["a", 1]}]}


def filled(folder, count=5, **options):
    log = LogWriter(folder, **options)
    frames = [log.append([{**RECORD, "number": number}, RECORD]) for number in range(count)]
    log.close()
    return frames


def test_what_is_written_is_read(tmp_path):
    frames = filled(tmp_path)
    assert list(read_log(tmp_path)) == frames
    assert [frame.sequence for frame in frames] == [1, 3, 5, 7, 9]
    assert list(read_log(tmp_path, after=4)) == frames[2:]
    assert list(read_log(tmp_path, after=5)) == frames[2:]  # a frame is one piece


def test_the_size_is_told_while_files_are_removed(tmp_path):
    log, ended = LogWriter(tmp_path), threading.Event()

    def turn_over():
        while not ended.is_set():
            log.append([RECORD])
            log.rotate()
            log.drop_before(log.next_sequence)

    thread = threading.Thread(target=turn_over)
    thread.start()
    try:
        assert all(log.size >= 0 for _ in range(3000))
    finally:
        ended.set()
        thread.join()


def test_a_new_writer_goes_on(tmp_path):
    frames = filled(tmp_path)
    log = LogWriter(tmp_path)
    assert (log.next_sequence, log.torn) == (11, None)
    frames.append(log.append([RECORD]))
    assert list(read_log(tmp_path)) == frames


@given(cut=st.floats(0, 1), noise=st.binary(max_size=40))
@settings(max_examples=60)
def test_a_torn_tail_is_cut_off_and_told(tmp_path_factory, cut, noise):
    folder = tmp_path_factory.mktemp("log")
    frames = filled(folder, 3)
    path = segments(folder)[0][1]
    whole = path.read_bytes()
    sizes = [len(whole)]
    shorter = folder.with_name(folder.name + "-two")
    filled(shorter, 2)
    sizes.insert(0, segments(shorter)[0][1].stat().st_size)
    size = sizes[0] + round(cut * (sizes[1] - sizes[0] - SEAL_BYTES - 1))
    assume(not noise.startswith(whole[size:]))  # else it mends what was cut off
    path.write_bytes(whole[:size] + noise)
    kept = list(read_log(folder))
    assert kept == frames[:2]
    log = LogWriter(folder)
    torn = size > sizes[0] or noise
    assert (log.torn is not None) == bool(torn)
    if log.torn is not None:
        assert log.torn.lost_bytes == size + len(noise) - sizes[0]
        assert log.torn.path.with_suffix(f".{sizes[0]}.torn").read_bytes() == whole[sizes[0] : size] + noise
        assert str(path) in str(log.torn)
    again = log.append([RECORD])
    assert again.sequence == 5
    assert list(read_log(folder)) == [*frames[:2], again]
    log.close()


@pytest.mark.parametrize("size", range(len(OPENING)))
def test_a_file_that_was_not_begun(tmp_path, size):
    (tmp_path / f"{1:020d}.log").write_bytes(OPENING[:size])
    assert list(read_log(tmp_path)) == []
    log = LogWriter(tmp_path)
    frame = log.append([RECORD])
    assert list(read_log(tmp_path)) == [frame]


def test_damage_before_acknowledged_records_is_not_passed_over(tmp_path):
    filled(tmp_path)
    path = segments(tmp_path)[0][1]
    whole = bytearray(path.read_bytes())
    whole[len(OPENING) + 40] ^= 1
    path.write_bytes(whole)
    with pytest.raises(FormatError, match="were acknowledged"):
        list(read_log(tmp_path))
    with pytest.raises(FormatError, match="the checksum of a frame does not match at byte 16"):
        LogWriter(tmp_path)


def test_a_flipped_bit_in_an_acknowledged_frame_is_no_torn_tail(tmp_path):
    """Any byte of the last frame: its seal says that it had been flushed."""
    filled(tmp_path, 2)
    path = segments(tmp_path)[0][1]
    whole = path.read_bytes()
    begin = len(OPENING) + (len(whole) - len(OPENING)) // 2
    for place in range(begin, len(whole) - SEAL_BYTES):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(FormatError, match="were acknowledged"):
            list(read_log(tmp_path))
        with pytest.raises(FormatError, match="were acknowledged"):
            LogWriter(tmp_path)
    assert path.stat().st_size == len(whole)


@pytest.mark.parametrize("left", range(SEAL_BYTES))
def test_a_crash_before_the_seal_is_complete(tmp_path, left):
    frames = filled(tmp_path)
    path = segments(tmp_path)[0][1]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - SEAL_BYTES + left])
    assert list(read_log(tmp_path)) == frames
    LogWriter(tmp_path).close()  # seals the frame, which will be acknowledged from now on
    assert path.read_bytes() == whole


@pytest.mark.parametrize("left", range(SEAL_BYTES))
@pytest.mark.parametrize("fill", [b"", b"\0"])
def test_a_power_cut_takes_the_last_seal_of_a_file_that_others_follow(tmp_path, left, fill):
    frames = filled(tmp_path, 9, segment_bytes=300)
    path = segments(tmp_path)[0][1]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - SEAL_BYTES + left] + fill * (SEAL_BYTES - left))
    assert list(read_log(tmp_path)) == frames
    path.write_bytes(whole[: len(whole) - SEAL_BYTES - 1])
    with pytest.raises(FormatError, match="were acknowledged"):
        list(read_log(tmp_path))


@pytest.mark.parametrize("content", [b"\0" * 16, b"labelwood-log\0\0\0", b"x"])
def test_a_last_file_without_a_sound_first_line_is_torn_if_it_has_no_frame(tmp_path, content):
    frames = filled(tmp_path)
    path = tmp_path / f"{11:020d}.log"
    path.write_bytes(content)
    assert list(read_log(tmp_path)) == frames
    log = LogWriter(tmp_path)
    assert log.torn is not None
    frames.append(log.append([RECORD]))
    log.close()
    assert list(read_log(tmp_path)) == frames
    path.write_bytes(b"x" + path.read_bytes()[1:])
    with pytest.raises(FormatError, match="not a log of this version"):
        LogWriter(tmp_path)
    path.write_bytes(b"labelwood-log 3\n")
    with pytest.raises(FormatError, match="not a log of this version"):
        LogWriter(tmp_path)


def test_a_torn_frame_of_version_1_is_cut_off(tmp_path):
    """A log of version 1 is read and continued; without seals, a damaged last frame counts as torn."""
    frames = [Frame(number, 7, [RECORD]) for number in (1, 2, 3)]
    pieces = [encode_frame(frame.sequence, frame.time, frame.records) for frame in frames]
    path = tmp_path / f"{1:020d}.log"
    path.write_bytes(OPENINGS[1] + b"".join(pieces)[:-1])
    assert list(read_log(tmp_path)) == frames[:2]
    log = LogWriter(tmp_path, clock=lambda: 7)
    assert log.torn is not None
    log.append([RECORD])
    log.close()
    assert list(read_log(tmp_path)) == frames
    assert path.read_bytes() == OPENINGS[1] + b"".join(pieces[:2])
    assert [frame.version for frame in read_log(tmp_path)] == [1, 1, 2]
    path.write_bytes(OPENINGS[1] + pieces[0])
    with pytest.raises(FormatError, match="lacks records 2 to 2"):
        list(read_log(tmp_path))


@pytest.mark.parametrize("version", OPENINGS)
def test_a_log_without_frames_is_continued_in_the_same_file(tmp_path, version):
    (tmp_path / f"{1:020d}.log").write_bytes(OPENINGS[version])
    frames = filled(tmp_path)
    assert list(read_log(tmp_path)) == frames
    assert len(segments(tmp_path)) == 1
    assert frames[0].version == 2


def test_files_follow_each_other(tmp_path):
    frames = filled(tmp_path, 9, segment_bytes=300)
    listed = segments(tmp_path)
    assert len(listed) > 3
    assert list(read_log(tmp_path)) == frames
    log = LogWriter(tmp_path)
    log.drop_before(listed[2][0])
    assert segments(tmp_path) == listed[2:]
    assert next(read_log(tmp_path)).sequence == listed[2][0]
    shutil.copy(listed[2][1], tmp_path / "kept")
    listed[3][1].unlink()
    with pytest.raises(FormatError, match="lacks records"):
        list(read_log(tmp_path))
    (tmp_path / listed[2][1].name).write_bytes((tmp_path / "kept").read_bytes()[:-1])
    with pytest.raises(FormatError, match="damaged"):
        list(read_log(tmp_path))


def test_the_clock_goes_back(tmp_path):
    hours = iter([5, 9, 3, 4, 10])
    log = LogWriter(tmp_path, clock=lambda: next(hours))
    assert [log.append([RECORD]).time for _ in range(5)] == [5, 9, 9, 9, 10]
    assert log.backwards == 2
    log.close()
    later = LogWriter(tmp_path, clock=lambda: 1)
    assert later.append([RECORD]).time == 10


@pytest.mark.parametrize("value", ["half a character: \ud800", object()])
def test_what_is_no_json_is_refused_and_leaves_nothing(tmp_path, value):
    log = LogWriter(tmp_path)
    with pytest.raises(LogRefusedError, match="nothing was written"):
        log.append([RECORD, {"kind": value}])
    frame = log.append([RECORD])
    assert list(read_log(tmp_path)) == [frame]


def test_an_append_that_fails_leaves_nothing(tmp_path, monkeypatch):
    log = LogWriter(tmp_path)
    first = log.append([RECORD])

    def full(file: int, data: bytes) -> int:
        written = os.pwrite(file, bytes(data)[:20], os.fstat(file).st_size)
        assert written == 20
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(ValueError, match="nothing was written: No space left"):
            log.append([RECORD])
    second = log.append([RECORD])
    assert list(read_log(tmp_path)) == [first, second]
