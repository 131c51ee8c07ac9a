"""Audit logs of the broker and the web server, in one format: JSON objects, one a line, that are appended to a file.

JSON, because names and texts come from clients: none can end a line or invent a field. Secrets in values are masked.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from qmf._masking import MAX_DEPTH, mask


def audit_line(
    action: str, *, user: str, address: str, by: str, result: str, details: Mapping[str, object] | None = None
) -> str:
    """One line.

    Args:
        action: what was done or asked for, in words.
        user: who; empty where that is unknown.
        address: from where.
        by: how the user proved who it is; ``refused`` where it was not allowed.
        result: ``done``, ``refused``, ``failed``, ``cancelled`` or ``revoked``.
        details: more fields.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    found = {"time": now, "action": action, "user": user, "address": address, "by": by, "result": result}
    more = mask(dict(details or {}), MAX_DEPTH + 1)
    assert isinstance(more, dict)
    return json.dumps({**found, **more}, default=str)


class AuditFile(logging.Handler):
    """A file that lines are appended to. Its owner alone may read it. Whoever moves it away calls `reopen`."""

    def __init__(self, path: Path) -> None:
        """Open the file.

        Raises:
            OSError: it can't be written.
        """
        super().__init__()
        self.path = path
        self._file = self._open()

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`. What cannot be written is reported as logging reports errors of its handlers."""
        try:
            self._file.write(f"{record.getMessage()}\n")
            self._file.flush()
        except (OSError, ValueError):
            self.handleError(record)

    def reopen(self) -> None:
        """Go on in a new file of the same name, after the old one was moved.

        Raises:
            OSError: there can be none; the log goes on in the old one.
        """
        opened = self._open()
        self.acquire()
        try:
            old, self._file = self._file, opened
        finally:
            self.release()
        old.close()

    def close(self) -> None:
        """See `logging.Handler`."""
        self._file.close()
        super().close()

    def _open(self) -> TextIO:
        return os.fdopen(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8")
