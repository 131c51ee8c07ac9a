"""Moving messages: the `Bus` interface, its AMQP 1.0 driver, and a fake for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.bus.amqp import AmqpBus
    from qmf.bus.backoff import Backoff
    from qmf.bus.base import (
        Binding,
        Bus,
        BusEvent,
        Connected,
        Deliver,
        Disconnected,
        ExchangeKind,
        LinkLost,
        Received,
        Subscription,
        Told,
        Watcher,
    )
    from qmf.bus.memory import MemoryBus, MemoryExchange
    from qmf.bus.phase import PhaseError
    from qmf.bus.url import BusUrl, UrlError, parse_url
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.bus.amqp": "AmqpBus",
            "qmf.bus.backoff": "Backoff",
            "qmf.bus.base": (
                "Binding Bus BusEvent Connected Deliver Disconnected ExchangeKind LinkLost Received Subscription Told "
                "Watcher"
            ),
            "qmf.bus.memory": "MemoryBus MemoryExchange",
            "qmf.bus.phase": "PhaseError",
            "qmf.bus.url": "BusUrl UrlError parse_url",
        },
    )

__all__ = [
    "AmqpBus",
    "Backoff",
    "Binding",
    "Bus",
    "BusEvent",
    "BusUrl",
    "Connected",
    "Deliver",
    "Disconnected",
    "ExchangeKind",
    "LinkLost",
    "MemoryBus",
    "MemoryExchange",
    "PhaseError",
    "Received",
    "Subscription",
    "Told",
    "UrlError",
    "Watcher",
    "parse_url",
]
