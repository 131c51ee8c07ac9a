"""A file of JSON lines, one for each alert of a notification."""

from __future__ import annotations

import json
import os
from pathlib import Path

import attrs

from qmf.pipeline.notifying.notification import AlertNotification, in_order, webhook_alert
from qmf.pipeline.notifying.receivers.base import NotificationSender, ReceiverSettings, UnreachableError
from qmf.pipeline.notifying.silences import format_time


@attrs.frozen(kw_only=True)
class FileConfig(ReceiverSettings):
    """A file; the folder of `path` must exist."""

    path: Path

    def make_sender(self) -> NotificationSender:
        return FileSender(self.path)


class FileSender(NotificationSender):
    """Appends to a file, which is opened for each notification, so that it may be moved away at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, notification: AlertNotification) -> None:
        common = {"notifiedAt": format_time(notification.at), "receiver": notification.receiver}
        common["groupKey"] = notification.group_key
        lines = [json.dumps({**common, **webhook_alert(alert)}, ensure_ascii=False) for alert in in_order(notification)]
        try:
            file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
            try:
                _append(file, "".join(f"{line}\n" for line in lines).encode())
            finally:
                os.close(file)
        except OSError as error:
            raise UnreachableError(f"{self._path}: {error.strerror or error}") from error


def _append(file: int, data: bytes) -> None:
    """Write all of it, or nothing."""
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        data = b"\n" + data  # a line that another program, or a full disk, cut off
    written = 0
    try:
        while written < len(data):
            written += os.write(file, data[written:])
        os.fsync(file)
    except OSError:
        if written:
            os.ftruncate(file, size)
        raise
