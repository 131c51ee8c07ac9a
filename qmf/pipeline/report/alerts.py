"""The alerts of a report, from the tables of `qmf-pipeline correlate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.report.model import ReportedAlert
from qmf.pipeline.report.time_range import TimeRange

#: Alerts that are shown at most: the newest.
_MAX_ALERTS = 200

_CLEARED = "cleared"


def read_alerts(path: str, time_range: TimeRange, storage: Mapping[str, str]) -> tuple[ReportedAlert, ...] | None:
    """The alerts that were open in the range, newest first; None where there is no table of a batch or a stream."""
    tables = [LakeTable(f"{path.rstrip('/')}/{by}", storage) for by in ("batch", "stream")]
    tables = [table for table in tables if table.version() is not None]
    if not tables:
        return None
    names = ["alert_id", "change", "rule", "severity", "subject", "message", "reason", "began_ns", "at_ns"]
    rows = (
        row for table in tables for row in table.dataset(table.snapshot().files).to_table(columns=names).to_pylist()
    )
    return alert_rows(rows, time_range)


def alert_rows(rows: Iterable[Mapping[str, Any]], time_range: TimeRange) -> tuple[ReportedAlert, ...]:
    """The alerts that changes describe, as of `read_alerts`. Pure; a change may come twice."""
    raised: dict[str, int] = {}
    latest: dict[str, Mapping[str, Any]] = {}
    ends: dict[str, Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["at_ns"], reverse=True):
        if row["change"] == _CLEARED:
            ends.setdefault(row["alert_id"], row)
        else:
            latest.setdefault(row["alert_id"], row)
            raised[row["alert_id"]] = row["at_ns"]
    found: list[ReportedAlert] = []
    for own in sorted({*latest, *ends}):
        end = ends.get(own)
        row = latest.get(own) or ends[own]
        cleared = None if end is None else end["at_ns"]
        if time_range.clip(row["began_ns"], None if cleared is None else cleared + 1) is None:
            continue
        found.append(
            ReportedAlert(
                alert_id=own,
                rule=row["rule"],
                severity=int(row["severity"]),
                subject=row["subject"],
                message=row["message"],
                began_ns=row["began_ns"],
                raised_ns=raised.get(own, row["at_ns"]),
                cleared_ns=cleared,
                reason=(end or {}).get("reason") or "",
            )
        )
    return tuple(sorted(found, key=lambda item: (-item.began_ns, item.alert_id))[:_MAX_ALERTS])
