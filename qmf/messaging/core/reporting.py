"""Errors, and the program's handlers of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from qmf.messaging.exceptions import MessagingError

#: Called with the connection, session, sender or receiver that failed, as the program holds it, and why.
ErrorHandler: TypeAlias = Callable[[object, MessagingError], None]


class Reporter(Protocol):
    """What errors are reported of.

    Attributes:
        endpoint: the program's connection, session, sender or receiver.
        on_error: its handler, or None.
    """

    endpoint: object
    on_error: ErrorHandler | None
