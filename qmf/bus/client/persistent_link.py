"""What all links of a client have in common: they are attached again when the broker detaches them.

Brokers detach links for reasons that may pass: they answer invalid messages that way (QMF2.md 0, point 10), and delete
queues. A link is attached again at once for `MAX_REATTACHMENTS` times in a row, then only after pauses, so that a
broker that does not want it is not flooded. The states are those of `link_state.py`.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Callable

from qmf.bus.base import LinkLost
from qmf.bus.client.link_state import TRANSITIONS, BusLinkState, BusLinkTrigger
from qmf.bus.engine.events import LinkDetached
from qmf.bus.engine.link import Link
from qmf.bus.transport import AmqpTransport
from qmf.errors import LinkError, NetworkError

#: A link that the broker detaches is attached again at once so many times in a row; then only after pauses.
MAX_REATTACHMENTS = 5


class ReattachLimit:
    """Counts how often a link was attached again at once since it has last proved useful.

    Attributes:
        used: the count; set to 0 when the link proves useful.
    """

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0

    def use(self) -> bool:
        """Count one more time; returns False when the limit is reached."""
        if self.used >= MAX_REATTACHMENTS:
            return False
        self.used += 1
        return True


class PersistentLink(abc.ABC):
    """A link of a client's connection, over its detaches.

    Attributes:
        address: of its node; empty for the link to the anonymous relay.
        link: the engine's link, a new one after each attach; None while not attached.
        ended: set when the link is closed for good.
    """

    def __init__(
        self,
        transport: AmqpTransport,
        links: dict[Link, PersistentLink],
        report: Callable[[LinkLost], None],
        *,
        address: str,
        limit: ReattachLimit,
        pause: float,
    ) -> None:
        """Args:

        transport: of the connection.
        links: all links of the connection that have one of the engine's; kept up to date.
        report: called with what watchers are to be notified of.
        address: of the node, for errors; empty for the anonymous relay.
        limit: on attaching again at once.
        pause: seconds between further attempts.
        """
        self.address = address
        self.link: Link | None = None
        self.ended = asyncio.Event()
        self._transport = transport
        self._links = links
        self._report = report
        self._limit = limit
        self._pause_seconds = pause
        self._loop = asyncio.get_running_loop()
        self._state = BusLinkState.IDLE
        #: Why the broker has detached the link, until it is attached again.
        self._lost: LinkError | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def attached(self) -> bool:
        """True while messages can be transferred."""
        return self._state is BusLinkState.ATTACHED

    def close(self) -> None:
        """Detach the link. `ended` is set when the broker has confirmed that, or is gone. May be called again."""
        self._change(BusLinkTrigger.CLOSE)
        if self._state is BusLinkState.CLOSED:
            self._end()
        elif self.link is not None:
            self._transport.engine.detach(self.link)
            self._transport.flush_soon()

    # Events of the connection

    def on_attached(self) -> None:
        """The broker has granted the link."""
        if self._state is BusLinkState.CLOSING:
            return  # its answer crossed our detach
        self._change(BusLinkTrigger.GRANT)
        lost, self._lost = self._lost, None
        if lost is not None:
            self._report(LinkLost(lost.address, lost.condition, lost.description, reopened=True))
        self._on_granted()

    def on_detached(self, event: LinkDetached, *, reattach: bool) -> None:
        """The broker has detached or refused the link, or confirmed our detach.

        Args:
            event: has the broker's error.
            reattach: False when the link must not be attached again at once.
        """
        self._forget_link()
        if self._state is BusLinkState.CLOSING:
            self._end()
            return
        error = LinkError(self.address, event.condition or "amqp:link:detach-forced", event.description)
        if self._state is not BusLinkState.ATTACHED:
            self._change(BusLinkTrigger.REFUSE)
            self._on_refused(error)
            return
        self._lost = error
        self._on_lost(error)
        if reattach and self._limit.use():
            self._request(BusLinkTrigger.REATTACH)
        else:
            self._pause()

    def on_disconnected(self, error: NetworkError) -> None:
        """The connection has ended."""
        self._forget_link()
        self._end()
        self._on_disconnected(error)

    # What subclasses do

    @abc.abstractmethod
    def _new_link(self) -> Link:
        """Ask the broker for a new link."""

    @abc.abstractmethod
    def _on_granted(self) -> None:
        """The link is attached, for the first time or again."""

    @abc.abstractmethod
    def _on_refused(self, error: LinkError) -> None:
        """The broker has refused the link, the first time or later."""

    @abc.abstractmethod
    def _on_lost(self, error: LinkError) -> None:
        """The broker has detached the link. It will be attached again, at once or after a pause."""

    @abc.abstractmethod
    def _on_disconnected(self, error: NetworkError) -> None:
        """The connection has ended, and the link with it."""

    # For subclasses

    def _change(self, trigger: BusLinkTrigger) -> None:
        self._state = TRANSITIONS.next(self._state, trigger)

    def _request(self, trigger: BusLinkTrigger) -> None:
        """Ask the broker for the link."""
        self._change(trigger)
        self._timer = None
        self.link = self._new_link()
        self._links[self.link] = self
        self._transport.flush_soon()

    def _pause(self) -> None:
        """Attach the link again after a pause."""
        self._change(BusLinkTrigger.PAUSE)
        self._timer = self._loop.call_later(self._pause_seconds, self._request, BusLinkTrigger.REATTACH)

    def _end(self) -> None:
        self._change(BusLinkTrigger.END)
        if self._timer is not None:
            self._timer.cancel()
        self.ended.set()

    def _forget_link(self) -> None:
        link, self.link = self.link, None
        if link is not None:
            self._links.pop(link, None)
