"""What STOMP allows to clients, and where it is spoken."""

from __future__ import annotations

import attrs

#: Port that is usual for STOMP.
STOMP_PORT = 61613


@attrs.frozen(kw_only=True)
class StompOptions:
    """STOMP at a broker.

    Attributes:
        port: TCP port; 0 for any free one; None for no STOMP. With TLS at the broker, it is for TLS.
        max_frame: bytes of the largest frame that is taken, with its headers.
        max_subscriptions: of one connection.
        heartbeat: milliseconds between heart-beats, of both sides, that the broker agrees to at least; 0 for none.
        prefetch: messages of a subscription that may be sent and not acknowledged, where it does not say.
    """

    port: int | None = None
    max_frame: int = 16 * 1024 * 1024
    max_subscriptions: int = 1000
    heartbeat: int = 5000
    prefetch: int = 1000
