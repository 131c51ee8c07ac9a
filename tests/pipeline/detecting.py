"""Signals for detectors, and what they make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmf.pipeline.correlate import Rule, parse_rules
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.detectors import create_detector
from qmf.pipeline.correlate.detectors.base import Detector, DetectorContext, Signal

SECOND = 10**9


THRESHOLD = 'kind = "threshold"\nclass = "c"\nvalue = "x"\n'


RATE = 'kind = "rate"\nclass = "c"\nvalue = "x"\n'


ABSENCE = 'kind = "absence"\nof = "heartbeats"\nfor = "10s"\n'


SEQUENCE = """kind = "sequence"
within = "10s"
steps = [{event = "a"}, {event = "b"}, {event = "c"}]
"""


JOIN = 'kind = "join"\nevent = {name = "e"}\nobject = {class = "c"}\nwithin = "10s"'


RATIO = """kind = "ratio"
dividend = {class = "c", value = "x"}
divisor = {class = "d", value = "y"}
above = 0.5
"""


LEVELS = """
for = "10s"
levels = [{severity = "warn", above = 5, clear = 4}, {severity = "crit", above = 8, for = "2s"}]
"""


def rule(text: str) -> Rule:
    (made,) = parse_rules(f"[r]\n{text}")
    return made


def signal(at: float, value: float | None = None, *, role: int = 0, **more: Any) -> Signal:
    ns = round(at * SECOND)
    values = {"epoch": 1, "ident": None, "agent": "a", "object": "o", "fields": None, "run": "r", "seq": ns, **more}
    return Signal(at=ns, ts=ns, role=role, value=value, **values)


def drive(
    of: Rule, signals: Sequence[Signal], until: float, *, silent: Sequence[tuple[int, int]] = ()
) -> list[tuple[str, float, float]]:
    """The changes: raised or cleared, the start of the incident, and the time of the change, in seconds."""
    detector = create_detector(of, "a\no", DetectorContext(silent))
    return [short(change) for change in run(detector, signals, until)]


def run(detector: Detector, signals: Sequence[Signal], until: float) -> list[AlertRow]:
    for item in signals:
        if detector.due < item.at:
            detector.advance(item.at)
        detector.feed(item)
    detector.advance(round(until * SECOND))
    return detector.changes


def short(change: AlertRow) -> tuple[str, float, float]:
    return (change.change, change.began_ns / SECOND, change.at_ns / SECOND)


def series(*pairs: tuple[float, float]) -> list[Signal]:
    return [signal(at, value) for at, value in pairs]


def sides(*items: tuple[float, int, str, float]) -> list[Signal]:
    return [signal(at, value, role=role, object=name) for at, role, name, value in items]
