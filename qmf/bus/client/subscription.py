"""A subscription of a bus, over its connections."""

from __future__ import annotations

from typing import Protocol

from qmf.bus.base import Binding, MessageCallback, Subscription
from qmf.bus.client.persistent_link import ReattachLimit


class SubscriptionOwner(Protocol):
    """Keeps subscriptions in place; the bus."""

    async def unsubscribe(self, subscription: AmqpSubscription) -> None:
        """End a subscription. A second call does nothing."""


class AmqpSubscription(Subscription):
    """A binding on an AMQP bus. Each connection has a `ReceiverLink` for it.

    Attributes:
        on_message, prefetch: as of `Bus.subscribe`.
        reattach_limit: of its links.
    """

    def __init__(self, owner: SubscriptionOwner, binding: Binding, on_message: MessageCallback, prefetch: int) -> None:
        self.binding = binding
        self.on_message = on_message
        self.prefetch = prefetch
        self.reattach_limit = ReattachLimit()
        self._owner = owner

    async def close(self) -> None:
        """See `Subscription`."""
        await self._owner.unsubscribe(self)
