"""What all kinds of receivers share: the protocol of a sender, its errors, and secrets."""

from __future__ import annotations

import os
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
        """Release what is open."""
        ...


@attrs.frozen
class Secret:
    """Where a secret is: in a file or in the environment, never in the configuration itself.

    Attributes:
        file: whose first line is the secret.
        variable: name of a variable of the environment.
    """

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
