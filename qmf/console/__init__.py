"""The console: find agents, read and follow their objects, call their methods, receive their events.

This package holds the published synchronous API under its documented names. It runs on the asynchronous core
`qmf.console.aio`, which is public, too. Importing it starts nothing: threads start with a session's first broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf._loop_thread import LoopThread
    from qmf.console.callbacks import Console, DebugConsole
    from qmf.console.events import Event
    from qmf.console.identity import BrokerURL, ClassKey, ObjectId
    from qmf.console.proxies import Agent, Broker, MethodResult, Object
    from qmf.console.schema_views import SchemaArgument, SchemaClass, SchemaMethod, SchemaProperty, SchemaStatistic
    from qmf.console.session import Session
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.console.callbacks": "Console DebugConsole",
            "qmf.console.events": "Event",
            "qmf.console.identity": "BrokerURL ClassKey ObjectId",
            "qmf._loop_thread": "LoopThread",
            "qmf.console.proxies": "Agent Broker MethodResult Object",
            "qmf.console.schema_views": "SchemaArgument SchemaClass SchemaMethod SchemaProperty SchemaStatistic",
            "qmf.console.session": "Session",
        },
    )

__all__ = [
    "Agent",
    "Broker",
    "BrokerURL",
    "ClassKey",
    "Console",
    "DebugConsole",
    "Event",
    "LoopThread",
    "MethodResult",
    "Object",
    "ObjectId",
    "SchemaArgument",
    "SchemaClass",
    "SchemaMethod",
    "SchemaProperty",
    "SchemaStatistic",
    "Session",
]
