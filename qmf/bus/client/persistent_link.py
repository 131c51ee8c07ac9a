"""A link that outlives the engine's links: it is attached on one network connection after the other.

When the broker refuses or ends it, the class of the link decides what follows. The states are those of `link_state.py`.
"""

from __future__ import annotations

import abc
import asyncio

from qmf.bus.client.link_state import TRANSITIONS, LinkState, LinkTrigger
from qmf.bus.client.network_connection import LinkOwner, NetworkConnection
from qmf.bus.engine.link import Link
from qmf.bus.engine.session import EngineSession


class PersistentLink(LinkOwner, abc.ABC):
    """A link of a client."""

    __slots__ = ("_engine_session", "_link", "_network", "_state", "_timer")

    def __init__(self) -> None:
        self._state = LinkState.DETACHED
        #: Where the link is, or was last asked for; None without a connection.
        self._network: NetworkConnection | None = None
        self._engine_session: EngineSession | None = None
        #: The engine's link, a new one after each attach; None while there is none.
        self._link: Link | None = None
        #: Until the end of a pause.
        self._timer: asyncio.TimerHandle | None = None

    @property
    def attached(self) -> bool:
        """True while messages can be transferred."""
        return self._state is LinkState.ATTACHED

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._state is LinkState.CLOSED

    def attach(self, network: NetworkConnection, session: EngineSession | None = None) -> None:
        """Ask the broker for the link, unless it is there, or shall not be attached any more.

        Args:
            network: on which connection.
            session: in which session; None for that which the connection has from the start.
        """
        if self._state not in (LinkState.DETACHED, LinkState.PAUSED):
            return
        self._stop_timer()
        self._move(LinkTrigger.ATTACH)
        self._network, self._engine_session = network, session
        link = self._link = self._request(network, session)
        network.set_owner(link, self)
        network.transport.flush_soon()

    def lose(self) -> None:
        """The connection is gone. The link is to be attached on the next one."""
        self._stop_timer()
        self._move(LinkTrigger.LOSE)
        self._network = self._engine_session = self._link = None

    def close(self) -> asyncio.Future[None] | None:
        """End the link for good. May be called again.

        Returns:
            done when the broker has confirmed that, or is gone; None if there is nothing to confirm.
        """
        self._stop_timer()
        confirmed = self._detach_link()
        self._move(LinkTrigger.CLOSE)
        self._network = None
        return confirmed

    # LinkOwner

    def on_attached(self) -> None:
        """See `LinkOwner`."""
        assert self._link is not None
        self._move(LinkTrigger.GRANT)
        self._on_granted(self._link)

    def on_detached(self, condition: str, description: str) -> None:
        """See `LinkOwner`."""
        self._link = None
        pause = self._on_ended(condition, description)
        if self._state is LinkState.FAILED:
            return
        self._move(LinkTrigger.LOSE)
        network, session = self._network, self._engine_session
        if pause is None or network is None or not network.usable:
            return
        if pause == 0:
            self.attach(network, session)
        else:
            self._move(LinkTrigger.PAUSE)
            self._timer = asyncio.get_running_loop().call_later(pause, self.attach, network, session)

    # What subclasses do

    @abc.abstractmethod
    def _request(self, network: NetworkConnection, session: EngineSession | None) -> Link:
        """Ask the broker for a new link."""

    @abc.abstractmethod
    def _on_granted(self, link: Link) -> None:
        """The link is attached, for the first time or again."""

    @abc.abstractmethod
    def _on_ended(self, condition: str, description: str) -> float | None:
        """The broker has ended the link, or has refused it if it is not `attached`.

        Returns:
            seconds after which it is asked for again; 0 for at once. None: not by itself.
        """

    # For subclasses

    def _move(self, trigger: LinkTrigger) -> None:
        self._state = TRANSITIONS.next(self._state, trigger)

    def _fail(self) -> None:
        """Don't attach the link any more; what is there of it is not ended."""
        self._stop_timer()
        self._move(LinkTrigger.FAIL)
        self._network = self._link = None

    def _detach_link(self) -> asyncio.Future[None] | None:
        """End the engine's link, if there is one; see `close`."""
        link, self._link = self._link, None
        if link is None or self._network is None:
            return None
        return self._network.detach(link)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
