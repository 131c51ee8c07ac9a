"""The values that the published API exports beside its classes."""

from __future__ import annotations

import datetime

from qmf.messaging import Serial, timestamp, uuid4


def test_timestamps_are_seconds_and_stay_timestamps() -> None:
    time = timestamp(1000.5)
    for other in (time + 1, 1 + time, time + datetime.timedelta(seconds=1), 2003.0 - timestamp(1001.5), -(-time - 1)):
        assert isinstance(other, timestamp)
        assert other == 1001.5
    assert time - 0.5 == 1000.0
    assert repr(time) == "timestamp(1000.5)"
    assert timestamp(time.datetime()) == time
    assert timestamp(datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) == 0.0
    assert abs(timestamp() - datetime.datetime.now().timestamp()) < 60


def test_serial_numbers_go_round() -> None:
    last = Serial(2**32 - 1)
    assert last + 1 == Serial(0) == 0
    assert last < last + 1 < last + 2
    assert last + 1 > last
    assert Serial(0) - 1 == last
    assert Serial(7) - Serial(5) == 2
    assert (str(last), repr(Serial(1))) == ("4294967295", "serial(1)")
    assert len({Serial(1), Serial(1 + 2**32)}) == 1
    assert Serial(1) != "1"


def test_unique_ids() -> None:
    assert uuid4() != uuid4()
