"""Agents: the runtime base of generated classes, and the agent that makes their objects visible on the bus.

A program makes objects of generated classes, hands them to an `Agent` and sets their values; consoles read them, call
their methods and hear of changes and events. Modules, from the object outwards:

* the runtime base, which knows no bus: `checks`, `references`, `expressions`, `layout`, `complaints`, `accessors`,
  `guarded`, `derived`, `setters`, `attributes`, `values`, `arguments` and `model`;
* what is there: `keys`, `objects`, `rows`, `providers` and `sources`;
* telling: `numbering`, `parts`, `outbox`, `publisher`, `floods`, `events`, `views` and `subscriptions`;
* being asked: `access`, `refusal`, `discovery`, `queries`, `running`, `methods` and `requests`;
* the whole: `starts`, `identity`, `clock`, `tally`, `core`, `threads` and `agent`.
"""

from __future__ import annotations

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

__all__ = [
    "Access",
    "AccessRequest",
    "Action",
    "Agent",
    "AgentStatistics",
    "AgentThread",
    "Attribute",
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
