"""The asynchronous console: `Client`, what it returns, and what it tells.

`async with Client("localhost") as client`, then `await client.objects("queue")`; see `Client`.
Importing it starts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.console.aio.agents import Agent
    from qmf.console.aio.answers import Answers
    from qmf.console.aio.client import Client
    from qmf.console.aio.errors import AgentLost
    from qmf.console.aio.events import RemoteEvent
    from qmf.console.aio.feed import Feed, Listener, Overflow
    from qmf.console.aio.filters import Where
    from qmf.console.aio.follow import Follow
    from qmf.console.aio.keys import class_keys, heartbeat_keys
    from qmf.console.aio.notifications import (
        AgentAdded,
        AgentRemoved,
        AgentRestarted,
        AgentUpdated,
        BrokerIdentified,
        BusConnected,
        BusDisconnected,
        BusLinkLost,
        ClassSeen,
        Dropped,
        EventRaised,
        HeartbeatSeen,
        Missed,
        Notification,
        ObjectUpdated,
        PackageSeen,
        Removal,
    )
    from qmf.console.aio.objects import CallResult, RemoteObject, Timestamps
    from qmf.console.aio.picture import ChangeKind, ObjectChange
    from qmf.console.aio.requests import RequestCounts
    from qmf.console.aio.schemas import AnySchema
    from qmf.console.aio.sources import Source
    from qmf.console.aio.views import ClassView
    from qmf.protocol import ObjectId
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.console.aio.agents": "Agent",
            "qmf.console.aio.answers": "Answers",
            "qmf.console.aio.client": "Client",
            "qmf.console.aio.errors": "AgentLost",
            "qmf.console.aio.events": "RemoteEvent",
            "qmf.console.aio.feed": "Feed Listener Overflow",
            "qmf.console.aio.filters": "Where",
            "qmf.console.aio.follow": "Follow",
            "qmf.console.aio.keys": "class_keys heartbeat_keys",
            "qmf.console.aio.notifications": (
                "AgentAdded AgentRemoved AgentRestarted AgentUpdated BrokerIdentified BusConnected BusDisconnected "
                "BusLinkLost ClassSeen Dropped EventRaised HeartbeatSeen Missed Notification ObjectUpdated "
                "PackageSeen Removal"
            ),
            "qmf.console.aio.objects": "CallResult RemoteObject Timestamps",
            "qmf.console.aio.picture": "ChangeKind ObjectChange",
            "qmf.console.aio.requests": "RequestCounts",
            "qmf.console.aio.schemas": "AnySchema",
            "qmf.console.aio.sources": "Source",
            "qmf.console.aio.views": "ClassView",
            "qmf.protocol": "ObjectId",
        },
    )

__all__ = [
    "Agent",
    "AgentAdded",
    "AgentLost",
    "AgentRemoved",
    "AgentRestarted",
    "AgentUpdated",
    "Answers",
    "AnySchema",
    "BrokerIdentified",
    "BusConnected",
    "BusDisconnected",
    "BusLinkLost",
    "CallResult",
    "ChangeKind",
    "ClassSeen",
    "ClassView",
    "Client",
    "Dropped",
    "EventRaised",
    "Feed",
    "Follow",
    "HeartbeatSeen",
    "Listener",
    "Missed",
    "Notification",
    "ObjectChange",
    "ObjectId",
    "ObjectUpdated",
    "Overflow",
    "PackageSeen",
    "RemoteEvent",
    "RemoteObject",
    "Removal",
    "RequestCounts",
    "Source",
    "Timestamps",
    "Where",
    "class_keys",
    "heartbeat_keys",
]
