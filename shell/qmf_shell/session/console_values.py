"""Converts values of `qmf.console.aio` to those of `session.backend`, and back."""

from __future__ import annotations

import attrs

from qmf.console.aio import Agent as CoreAgent
from qmf.console.aio import RemoteEvent
from qmf.views.events import EventView, event_view
from qmf.views.objects import ObjectKey, key_of_reference
from qmf_shell.session.backend import AgentRecord


def to_event(event: RemoteEvent, url: str = "", broker: str = "") -> EventView:
    """Convert an event; `url` is that of its broker, `broker` the broker in the keys of references."""
    view = event_view(event)
    values = {name: key_of_reference(value, view.agent, broker) for name, value in view.values.items()}
    return attrs.evolve(view, values=values, broker=url)


def to_agent(item: CoreAgent, url: str, seen: int = 0) -> AgentRecord:
    """Convert an agent; `seen` is when its last heartbeat was received, in nanoseconds since 1970."""
    interval = item.info.heartbeat_interval
    return AgentRecord(item.name, item.vendor, item.product, item.instance, item.epoch, interval, url, seen)


def to_core(value: object) -> object:
    """Convert a value back: the opposite of `qmf.views.objects.key_of_reference`."""
    return value.object_id if isinstance(value, ObjectKey) else value
