"""Transport of messages: the `Bus` interface, its driver for AMQP 1.0, and one in memory for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.bus.backoff import Backoff
    from qmf.bus.base import (
        Binding,
        Bus,
        BusEvent,
        BusWatcher,
        Connected,
        Disconnected,
        ExchangeKind,
        LinkLost,
        MessageCallback,
        OutcomeCallback,
        ReceivedMessage,
        Subscription,
    )
    from qmf.bus.client.amqp_bus import AmqpBus
    from qmf.bus.connection_state import BusStateError
    from qmf.bus.memory.bus import MemoryBus
    from qmf.bus.memory.exchange import MemoryExchange
    from qmf.bus.url import BusUrl, UrlError, parse_url
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.bus.client.amqp_bus": "AmqpBus",
            "qmf.bus.backoff": "Backoff",
            "qmf.bus.base": (
                "Binding Bus BusEvent BusWatcher Connected Disconnected ExchangeKind LinkLost MessageCallback "
                "OutcomeCallback ReceivedMessage Subscription"
            ),
            "qmf.bus.memory.bus": "MemoryBus",
            "qmf.bus.memory.exchange": "MemoryExchange",
            "qmf.bus.connection_state": "BusStateError",
            "qmf.bus.url": "BusUrl UrlError parse_url",
        },
    )

__all__ = [
    "AmqpBus",
    "Backoff",
    "Binding",
    "Bus",
    "BusEvent",
    "BusStateError",
    "BusUrl",
    "BusWatcher",
    "Connected",
    "Disconnected",
    "ExchangeKind",
    "LinkLost",
    "MemoryBus",
    "MemoryExchange",
    "MessageCallback",
    "OutcomeCallback",
    "ReceivedMessage",
    "Subscription",
    "UrlError",
    "parse_url",
]
