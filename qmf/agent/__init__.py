"""Agents: the runtime base of generated classes, and the agent that makes their objects visible on the bus.

A program makes objects of generated classes, adds them to an `Agent` and sets their values; consoles read them, call
their methods, and receive changes and events. From the object outwards:

* `layout`, `accessors` and `model`: the runtime base of generated classes, which knows no bus;
* `objects` and `providers`: the objects of one agent;
* `sending` and `publishing`: messages, and what is published without a request;
* `requests`: what consoles ask for;
* `agent` and the other modules beside it: the whole agent, its options, identity, time and counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.agent.accessors.counter import Counter
    from qmf.agent.accessors.descriptors import (
        Attribute,
        CounterAttribute,
        HiLoAttribute,
        MmaAttribute,
        ReferenceAttribute,
    )
    from qmf.agent.accessors.hilo import HiLo
    from qmf.agent.accessors.mma import Mma
    from qmf.agent.agent import Agent, AgentThread, agent_of
    from qmf.agent.clock import Clock, SystemClock
    from qmf.agent.metrics import AgentStatistics
    from qmf.agent.model.arguments import Event, MaybeAwaitable, Result
    from qmf.agent.model.managed_object import ManagedObject, Ref
    from qmf.agent.objects.object_store import DuplicateObjectError
    from qmf.agent.options import AgentOptions
    from qmf.agent.providers import Provider, ProviderQuery
    from qmf.agent.publishing.event_rate_limiter import EventLimit
    from qmf.agent.request_errors import MethodError
    from qmf.agent.requests.access import Access, AccessRequest, Action
    from qmf.agent.requests.call_audit import CallAudit
    from qmf.agent.requests.method_handler import Caller, current_caller
    from qmf.agent.requests.subscription_handler import SubscriptionLimits
    from qmf.protocol.contents import ErrorCode
    from qmf.protocol.values import ObjectId
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.agent.requests.access": "Access AccessRequest Action",
            "qmf.agent.accessors.counter": "Counter",
            "qmf.agent.accessors.hilo": "HiLo",
            "qmf.agent.accessors.mma": "Mma",
            "qmf.agent.agent": "Agent AgentThread agent_of",
            "qmf.agent.model.arguments": "Event MaybeAwaitable Result",
            "qmf.agent.accessors.descriptors": (
                "Attribute CounterAttribute HiLoAttribute MmaAttribute ReferenceAttribute"
            ),
            "qmf.agent.requests.call_audit": "CallAudit",
            "qmf.agent.clock": "Clock SystemClock",
            "qmf.agent.publishing.event_rate_limiter": "EventLimit",
            "qmf.agent.requests.method_handler": "Caller current_caller",
            "qmf.agent.model.managed_object": "ManagedObject Ref",
            "qmf.agent.objects.object_store": "DuplicateObjectError",
            "qmf.agent.options": "AgentOptions",
            "qmf.agent.providers": "Provider ProviderQuery",
            "qmf.agent.request_errors": "MethodError",
            "qmf.agent.requests.subscription_handler": "SubscriptionLimits",
            "qmf.agent.metrics": "AgentStatistics",
            "qmf.protocol.contents": "ErrorCode",
            "qmf.protocol.values": "ObjectId",
        },
    )

__all__ = [
    "Access",
    "AccessRequest",
    "Action",
    "Agent",
    "AgentOptions",
    "AgentStatistics",
    "AgentThread",
    "Attribute",
    "CallAudit",
    "Caller",
    "Clock",
    "Counter",
    "CounterAttribute",
    "DuplicateObjectError",
    "ErrorCode",
    "Event",
    "EventLimit",
    "HiLo",
    "HiLoAttribute",
    "ManagedObject",
    "MaybeAwaitable",
    "MethodError",
    "Mma",
    "MmaAttribute",
    "ObjectId",
    "Provider",
    "ProviderQuery",
    "Ref",
    "ReferenceAttribute",
    "Result",
    "SubscriptionLimits",
    "SystemClock",
    "agent_of",
    "current_caller",
]
