"""Moving messages: the `Bus` interface, its AMQP 1.0 driver, and a fake for tests."""

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
    Watcher,
)
from qmf.bus.memory import MemoryBus, MemoryExchange
from qmf.bus.phase import PhaseError
from qmf.bus.url import BusUrl, UrlError, parse_url

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
    "UrlError",
    "Watcher",
    "parse_url",
]
