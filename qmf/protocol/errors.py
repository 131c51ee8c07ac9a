"""Errors of received QMF messages. They keep what an agent needs to answer the sender with an exception."""

from __future__ import annotations

from qmf.errors import ProtocolError


class ContentError(ProtocolError):
    """The content of a QMFv2 message is not what its opcode promises.

    Attributes:
        opcode: of the message, e.g. ``_query_request``.
        reason: the key and what is wrong with it.
        reply_to: where the sender waits for an answer, or None.
        correlation_id: of the request, or None.
    """

    def __init__(
        self, opcode: str, reason: str, reply_to: str | None = None, correlation_id: str | None = None
    ) -> None:
        self.opcode = opcode
        self.reason = reason
        self.reply_to = reply_to
        self.correlation_id = correlation_id
        super().__init__(opcode, reason, reply_to, correlation_id)

    def __str__(self) -> str:
        return f"{self.opcode}: {self.reason}"


class UnknownOpcode(ContentError):
    """A QMF message of a kind that this project does not know."""

    def __init__(self, opcode: str, reply_to: str | None = None, correlation_id: str | None = None) -> None:
        super().__init__(opcode, "unknown opcode", reply_to, correlation_id)
        self.args = (opcode, reply_to, correlation_id)
