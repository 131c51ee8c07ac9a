"""The types of exchanges, by their names in AMQP 0-10 and qpidd."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.broker.nodes.exchanges import (
    DirectExchange,
    Exchange,
    FanoutExchange,
    HeadersExchange,
    MqttExchange,
    TopicExchange,
)
from qmf.broker.nodes.settings import ExchangeSettings


def _xml_exchange(name: str, settings: ExchangeSettings) -> Exchange:
    # Imported here, because few brokers need it: its library is large.
    from qmf.broker.nodes.xml_exchange import XmlExchange

    return XmlExchange(name, settings)


#: How an exchange of each type is created.
EXCHANGE_TYPES: Mapping[str, Callable[[str, ExchangeSettings], Exchange]] = {
    "direct": DirectExchange,
    "topic": TopicExchange,
    "fanout": FanoutExchange,
    "headers": HeadersExchange,
    "xml": _xml_exchange,
    "mqtt": MqttExchange,
}
