"""What was told to the bus: a file of lines, each written to the disk before the next thing is done.

An alert is noted before it is told and after the broker has confirmed it. A kill in between leaves it in doubt: it is
told again, and says so. So every alert reaches the bus at least once, and at most once without the mark `again`;
nothing can do better, as no broker tells whether it has an event already.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.errors import LakeError


@attrs.frozen
class Acknowledgement:
    """Somebody takes care of an alert.

    Attributes:
        by: who.
        note: what they said.
    """

    by: str
    note: str


class AlertLedger:
    """Reads the file, and adds to it. Any thread may call."""

    def __init__(self, path: Path) -> None:
        """Take up what was written.

        Raises:
            LakeError: the file system refused, or the file is no ledger.
        """
        self._path = path
        self._lock = threading.Lock()
        #: The last step of the stream that was told wholly.
        self.step = 0
        #: Alerts on the bus that have not ended, by id.
        self.open: dict[str, Alert] = {}
        #: Raised long before they were found, and not told yet.
        self.held: dict[str, Alert] = {}
        #: Begun to be told, and not confirmed: in order.
        self.doubtful: dict[str, Alert] = {}
        self.acknowledged: dict[str, Acknowledgement] = {}
        self._done: set[str] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b")
        except OSError as error:
            raise LakeError(f"{path}: {error.strerror or error}") from error
        try:
            self._read()
        except LakeError:
            self._file.close()
            raise

    def is_done(self, alert: Alert) -> bool:
        """It was told, or is not to be told."""
        return alert.key in self._done

    def begin(self, alerts: Sequence[Alert]) -> None:
        """These are about to be told."""
        self._write({"begin": [attrs.asdict(alert) for alert in alerts]})

    def end(self, alerts: Sequence[Alert]) -> None:
        """The broker has these."""
        self._write({"end": [alert.key for alert in alerts]})

    def skip(self, alerts: Sequence[Alert]) -> None:
        """These are not told: they were over long before they were found."""
        self._write({"skip": [alert.key for alert in alerts]})

    def hold(self, alerts: Sequence[Alert]) -> None:
        """These are told later, if they don't end before."""
        self._write({"hold": [attrs.asdict(alert) for alert in alerts]})

    def finish(self, step: int) -> None:
        """All of a step was dealt with."""
        self._write({"step": step})

    def acknowledge(self, alert_id: str, by: str, note: str) -> None:
        """Somebody takes care of an alert."""
        self._write({"acknowledge": [alert_id, by, note]})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, entry: dict[str, Any]) -> None:
        if [] in entry.values():
            return
        with self._lock:
            try:
                self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise LakeError(f"{self._path}: {error.strerror or error}") from error
            self._apply(entry)

    def _read(self) -> None:
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break  # a kill cut it off, so what it would have said was not done
            whole += len(line)
            try:
                self._apply(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise LakeError(f"{self._path}:{number}: not a ledger: {error}") from error
        self._file.truncate(whole)

    def _apply(self, entry: dict[str, Any]) -> None:
        for item in entry.get("begin", ()):
            alert = Alert(**item)
            self.doubtful[alert.key] = alert
            self.held.pop(alert.alert_id, None)
        for key in entry.get("end", ()):
            alert = self.doubtful.pop(key)
            self._done.add(key)
            if alert.raised:
                self.open[alert.alert_id] = alert
            else:
                self.open.pop(alert.alert_id, None)
                self.acknowledged.pop(alert.alert_id, None)
        for key in entry.get("skip", ()):
            self._done.add(key)
            self.held.pop(key.partition(" ")[0], None)
        for item in entry.get("hold", ()):
            alert = Alert(**item)
            self.held[alert.alert_id] = alert
        self.step = entry.get("step", self.step)
        if "acknowledge" in entry:
            alert_id, by, note = entry["acknowledge"]
            self.acknowledged[alert_id] = Acknowledgement(by, note)
