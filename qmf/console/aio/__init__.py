"""The asynchronous console: `Client`, its results, and its notifications.

`async with Client("localhost") as client`, then `await client.objects("queue")`; see `Client`.
Importing it starts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.console.aio.agent_search import StillFindingAgents
    from qmf.console.aio.agents import Agent
    from qmf.console.aio.answers import Answers
    from qmf.console.aio.client import Client
    from qmf.console.aio.core import ClientOptions
    from qmf.console.aio.following.agent_follower import FollowMode
    from qmf.console.aio.following.follow import Follow
    from qmf.console.aio.following.followed_objects import ChangeKind, ObjectChange
    from qmf.console.aio.following.store import FollowedStore
    from qmf.console.aio.lost_objects import LostObject
    from qmf.console.aio.notifications import (
        AgentAdded,
        AgentRemoved,
        AgentRestarted,
        AgentsFound,
        AgentUpdated,
        BrokerIdentified,
        BusConnected,
        BusDisconnected,
        BusLinkLost,
        ClassSeen,
        ClassUsed,
        Dropped,
        EventRaised,
        HeartbeatSeen,
        Listener,
        Missed,
        Notification,
        NotificationStream,
        ObjectUpdated,
        Overflow,
        PackageSeen,
        Removal,
    )
    from qmf.console.aio.objects.class_fields import ClassFields
    from qmf.console.aio.objects.object_query import Where
    from qmf.console.aio.objects.remote_event import RemoteEvent
    from qmf.console.aio.objects.remote_object import CallResult, RemoteObject, Timestamps
    from qmf.console.aio.receiver import class_keys, heartbeat_keys
    from qmf.console.aio.rpc.requests import AgentLost, RequestCounts
    from qmf.console.aio.schemas import AnySchema
    from qmf.protocol import ObjectId, OrderKey, TextSearch, texts_in
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.console.aio.agent_search": "StillFindingAgents",
            "qmf.console.aio.agents": "Agent",
            "qmf.console.aio.receiver": "class_keys heartbeat_keys",
            "qmf.console.aio.client": "Client",
            "qmf.console.aio.core": "ClientOptions",
            "qmf.console.aio.following.agent_follower": "FollowMode",
            "qmf.console.aio.following.follow": "Follow",
            "qmf.console.aio.following.followed_objects": "ChangeKind ObjectChange",
            "qmf.console.aio.following.store": "FollowedStore",
            "qmf.console.aio.lost_objects": "LostObject",
            "qmf.console.aio.notifications": (
                "AgentAdded AgentRemoved AgentRestarted AgentUpdated AgentsFound BrokerIdentified BusConnected "
                "BusDisconnected BusLinkLost ClassSeen ClassUsed Dropped EventRaised HeartbeatSeen Listener Missed "
                "Notification NotificationStream ObjectUpdated Overflow PackageSeen Removal"
            ),
            "qmf.console.aio.objects.class_fields": "ClassFields",
            "qmf.console.aio.objects.remote_event": "RemoteEvent",
            "qmf.console.aio.objects.remote_object": "CallResult RemoteObject Timestamps",
            "qmf.console.aio.answers": "Answers",
            "qmf.console.aio.objects.object_query": "Where",
            "qmf.console.aio.rpc.requests": "AgentLost RequestCounts",
            "qmf.console.aio.schemas": "AnySchema",
            "qmf.protocol": "ObjectId OrderKey TextSearch texts_in",
        },
    )

__all__ = [
    "Agent",
    "AgentAdded",
    "AgentLost",
    "AgentRemoved",
    "AgentRestarted",
    "AgentUpdated",
    "AgentsFound",
    "Answers",
    "AnySchema",
    "BrokerIdentified",
    "BusConnected",
    "BusDisconnected",
    "BusLinkLost",
    "CallResult",
    "ChangeKind",
    "ClassFields",
    "ClassSeen",
    "ClassUsed",
    "Client",
    "ClientOptions",
    "Dropped",
    "EventRaised",
    "Follow",
    "FollowMode",
    "FollowedStore",
    "HeartbeatSeen",
    "Listener",
    "LostObject",
    "Missed",
    "Notification",
    "NotificationStream",
    "ObjectChange",
    "ObjectId",
    "ObjectUpdated",
    "OrderKey",
    "Overflow",
    "PackageSeen",
    "RemoteEvent",
    "RemoteObject",
    "Removal",
    "RequestCounts",
    "StillFindingAgents",
    "TextSearch",
    "Timestamps",
    "Where",
    "class_keys",
    "heartbeat_keys",
    "texts_in",
]
