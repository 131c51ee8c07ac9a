"""Raising events: checked and encoded at once, by functions compiled for the arguments of their class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmf._compile import compile_function
from qmf.agent.clock import Clock
from qmf.agent.layout.checks import simple_range
from qmf.agent.layout.references import Referable, resolve
from qmf.agent.model.arguments import Event, argument_check, python_name
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.publishing.event_message import EventKind, Item
from qmf.agent.publishing.event_queue import EventQueue
from qmf.codec.errors import EncodeError
from qmf.errors import CallerError
from qmf.protocol import BodyForm, EventData
from qmf.protocol.objects import Column, EventEncoder
from qmf.schema import TYPES, Argument, EventSchema, Severity


class EventWriter:
    """Writes the events of one class.

    Attributes:
        arguments: checks the arguments of an event; gives their values in order. Raises ConstraintError for a value
            that does not fit its argument.
    """

    __slots__ = ("_encoder", "arguments")

    def __init__(self, cls: type[Event]) -> None:
        schema: EventSchema = cls._qmf_schema_
        columns = [
            Column(item.name, TYPES[item.type.base], optional=item.type.base in ("objId", "map", "list"))
            for item in schema.arguments
        ]
        self._encoder = EventEncoder(schema.key, columns)
        self.arguments: Callable[[Event], list[Any]] = _make_arguments(cls)

    def item(self, arguments: list[Any], timestamp: int, severity: int) -> bytes:
        """An event as an item of a message's list.

        Args:
            arguments: its values in order.
            timestamp: nanoseconds since 1970.
            severity: 0 to 7.

        Raises:
            EncodeError: a value cannot be encoded.
        """
        return self._encoder.event(arguments, timestamp, severity)


class EventRaiser:
    """Raises the events of one agent, in any thread."""

    def __init__(
        self, store: ManagedObjectStore, queue: EventQueue, clock: Clock, form: BodyForm, *, publish: bool
    ) -> None:
        """Set up.

        Args:
            store, queue, clock: of the agent.
            form: encoding of message bodies.
            publish: send events; without, they are only checked.
        """
        self._store = store
        self._queue = queue
        self._clock = clock
        self._plain = form is not BodyForm.DATA010
        self._publish = publish
        self._writers: dict[type[Event], EventWriter] = {}
        self._kinds: dict[tuple[type[Event], object], EventKind] = {}

    def raise_event(self, event: Event, severity: Severity | int | None) -> None:
        """See `Agent.raise_event`."""
        cls = type(event)
        # True and 1.0 would be found as 1.
        found = self._kinds.get((cls, severity)) if severity is None or type(severity) in _LEVELS else None
        kind = found or self._learn(cls, severity)
        arguments = None if self._plain else self._writers[cls].arguments(event)
        if self._publish and self._queue.suppress(kind):
            return
        time = self._clock.time_ns()
        item: Item | None
        try:
            item = None if arguments is None else self._writers[cls].item(arguments, time, kind.severity)
        except EncodeError:
            item = None  # a bug: the queue counts it when it cannot encode the event either
        if item is None:
            item = EventData(values=event._qmf_values(), class_key=kind.key, timestamp=time, severity=kind.severity)
        if self._publish:
            self._queue.put_item(kind, item)

    def _learn(self, cls: type[Event], severity: Severity | int | None) -> EventKind:
        schema = cls._qmf_schema_
        given = severity
        if severity is None:
            severity = Severity.NOTICE if schema.severity is None else schema.severity
        try:
            level = int(Severity(severity))
        except ValueError as error:
            raise CallerError(f"a severity is 0 (emerg) to 7 (debug), not {severity!r}") from error
        self._store.register((schema,))
        if cls not in self._writers:
            self._writers[cls] = EventWriter(cls)
        kind = self._queue.kind(schema.key, level)
        if given is None or type(given) in _LEVELS:
            self._kinds[cls, given] = kind
        return kind


_LEVELS = (int, Severity)


def _make_arguments(cls: type[Event]) -> Callable[[Event], list[Any]]:
    """The function that is `EventWriter.arguments`: most values pass their checks without a call."""
    schema = cls._qmf_schema_
    names: dict[str, Any] = {"reference": _reference}
    lines = ["def arguments(event):"]
    for number, item in enumerate(schema.arguments):
        value = f"v{number}"
        names[f"check{number}"] = argument_check(item, f"event {schema.name}")
        lines += [
            f"    {value} = event.{python_name(cls, item.name)}",
            f"    if not ({_fits(item, value, number, names)}):",
            f"        {value} = check{number}({value})",
        ]
        if item.type.base == "objId":
            lines.append(f"    {value} = reference({value})")
    lines += [f"    return [{', '.join(f'v{number}' for number in range(len(schema.arguments)))}]", ""]
    return compile_function("arguments", "\n".join(lines), names, schema.name)


def _fits(item: Argument, value: str, number: int, names: dict[str, Any]) -> str:
    """The condition, as source, that a value passes its check unchanged: the common case without a call."""
    quick = simple_range(item)
    if quick is not None:
        names[f"kind{number}"], names[f"least{number}"], names[f"most{number}"] = quick
        return f"type({value}) is kind{number} and least{number} <= {value} <= most{number}"
    if item.type.base == "bool":
        return f"{value} is True or {value} is False"
    if item.type.max_bytes is not None:
        limit = item.type.max_bytes if item.max_len is None else min(item.type.max_bytes, item.max_len)
        return f"type({value}) is str and len({value}) <= {limit} and {value}.isascii()"
    if item.type.base == "map":
        return f"type({value}) is dict and not {value}"
    return "False"


def _reference(value: Any) -> object:
    return resolve(value) if isinstance(value, Referable) else value
