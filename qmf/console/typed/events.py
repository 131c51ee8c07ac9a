"""Typed events: events of agents with the types of their schema."""

from __future__ import annotations

from typing import ClassVar, Self

import attrs

from qmf.console.aio.agents import Agent
from qmf.console.aio.objects.remote_event import RemoteEvent
from qmf.console.typed.values import argument_value, class_name, is_class, make_instance
from qmf.errors import CallerError
from qmf.protocol import ObjectId
from qmf.schema import EventSchema
from qmf.schema.documentation import document


@attrs.frozen(kw_only=True)
class TypedEvent:
    """An event of an agent: base class of generated events, which have one more field per argument.

    Arguments of these names get a trailing underscore in the generated class.

    Attributes:
        agent: the agent that raised it.
        severity: 0 (emergency) to 7 (debug), as a `Severity`; any other number as it was sent.
        timestamp: nanoseconds since 1970, by the agent's clock.
        object_id: the object that it concerns, or None when the agent did not name one.
    """

    _qmf_schema_: ClassVar[EventSchema]

    agent: Agent = attrs.field(repr=str)
    severity: int
    timestamp: int
    object_id: ObjectId | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        document(cls)

    @classmethod
    def _qmf_wrap(cls, event: RemoteEvent) -> Self:
        """The typed form of an event.

        Raises:
            CallerError: the event is of another class.
            ProtocolError: an argument is missing, or not of its schema type.
        """
        schema = cls._qmf_schema_
        if not is_class(event.class_key, schema.key):
            raise CallerError(f"event {event.class_key or 'without class'} is not a {class_name(schema)}")
        values = {
            item.name: argument_value(item, event.arguments, schema.name, event.agent.name) for item in schema.arguments
        }
        level = event.level
        return make_instance(
            cls,
            values,
            agent=event.agent,
            severity=event.severity if level is None else level,
            timestamp=event.timestamp,
            object_id=event.object_id,
        )
