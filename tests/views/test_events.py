"""Names of severities, and which are severe enough."""

from __future__ import annotations

import pytest

from qmf.errors import NotFoundError
from qmf.schema import Severity
from qmf.views.events import is_severe, parse_severity, severity_name


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
