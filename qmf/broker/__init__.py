"""The embedded broker: AMQP 1.0 with the exchanges that QMF needs, in this process."""

from qmf.broker.counters import Counters
from qmf.broker.embedded import EmbeddedBroker
from qmf.broker.queues import Limits
from qmf.broker.server import Broker, ListenError

__all__ = ["Broker", "Counters", "EmbeddedBroker", "Limits", "ListenError"]
