"""Manages the broker that a program is connected to, by the published names of Apache's `BrokerAgent`.

`BrokerAgent` sends each request to the agent inside the broker over a connection of `qmf.messaging`, and waits for the
answer. For agents of other programs, for following objects and for events with types, see `qmf.console`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.client.broker_agent import BrokerAgent
    from qmf.client.events import BrokerEvent, EventHelper
    from qmf.client.objects import (
        Acl,
        Binding,
        Broker,
        BrokerObject,
        Cluster,
        Connection,
        Exchange,
        HaBroker,
        Link,
        Memory,
        Queue,
        Session,
        Subscription,
    )
    from qmf.client.reconnect_delays import ReconnectDelays
    from qmf.protocol import ErrorCode
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.client.broker_agent": "BrokerAgent",
            "qmf.client.events": "BrokerEvent EventHelper",
            "qmf.client.objects": (
                "Acl Binding Broker BrokerObject Cluster Connection Exchange HaBroker Link Memory Queue Session "
                "Subscription"
            ),
            "qmf.client.reconnect_delays": "ReconnectDelays",
            "qmf.protocol": "ErrorCode",
        },
    )

__all__ = [
    "Acl",
    "Binding",
    "Broker",
    "BrokerAgent",
    "BrokerEvent",
    "BrokerObject",
    "Cluster",
    "Connection",
    "ErrorCode",
    "EventHelper",
    "Exchange",
    "HaBroker",
    "Link",
    "Memory",
    "Queue",
    "ReconnectDelays",
    "Session",
    "Subscription",
]
