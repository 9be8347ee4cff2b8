import pytest

from labelwood.errors import FormatError
from labelwood.serve.state.drift import Drift


def test_the_window_slides():
    drift = Drift(4)
    assert (drift.precision, drift.new_label_rate, drift.alarm(0.9)) == (None, None, False)
    drift.note([True, True, False], [1, 0, 0])
    assert drift.precision == pytest.approx(2 / 3)
    assert not drift.alarm(0.9)  # the window is not full
    drift.note([False, False], [0, 2])
    assert (drift.precision, drift.new_label_rate, drift.examples) == (0.25, 0.5, 4)
    assert drift.alarm(0.3)
    assert not drift.alarm(0.25)


def test_saved_and_restored():
    drift = Drift(4)
    drift.note([True, False, True], [0, 1, 2])
    again = Drift.restore(drift.state(), 2)
    assert (again.precision, again.new_label_rate) == (0.5, 1.5)
    with pytest.raises(FormatError):
        Drift.restore({"hits": "1"}, 2)
