"""What all kinds of receivers share: their settings, the protocol of a sender, its errors, secrets and TLS."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Protocol

import attrs

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.notifying.notification import AlertNotification


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
    """The settings of one way to notify.

    Attributes:
        send_resolved: it is told of ends.
        resend_interval: ns after which firing alerts are sent again although nothing changed, because it would forget
            them; None for the route's `repeat_interval`.
        repeats: it wants repetitions after the route's `repeat_interval`.
    """

    send_resolved: bool = True
    resend_interval: int | None = None
    repeats: bool = True

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
    """TLS; the names are those of Alertmanager's `tls_config`.

    Attributes:
        ca_file: certificates of authorities; None for those of the system.
        cert_file, key_file: an own certificate.
        insecure_skip_verify: any certificate is accepted.
    """

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    insecure_skip_verify: bool = False

    def context(self) -> ssl.SSLContext:
        """For connections; raises `OSError` where a file cannot be used."""
        context = ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))
        if self.cert_file is not None:
            context.load_cert_chain(self.cert_file, self.key_file)
        if self.insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context
