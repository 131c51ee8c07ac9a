"""Events for people: the names of severities, and which are severe enough."""

from __future__ import annotations

import re
from collections.abc import Mapping

from qmf.errors import NotFoundError
from qmf.schema import Severity

#: Other names of severities: those of syslog and of the old tools.
_SPELLINGS = {
    "emergency": 0,
    "emer": 0,
    "critical": 2,
    "err": 3,
    "warning": 4,
    "notic": 5,
    "info": 6,
    "informational": 6,
}
#: Numbers of severities by the names that people write.
SEVERITIES: Mapping[str, int] = {item.schema_name: item.value for item in Severity} | _SPELLINGS


def severity_name(number: int) -> str:
    """The name of a severity; of one that QMF doesn't define, its number."""
    return Severity(number).schema_name if Severity.EMERG <= number <= Severity.DEBUG else str(number)


def parse_severity(text: str) -> int:
    """The number of a severity: its name in any spelling, or 0 to 7.

    Raises:
        NotFoundError: there is no such severity.
    """
    word = text.lower()
    if word in SEVERITIES:
        return SEVERITIES[word]
    if re.fullmatch("[0-7]", word):
        return int(word)
    raise NotFoundError("severity", text, [item.schema_name for item in Severity])


def is_severe(number: int, least: int) -> bool:
    """True if an event is as severe as wanted; severities that QMF doesn't define count as the least severe."""
    return number <= least or least >= Severity.DEBUG
