"""What both sides of a connection do before AMQP: SASL, for one."""

from __future__ import annotations

from typing import Protocol


class SecurityLayer(Protocol):
    """What both sides do before AMQP: bytes in, bytes out."""

    @property
    def passed(self) -> bool:
        """True once all bytes are those of AMQP. Does not change back."""

    def feed(self, data: bytes | memoryview) -> bytes:
        """Take bytes from the peer; returns those that follow the layer, once it is passed.

        Raises:
            NotAuthenticated: the peer, or we, may not go on. `output` may still have an answer for it.
            UnknownProtocol: the peer has no such layer.
        """

    def output(self) -> bytes:
        """Bytes for the peer."""


class NotAuthenticated(Exception):
    """Authentication failed; the message is the reason."""


class UnknownProtocol(Exception):
    """The peer does not begin as the layer has to; the message says how it begins."""
