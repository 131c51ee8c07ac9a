"""The links of a bus, over its connections: a `ReceiverLink` for each subscription, and the links on which it sends.

They are put in place on each network connection. What happens to them and to the connection is reported to watchers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmf._marks import USER
from qmf.bus.base import (
    Binding,
    BusEvent,
    Connected,
    DataCallback,
    Disconnected,
    LinkLost,
    MessageCallback,
    Subscription,
)
from qmf.bus.client.failures import NetworkFailure
from qmf.bus.watchers import BusWatchers
from qmf.errors import DisconnectedError, LinkError

if TYPE_CHECKING:
    from qmf.bus.client.network_connection import NetworkConnection
    from qmf.bus.client.receiver_link import ReceiverLink
    from qmf.bus.client.sender_links import SenderLinks

log = logging.getLogger("qmf.bus")

#: Seconds that closing may wait for each of: outcomes of messages, the broker's answer to our detach.
CLOSE_TIMEOUT = 2.0


class AmqpSubscription(Subscription):
    """One binding on an AMQP bus, or several with one receiver; `binding` is the first of them then."""

    def __init__(self, links: BusLinks, binding: Binding) -> None:
        self.binding = binding
        self._links = links

    async def close(self) -> None:
        """See `Subscription`."""
        await self._links.unsubscribe(self)


class BusLinks:
    """The links of one bus; the owner of its persistent connection.

    Attributes:
        network: the connection; None while the bus is not connected, or is being closed.
        senders: the links on which messages are sent; None as well.
        closing: True once the bus is being closed.
    """

    def __init__(self, url: str, watchers: BusWatchers) -> None:
        """Make the links of a bus, which has none yet.

        Args:
            url: of the bus, for errors.
            watchers: notified of what happens.
        """
        self.network: NetworkConnection | None = None
        self.senders: SenderLinks | None = None
        self._url = url
        self._watchers = watchers
        #: One for each binding of a subscription; the first is for all where the broker can do that.
        self._receivers: dict[Subscription, list[ReceiverLink]] = {}
        #: Those of a connection whose links are being put in place; and whether an earlier one has sent.
        self._prepared: SenderLinks | None = None
        self._has_sent = False
        #: Those that wait for outcomes while the bus is being closed.
        self._finishing: SenderLinks | None = None
        self.closing = False
        #: Who has logged in, as the broker says; None if it says nothing.
        self.user: str | None = None

    async def subscribe(
        self,
        bindings: Sequence[Binding],
        on_message: MessageCallback | None,
        prefetch: int,
        on_data: DataCallback | None = None,
    ) -> Subscription:
        """See `Bus.subscribe_all` and, with `on_data`, `Bus.subscribe_data`; the bus is connected."""
        from qmf.bus.client.receiver_link import ReceiverLink

        assert self.network is not None
        binding, *further = bindings
        subscription = AmqpSubscription(self, binding)
        first = ReceiverLink(self._notify, binding, on_message, prefetch, on_data, further=further)
        others = [ReceiverLink(self._notify, other, on_message, prefetch, on_data, carrier=False) for other in further]
        links = self._receivers[subscription] = [first, *others]
        try:
            for link in links:
                link.attach(self.network)
            for link in links:
                if (error := await asyncio.shield(link.answer)) is not None:
                    raise error
        except BaseException:
            self._receivers.pop(subscription, None)
            for link in links:
                link.close()
            raise
        return subscription

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription, and wait until the broker has confirmed that, or is gone. A second call does nothing."""
        links = self._receivers.pop(subscription, ())
        if confirmed := [each for each in [link.close() for link in links] if each is not None]:
            await asyncio.wait(confirmed, timeout=CLOSE_TIMEOUT)

    async def finish(self) -> None:
        """The bus is being closed: wait for the outcomes of its messages."""
        self.closing = True
        self.network = None
        self._finishing, self.senders = self.senders, None
        if self._finishing is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await self._finishing.finish()

    # The connection

    async def attach_links(self, network: NetworkConnection) -> None:
        """See `ConnectionOwner`."""
        from qmf.bus.client.sender_links import SenderLinks

        self._prepared = SenderLinks(network, self._notify)
        links = self._all_receivers()
        for link in links:
            link.attach(network)
        if self._has_sent:
            # It leaves in one write with the others, and the first message need not wait for its answer.
            self._prepared.prepare()
        if links:
            await asyncio.wait([link.answer for link in links])

    def lose(self, failure: NetworkFailure) -> None:
        """See `ConnectionOwner`."""
        error = DisconnectedError(self._url, failure.reason)
        senders, self.network = self.senders or self._finishing or self._prepared, None
        self.senders = self._finishing = self._prepared = None
        if senders is not None:
            self._has_sent = self._has_sent or senders.used
            senders.disconnect(error)
        for link in self._all_receivers():
            link.disconnect(error)

    def on_connected(self, network: NetworkConnection, *, again: bool) -> None:
        """See `ConnectionOwner`."""
        if self.closing:
            return
        self.network, self.senders, self._prepared = network, self._prepared, None
        user = network.peer.properties.get(USER)
        self.user = user if isinstance(user, str) else None
        who = network.peer.container or "no container id"
        # As visible as the loss was, which is a warning.
        if again:
            log.warning("connected to %s again (%s)", self._url, who)
        else:
            log.info("connected to %s (%s)", self._url, who)
        self._notify(Connected(again, network.peer.container))

    def on_disconnected(self, failure: NetworkFailure, wait: float | None) -> None:
        """See `ConnectionOwner`."""
        if self.closing:
            return
        retry = "" if wait is None else f"; trying again in {wait:.1f} s"
        log.warning("connection to %s lost: %s%s", self._url, failure.reason, retry)
        self._notify(Disconnected(failure.reason, wait))

    def on_given_up(self, error: Exception) -> None:
        """See `ConnectionOwner`. Attempts have no end."""

    def is_final(self, error: Exception) -> bool:  # noqa: ARG002
        """See `ConnectionOwner`. The broker may learn of a user later."""
        return False

    def _all_receivers(self) -> list[ReceiverLink]:
        return [link for links in self._receivers.values() for link in links]

    def _notify(self, event: BusEvent) -> None:
        if isinstance(event, LinkLost):
            log.warning("%s: %s", self._url, LinkError(event.address, event.condition, event.description))
        self._watchers.notify(event)
