"""The ledger of published alerts: a file of lines, each synced to the disk before the next action.

An alert is recorded before it is published, and again after the broker has confirmed it. After a kill in between, the
alert is unconfirmed: it is published again, and marked as such. So every alert reaches the bus at least once, and at
most once without the mark `again`. More is not possible, as a broker cannot be asked whether it has an event already.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.errors import LakeError, lake_errors


class AlertLedger:
    """Reads the file, and appends to it. May be called from any thread.

    Attributes:
        open: published alerts that are not cleared, by id.
        unconfirmed: alerts whose publication began and was not confirmed, by key, in order.
        acknowledged: who takes care of open alerts, and with what remark, by id.
    """

    def __init__(self, path: Path) -> None:
        """Read an existing file, or create one; raises `LakeError` where that fails, or the file is not a ledger."""
        self._path = path
        self._lock = threading.Lock()
        self.open: dict[str, AlertRow] = {}
        self.unconfirmed: dict[str, AlertRow] = {}
        self.acknowledged: dict[str, tuple[str, str]] = {}
        self._done: set[str] = set()
        with lake_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        try:
            self._read()
        except LakeError:
            self._file.close()
            raise

    def is_done(self, alert: AlertRow) -> bool:
        """True where an alert was published."""
        return alert.key in self._done

    def begin(self, alerts: Sequence[AlertRow]) -> None:
        """Record that the publication of some alerts begins."""
        self._write({"begin": [attrs.asdict(alert) for alert in alerts]})

    def confirm(self, alerts: Sequence[AlertRow]) -> None:
        """Record that the broker has confirmed some alerts."""
        self._write({"end": [alert.key for alert in alerts]})

    def acknowledge(self, alert_id: str, by: str, note: str) -> None:
        """Record that an operator takes care of an alert."""
        self._write({"acknowledge": [alert_id, by, note]})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, entry: dict[str, Any]) -> None:
        if [] in entry.values():
            return
        with self._lock:
            with lake_errors(self._path):
                self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
                self._file.flush()
                os.fsync(self._file.fileno())
            self._apply(entry)

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break  # cut off by a kill, so the action that it announces did not happen
            whole += len(line)
            try:
                self._apply(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise LakeError(f"{self._path}:{number}: not a ledger: {error}") from error
        self._file.truncate(whole)

    def _apply(self, entry: dict[str, Any]) -> None:
        for item in entry.get("begin", ()):
            alert = AlertRow(**item)
            self.unconfirmed[alert.key] = alert
        for key in entry.get("end", ()):
            alert = self.unconfirmed.pop(key)
            self._done.add(key)
            if alert.cleared:
                self.open.pop(alert.alert_id, None)
                self.acknowledged.pop(alert.alert_id, None)
            else:
                known = self.open.get(alert.alert_id, alert)
                self.open[alert.alert_id] = attrs.evolve(alert, change="raised", at_ns=known.at_ns)
        if "acknowledge" in entry:
            alert_id, by, note = entry["acknowledge"]
            self.acknowledged[alert_id] = by, note
