"""Alerts that are active, for tests of what matches their labels."""

from __future__ import annotations

from qmf.pipeline.correlate.alerts import Alert


def alert(id: str, start: int = 0, end: int | None = None, **labels: str) -> Alert:
    """An alert that fires, or that ended at `end`."""
    return Alert(id=id, incident=id, labels=labels, starts_ns=start, ends_ns=end)
