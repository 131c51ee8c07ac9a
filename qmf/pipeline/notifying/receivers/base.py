"""What all kinds of receivers share: their settings, the protocol of a sender, its errors, secrets and TLS."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from qmf.pipeline.correlate.alerts import Alert, AlertRow, in_order
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.notifying.notification import AlertNotification, shown_alerts, webhook_alert
from qmf.pipeline.notifying.silences import format_time


class UnreachableError(PipelineError):
    """The receiver cannot be reached, or is overloaded: trying again later helps. The message says why."""


class RefusedError(PipelineError):
    """The receiver understood the notification and doesn't take it. The message says why."""


class NotificationSender(Protocol):
    """Sends notifications of one integration; used by one thread."""

    def send(self, notification: AlertNotification) -> str | None:
        """Send, and wait until the receiver has it.

        Returns:
            what the user should know although it was delivered, or None.

        Raises:
            UnreachableError, RefusedError: it was not delivered, or that is unknown.
        """
        ...

    def close(self) -> None:
        """Release what is open, if there is anything."""
        return


@attrs.frozen(kw_only=True)
class ReceiverSettings:
    """The settings of one way to notify."""

    send_resolved: bool = True  #: it is told of ends
    #: ns after which firing alerts are sent again although nothing changed, because it would forget them; None for the
    #: route's `repeat_interval`
    resend_interval: int | None = None
    repeats: bool = True  #: it wants repetitions after the route's `repeat_interval`

    def make_sender(self) -> NotificationSender:
        """Make what sends with these settings; nothing is connected yet."""
        raise NotImplementedError


@attrs.frozen
class Secret:
    """Where a secret is, never in the configuration: the first line of a file, or a variable of the environment."""

    file: Path | None = None
    variable: str | None = None

    def read(self) -> str:
        """The secret; read again for each notification, so that it can be changed without a restart.

        Raises:
            UnreachableError: it cannot be had.
        """
        if self.file is not None:
            try:
                return self.file.read_text(encoding="utf-8").split("\n", 1)[0].rstrip("\r")
            except (OSError, UnicodeDecodeError) as error:
                raise UnreachableError(f"{self.file}: {getattr(error, 'strerror', None) or error}") from error
        if self.variable is None or self.variable not in os.environ:
            raise UnreachableError(f"the environment has no {self.variable}")
        return os.environ[self.variable]


@attrs.frozen(kw_only=True)
class TlsSettings:
    """TLS; the names are those of Alertmanager's `tls_config`."""

    ca_file: Path | None = None  #: certificates of authorities; None for those of the system
    cert_file: Path | None = None  #: and `key_file`: an own certificate
    key_file: Path | None = None
    insecure_skip_verify: bool = False  #: any certificate is accepted

    def context(self) -> ssl.SSLContext:
        """For connections; raises `OSError` where a file cannot be used."""
        context = ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))
        if self.cert_file is not None:
            context.load_cert_chain(self.cert_file, self.key_file)
        if self.insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


#: Publishes rows that were not published before, and waits for the broker; False where the job ends meanwhile.
Publish = Callable[[Sequence[AlertRow]], bool]


@attrs.frozen(kw_only=True)
class BusConfig(ReceiverSettings):
    """The bus: events and objects of the agent that `correlate` starts. It is told of ends, since objects must go."""

    repeats: bool = False


class BusSender(NotificationSender):
    """Publishes the changes of each alert, of which the job's ledger knows which were published before."""

    def __init__(self, publish: Publish | None) -> None:
        """Make a sender; `publish` is None where the job has no agent."""
        self._publish = publish

    def send(self, notification: AlertNotification) -> None:
        if self._publish is None:
            raise UnreachableError("the job was started without the bus; restart it")
        rows = {row.key: row for alert in notification.alerts for row in rows_of(alert)}
        if not self._publish(in_order(rows.values())):
            raise UnreachableError("the job ended before the broker had confirmed it")


def rows_of(alert: Alert) -> list[AlertRow]:
    """The rows of the table about an alert, as far as they are known."""
    return [AlertRow(**row) for row in alert.detail.values()]


def with_row(row: AlertRow) -> Alert:
    """An alert after a change that a row of the table tells."""
    return row.alert({row.change: attrs.asdict(row)})


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
        lines = [
            json.dumps({**common, **webhook_alert(alert)}, ensure_ascii=False) for alert in shown_alerts(notification)
        ]
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
