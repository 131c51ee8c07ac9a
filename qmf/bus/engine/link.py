"""The engine's handle of one link: what both sides called it, and what the engine remembers about it."""

from __future__ import annotations

from typing import Any

import proton

from qmf.bus.engine.values import Terminus


class Link:
    """A link of a connection, seen from one side. Compared by identity.

    Attributes:
        name: chosen by the side that asked for it.
        sending: True when messages flow from us.
        source, target: the nodes as the peer named them, known once it attached; None for a null node, which in an
            answer means that the link is being refused.
        settled: True when the sending side settles every message at once, so that no outcomes come.
        raw, session, impl, session_impl, deliveries, sent, chunks, size, closing: the engine's.
    """

    __slots__ = (
        "chunks",
        "closing",
        "deliveries",
        "impl",
        "name",
        "raw",
        "sending",
        "sent",
        "session",
        "session_impl",
        "settled",
        "size",
        "source",
        "target",
    )

    def __init__(self, raw: proton.Link) -> None:
        self.name: str = raw.name
        self.sending: bool = raw.is_sender
        self.source: Terminus | None = None
        self.target: Terminus | None = None
        self.settled = False
        self.raw = raw
        self.session = raw.session
        #: The C objects behind `raw` and `session`, which live as long as those do: what is asked for every message is
        #: asked of them, without proton's Python objects in between.
        self.impl: Any = raw._impl
        self.session_impl: Any = self.session._impl
        #: Unsettled deliveries as C objects: those that arrived, by delivery tag, and the tags of those that were sent.
        #: They are forgotten with the link: proton frees them then, and must not be asked about them later.
        self.deliveries: dict[int, Any] = {}
        self.sent: dict[Any, int] = {}
        #: The message that is arriving in parts: AMQP allows one at a time on a link.
        self.chunks: list[bytes] = []
        self.size = 0
        #: We have detached, and wait for the peer to do the same, or the link is gone: nothing may be done with it.
        self.closing = False

    def forget(self) -> None:
        """Nothing will happen on this link any more."""
        self.closing = True
        self.deliveries.clear()
        self.sent.clear()
        self.chunks.clear()

    def __repr__(self) -> str:
        return f"<Link {self.name!r} {'out' if self.sending else 'in'}>"
