"""The embedded broker: AMQP 1.0 with the exchanges that QMF needs, in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.broker.embedded import EmbeddedBroker
    from qmf.broker.listener import ListenError
    from qmf.broker.nodes.counters import BrokerCounters
    from qmf.broker.nodes.settings import QueueLimits
    from qmf.broker.options import BrokerOptions
    from qmf.broker.protocols.amqp.options import AmqpOptions
    from qmf.broker.server import Broker
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.broker.nodes.counters": "BrokerCounters",
            "qmf.broker.embedded": "EmbeddedBroker",
            "qmf.broker.nodes.settings": "QueueLimits",
            "qmf.broker.listener": "ListenError",
            "qmf.broker.options": "BrokerOptions",
            "qmf.broker.protocols.amqp.options": "AmqpOptions",
            "qmf.broker.server": "Broker",
        },
    )

__all__ = ["AmqpOptions", "Broker", "BrokerCounters", "BrokerOptions", "EmbeddedBroker", "ListenError", "QueueLimits"]
