"""What the broker counts: what came, what went, and above all what was lost and why."""

from __future__ import annotations

import attrs


@attrs.define
class Counters:
    """Totals since the broker started.

    Attributes:
        connections: connections that were accepted.
        failures: of those, connections that broke the protocol or never got as far as to open.
        received: messages that clients sent.
        delivered: messages handed to receivers; one that goes to three counts three.
        discarded: messages for a node that does not exist, or that no binding matched.
        dropped: messages that a full subscription queue lost.
        expired: messages whose time to live ended in a queue.
        rejected: messages that were refused to their sender.
    """

    connections: int = 0
    failures: int = 0
    received: int = 0
    delivered: int = 0
    discarded: int = 0
    dropped: int = 0
    expired: int = 0
    rejected: int = 0
