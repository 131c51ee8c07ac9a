"""The sessions of a connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import proton

from qmf.bus.engine.events import EngineEvent, EventBatch, PeerSessionEnded, SessionEnded
from qmf.bus.engine.link import Link
from qmf.bus.engine.session import EngineSession


class EngineSessions:
    """The sessions of a connection that this side began, and those that the peer began."""

    def __init__(
        self,
        connection: proton.Connection,
        events: deque[EngineEvent | EventBatch],
        links: Mapping[Any, Link],
        most: int,
    ) -> None:
        """Make the sessions of an engine, which has none yet.

        Args:
            connection: proton's.
            events: of the engine, where those of sessions are appended.
            links: of the connection, by C object; changed elsewhere.
            most: sessions that the peer may begin; 0 for any number.
        """
        self._connection = connection
        self._events = events
        self._links = links
        self._max_sessions = most
        #: The session that a client has from the start, and all sessions that this side began.
        self._default: EngineSession | None = None
        self._own: list[EngineSession] = []
        #: C objects of the sessions that the peer has begun: those granted, and those refused that it has not ended.
        self._granted: set[Any] = set()
        self._refused: set[Any] = set()

    def default(self) -> EngineSession:
        """The session that a client has from the start; another one if that has ended."""
        if self._default is None:
            self._default = self.begin()
        return self._default

    def begin(self) -> EngineSession:
        """Begin a session, besides the one that a client has from the start."""
        session = EngineSession(self._connection.session())
        self._own.append(session)
        session.raw.open()
        return session

    def end(self, session: EngineSession) -> None:
        """End a session with its links. `SessionEnded` confirms, after a `LinkDetached` for each link."""
        if session.ended:
            return
        session.ended = True
        for link in self._links.values():
            if link.session == session.raw:
                link.mark_detached()
        session.raw.close()

    def end_with_links(self, links: Iterable[Link], condition: str, description: str) -> None:
        """End the sessions that the peer began for some links, with an error. `LinkDetached` confirms for each link."""
        for session in {link.session_id: link.session for link in links}.values():
            session.condition = proton.Condition(condition, description)
            self.end(EngineSession(session))

    def forget(self) -> None:
        """Forget all sessions, since the connection is gone."""
        self._default = None
        self._own.clear()

    def on_begin(self, session: proton.Session) -> str:
        """The peer begins a session: grant it, or end it where the peer has too many.

        Returns:
            why the connection has to end; empty for no reason.
        """
        session.open()
        if not self._max_sessions or len(self._granted) < self._max_sessions:
            self._granted.add(session._impl)
            return ""
        reason = f"a connection may have {self._max_sessions} sessions"
        if len(self._refused) >= self._max_sessions:  # it does not end them, and each takes memory
            return reason
        self._refused.add(session._impl)
        session.condition = proton.Condition("amqp:resource-limit-exceeded", reason)
        session.close()
        return ""

    def on_end(self, session: proton.Session, condition: str, description: str) -> None:
        """The peer ends a session, whose links are gone already; or it confirms an end."""
        if session._impl in self._granted:
            self._granted.discard(session._impl)
            self._events.append(PeerSessionEnded(session._impl))
        self._refused.discard(session._impl)
        for own in self._own:
            if own.raw == session:
                self._events.append(SessionEnded(own, condition, description, own.ended))
                own.ended = True
                self._own.remove(own)
                if own is self._default:
                    self._default = None
                break
        session.close()
        session.free()
