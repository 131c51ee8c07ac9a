"""The engine's handle of an AMQP session that this side began."""

from __future__ import annotations

import proton


class EngineSession:
    """A session of a connection. Compared by identity.

    Attributes:
        raw, ended: for the engine alone.
    """

    __slots__ = ("ended", "raw")

    def __init__(self, raw: proton.Session) -> None:
        self.raw = raw
        #: We have ended the session and wait for the peer's answer, or it has ended.
        self.ended = False
