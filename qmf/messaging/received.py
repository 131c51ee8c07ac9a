"""Received messages of the synchronous form."""

from __future__ import annotations

from typing import Protocol, cast

from qmf.messaging.message import Disposition, Message
from qmf.messaging.settling import RELEASE, modification, rejection, session_of
from qmf.messaging.typing import ContentT


class _Session(Protocol):
    """The session in which a message was received."""

    transactional: bool

    def acknowledge(
        self, message: Message | None, disposition: Disposition | None, sync: bool, timeout: float | None
    ) -> None: ...


class ReceivedMessage(Message[ContentT], any_attributes=False):
    """A message that was received. Its methods are `Session.acknowledge` of the session in which it was; any thread may
    call them.

    They raise `SessionError` for a message that is acknowledged already, and do nothing for one that came settled. All
    other errors are those of `Session.acknowledge`, and so are `sync` and `timeout`.
    """

    def accept(self, sync: bool = True, timeout: float | None = None) -> None:
        """Report that the message was processed: it leaves its node."""
        self._settle(None, sync, timeout)

    def reject(
        self, code: str | None = None, text: str | None = None, sync: bool = True, timeout: float | None = None
    ) -> None:
        """Report that the message cannot be processed: brokers drop it, or move it where their rejected messages go.

        Args:
            code: an AMQP error condition, for the broker.
            text: why, for the broker.
            sync, timeout: see the class.
        """
        self._settle(rejection(code, text), sync, timeout)

    def release(self, sync: bool = True, timeout: float | None = None) -> None:
        """Return the message to its node, as if it had not been delivered."""
        self._settle(RELEASE, sync, timeout)

    def modify(
        self,
        failed: bool = True,
        undeliverable_here: bool = False,
        sync: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Return the message to its node, with changes.

        Args:
            failed: the attempt to deliver it counts: it comes again with `redelivered`.
            undeliverable_here: it shall not come to this receiver again.
            sync, timeout: see the class.

        Raises:
            SessionError: see the class, and in a transactional session.
        """
        transactional = self._session().transactional
        disposition = modification(transactional=transactional, failed=failed, undeliverable_here=undeliverable_here)
        self._settle(disposition, sync, timeout)

    def _settle(self, disposition: Disposition | None, sync: bool, timeout: float | None) -> None:
        self._session().acknowledge(self, disposition, sync, timeout)

    def _session(self) -> _Session:
        return cast("_Session", session_of(self))
