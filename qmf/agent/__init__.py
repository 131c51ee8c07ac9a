"""Agents: the runtime base of generated classes, and the agent that makes their objects visible on the bus.

A program makes objects of generated classes, hands them to an `Agent` and sets their values; consoles read them, call
their methods and hear of changes and events. Modules, from the object outwards:

* the runtime base, which knows no bus: `checks`, `references`, `expressions`, `layout`, `complaints`, `accessors`,
  `guarded`, `derived`, `setters`, `tuned`, `attributes`, `collecting`, `values`, `arguments` and `model`;
* what is there: `keys`, `objects`, `rows`, `providers` and `sources`;
* telling: `numbering`, `parts`, `outbox`, `templates`, `writing`, `publisher`, `floods`, `events`, `raising`, `views`
  and `subscriptions`;
* being asked: `access`, `audit`, `refusal`, `discovery`, `blocks`, `answers`, `queries`, `running`, `signatures`,
  `methods` and `requests`;
* the whole: `starts`, `identity`, `clock`, `tally`, `core`, `threads` and `agent`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.agent.access import Access, AccessRequest, Action
    from qmf.agent.accessors import Counter, HiLo, Mma
    from qmf.agent.agent import Agent
    from qmf.agent.arguments import Event, MaybeAwaitable, Result
    from qmf.agent.attributes import (
        Attribute,
        CounterAttribute,
        HiLoAttribute,
        MmaAttribute,
        ReferenceAttribute,
    )
    from qmf.agent.audit import CallAudit
    from qmf.agent.clock import Clock, SystemClock
    from qmf.agent.floods import EventLimit
    from qmf.agent.methods import Caller, current_caller
    from qmf.agent.model import ManagedObject, Ref
    from qmf.agent.objects import DuplicateObjectError
    from qmf.agent.providers import Provider, ProviderQuery
    from qmf.agent.refusal import MethodError
    from qmf.agent.subscriptions import SubscriptionLimits
    from qmf.agent.tally import AgentStatistics
    from qmf.agent.threads import AgentThread
    from qmf.protocol.values import ObjectId
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.agent.access": "Access AccessRequest Action",
            "qmf.agent.accessors": "Counter HiLo Mma",
            "qmf.agent.agent": "Agent",
            "qmf.agent.arguments": "Event MaybeAwaitable Result",
            "qmf.agent.attributes": "Attribute CounterAttribute HiLoAttribute MmaAttribute ReferenceAttribute",
            "qmf.agent.audit": "CallAudit",
            "qmf.agent.clock": "Clock SystemClock",
            "qmf.agent.floods": "EventLimit",
            "qmf.agent.methods": "Caller current_caller",
            "qmf.agent.model": "ManagedObject Ref",
            "qmf.agent.objects": "DuplicateObjectError",
            "qmf.agent.providers": "Provider ProviderQuery",
            "qmf.agent.refusal": "MethodError",
            "qmf.agent.subscriptions": "SubscriptionLimits",
            "qmf.agent.tally": "AgentStatistics",
            "qmf.agent.threads": "AgentThread",
            "qmf.protocol.values": "ObjectId",
        },
    )

__all__ = [
    "Access",
    "AccessRequest",
    "Action",
    "Agent",
    "AgentStatistics",
    "AgentThread",
    "Attribute",
    "CallAudit",
    "Caller",
    "Clock",
    "Counter",
    "CounterAttribute",
    "DuplicateObjectError",
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
    "current_caller",
]
