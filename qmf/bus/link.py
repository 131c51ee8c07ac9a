"""The engine's handle of one link: what both sides called it, and what the engine remembers about it."""

from __future__ import annotations

import proton

from qmf.bus.values import Node


class Link:
    """A link of a connection, seen from one side. Compared by identity.

    Attributes:
        name: chosen by the side that asked for it.
        sending: True when messages flow from us.
        source, target: the nodes as the peer named them, known once it attached; None for a null node, which in an
            answer means that the link is being refused.
        settled: True when the sending side settles every message at once, so that no outcomes come.
        raw, session, deliveries, chunks, size, closing: the engine's.
    """

    __slots__ = (
        "chunks",
        "closing",
        "deliveries",
        "name",
        "raw",
        "sending",
        "session",
        "settled",
        "size",
        "source",
        "target",
    )

    def __init__(self, raw: proton.Link) -> None:
        self.name: str = raw.name
        self.sending: bool = raw.is_sender
        self.source: Node | None = None
        self.target: Node | None = None
        self.settled = False
        self.raw = raw
        self.session = raw.session
        #: Unsettled deliveries by token. They are forgotten with the link: proton frees them then, and must not be
        #: asked about them later.
        self.deliveries: dict[int, proton.Delivery] = {}
        #: The message that is arriving in parts: AMQP allows one at a time on a link.
        self.chunks: list[bytes] = []
        self.size = 0
        #: We have detached, and wait for the peer to do the same, or the link is gone: nothing may be done with it.
        self.closing = False

    def forget(self) -> None:
        """Nothing will happen on this link any more."""
        self.closing = True
        self.deliveries.clear()
        self.chunks.clear()

    def __repr__(self) -> str:
        return f"<Link {self.name!r} {'out' if self.sending else 'in'}>"
