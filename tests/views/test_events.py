"""Names of severities, and which are severe enough; events that did not arrive."""

from __future__ import annotations

import pytest

from qmf.errors import NotFoundError
from qmf.protocol import ObjectId
from qmf.schema import Severity
from qmf.views.events import LostEvents, is_severe, parse_severity, severity_name


@pytest.mark.parametrize(("text", "number"), [("warn", 4), ("WARNING", 4), ("err", 3), ("info", 6), ("0", 0), ("7", 7)])
def test_severities_as_people_write_them(text: str, number: int) -> None:
    assert parse_severity(text) == number


def test_what_is_no_severity_is_refused() -> None:
    for text in ("8", "bad", ""):
        with pytest.raises(NotFoundError):
            parse_severity(text)


def test_severities_without_a_name() -> None:
    assert [severity_name(number) for number in (0, 7, 8, -1)] == ["emerg", "debug", "8", "-1"]
    assert is_severe(9, Severity.DEBUG)
    assert not is_severe(9, Severity.INFORM)
    assert is_severe(3, 4)
    assert not is_severe(5, 4)


def test_events_that_did_not_arrive_are_a_sentence() -> None:
    assert str(LostEvents("a:b:c", 1, 5)) == "1 event of agent a:b:c did not arrive"
    lost = LostEvents("a:b:c", 1200, 5, "mq1")
    assert str(lost) == "1,200 events of agent a:b:c did not arrive"
    assert (lost.name, lost.severity, lost.values, lost.broker) == ("qmf:lost", Severity.WARN, {"count": 1200}, "mq1")
    assert lost.is_about(ObjectId("x", "a:b:c"), ())
    assert not lost.is_about(ObjectId("x", "a:b:d"), ())
