"""The asynchronous console: `Client`, what it returns, and what it tells.

`async with Client("localhost") as client`, then `await client.objects("queue")`; see `Client`.
Importing it starts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.console.aio.agents.registry import Agent
    from qmf.console.aio.binding_keys import class_keys, heartbeat_keys
    from qmf.console.aio.client import Client
    from qmf.console.aio.following.agent_follower import FollowMode
    from qmf.console.aio.following.follow import Follow
    from qmf.console.aio.following.followed_objects import ChangeKind, ObjectChange
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
    from qmf.console.aio.objects.class_view import ClassView
    from qmf.console.aio.objects.remote_event import RemoteEvent
    from qmf.console.aio.objects.remote_object import CallResult, RemoteObject, Timestamps
    from qmf.console.aio.queries.answers import Answers
    from qmf.console.aio.queries.filters import Where
    from qmf.console.aio.rpc.errors import AgentLost
    from qmf.console.aio.rpc.requests import RequestCounts
    from qmf.console.aio.schemas.cache import AnySchema
    from qmf.console.aio.streams import Listener, NotificationStream, Overflow
    from qmf.protocol import ObjectId
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.console.aio.agents.registry": "Agent",
            "qmf.console.aio.queries.answers": "Answers",
            "qmf.console.aio.client": "Client",
            "qmf.console.aio.rpc.errors": "AgentLost",
            "qmf.console.aio.objects.remote_event": "RemoteEvent",
            "qmf.console.aio.streams": "NotificationStream Listener Overflow",
            "qmf.console.aio.queries.filters": "Where",
            "qmf.console.aio.following.follow": "Follow",
            "qmf.console.aio.binding_keys": "class_keys heartbeat_keys",
            "qmf.console.aio.notifications": (
                "AgentAdded AgentRemoved AgentRestarted AgentUpdated BrokerIdentified BusConnected BusDisconnected "
                "BusLinkLost ClassSeen Dropped EventRaised HeartbeatSeen Missed Notification ObjectUpdated "
                "PackageSeen Removal"
            ),
            "qmf.console.aio.objects.remote_object": "CallResult RemoteObject Timestamps",
            "qmf.console.aio.following.followed_objects": "ChangeKind ObjectChange",
            "qmf.console.aio.rpc.requests": "RequestCounts",
            "qmf.console.aio.schemas.cache": "AnySchema",
            "qmf.console.aio.following.agent_follower": "FollowMode",
            "qmf.console.aio.objects.class_view": "ClassView",
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
    "Follow",
    "FollowMode",
    "HeartbeatSeen",
    "Listener",
    "Missed",
    "Notification",
    "NotificationStream",
    "ObjectChange",
    "ObjectId",
    "ObjectUpdated",
    "Overflow",
    "PackageSeen",
    "RemoteEvent",
    "RemoteObject",
    "Removal",
    "RequestCounts",
    "Timestamps",
    "Where",
    "class_keys",
    "heartbeat_keys",
]
