"""Agents: the runtime base of generated classes, and the agent that makes their objects visible on the bus.

A program makes objects of generated classes, hands them to an `Agent` and sets their values; consoles read them, call
their methods and hear of changes and events. Modules, from the object outwards: `accessors`, `attributes`, `layout`,
`checks`, `references`, `expressions` and `model` are the runtime base and know no bus; `identity`, `objects`,
`publisher`, `events`, `discovery`, `queries`, `methods` and `requests` are the agent's parts; `agent` joins them.
"""

from __future__ import annotations

from qmf.agent.accessors import Counter, HiLo, Mma
from qmf.agent.agent import Agent
from qmf.agent.attributes import (
    Attribute,
    CounterAttribute,
    HiLoAttribute,
    MmaAttribute,
    ReferenceAttribute,
)
from qmf.agent.clock import Clock, SystemClock
from qmf.agent.methods import Caller, current_caller
from qmf.agent.model import Event, ManagedObject, MaybeAwaitable, Ref, Result
from qmf.agent.objects import DuplicateObjectError
from qmf.agent.refusal import MethodError
from qmf.agent.tally import AgentStatistics
from qmf.protocol.values import ObjectId

__all__ = [
    "Agent",
    "AgentStatistics",
    "Attribute",
    "Caller",
    "Clock",
    "Counter",
    "CounterAttribute",
    "DuplicateObjectError",
    "Event",
    "HiLo",
    "HiLoAttribute",
    "ManagedObject",
    "MaybeAwaitable",
    "MethodError",
    "Mma",
    "MmaAttribute",
    "ObjectId",
    "Ref",
    "ReferenceAttribute",
    "Result",
    "SystemClock",
    "current_caller",
]
