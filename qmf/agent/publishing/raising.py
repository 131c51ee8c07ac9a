"""Raising events: checked and encoded at once, by functions that were made for the arguments of their class.

The bytes are those that the general encoder makes of the event's map (QMF2.md 5.2).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from qmf._compile import compile_function
from qmf.agent.clock import Clock
from qmf.agent.layout.checks import simple_range
from qmf.agent.layout.references import Referable, resolve
from qmf.agent.model.arguments import Event, argument_check, python_name
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.publishing.event_queue import EventKind, EventQueue, Item
from qmf.agent.publishing.writing import code_of
from qmf.codec.errors import EncodeError
from qmf.errors import CallerError
from qmf.protocol import BodyForm, EventData
from qmf.protocol.maps import class_key_to_map, wire_value
from qmf.protocol.objects.keyed_encoding import Column, entry_encoder, key, value_bytes
from qmf.schema import TYPES, Argument, EventSchema, Severity

#: Levels around the arguments of an event: the list of a message, the event, its values.
_DEPTH = 2

_HEAD = struct.Struct(">BII8sBII").pack
_TIMES = struct.Struct(">12sQ11sB").pack
_VALUES_KEY = key("_values")
_TIMESTAMP_KEY = key("_timestamp") + b"\x32"
_SEVERITY_KEY = key("_severity") + b"\x02"

#: Bytes of the map behind its size field without entries and schema: its count, key and head of values, time, severity.
_FIXED = 4 + (8 + 9) + (12 + 8) + (11 + 1)


class EventWriter:
    """Writes the events of one class.

    Attributes:
        schema: of the class.
        entries: checks the arguments of an event, and encodes them as entries of a map; gives them with their number.
            Raises ConstraintError for a value that does not fit its argument, EncodeError for one that has no encoding.
    """

    __slots__ = ("_schema_id", "entries", "schema")

    def __init__(self, cls: type[Event]) -> None:
        self.schema: EventSchema = cls._qmf_schema_
        self._schema_id = key("_schema_id") + value_bytes(class_key_to_map(self.schema.key))
        self.entries: Callable[[Event], tuple[bytes, int]] = _make_entries(cls)

    def item(self, event: Event, timestamp: int, severity: int) -> bytes:
        """An event as an item of a message's list.

        Args:
            event: of the class.
            timestamp: nanoseconds since 1970.
            severity: 0 to 7.

        Raises:
            ConstraintError, EncodeError: as `entries`.
        """
        entries, count = self.entries(event)
        schema = self._schema_id
        size = len(entries)
        head = _HEAD(0xA8, _FIXED + size + len(schema), 4, _VALUES_KEY, 0xA8, size + 4, count)
        return b"".join((head, entries, _TIMES(_TIMESTAMP_KEY, timestamp, _SEVERITY_KEY, severity), schema))


class EventRaiser:
    """Raises the events of one agent; any thread may."""

    def __init__(
        self, store: ManagedObjectStore, queue: EventQueue, clock: Clock, form: BodyForm, *, publish: bool
    ) -> None:
        """Set up.

        Args:
            store, queue, clock: of the agent.
            form: how message bodies are written.
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
        item: Item
        if self._plain:
            values = event._qmf_values()
            time = self._clock.time_ns()
            item = EventData(values=values, class_key=kind.key, timestamp=time, severity=kind.severity)
        else:
            try:
                item = self._writers[cls].item(event, self._clock.time_ns(), kind.severity)
            except EncodeError:
                # A bug; whoever sends it counts it.
                values = event._qmf_values()
                time = self._clock.time_ns()
                item = EventData(values=values, class_key=kind.key, timestamp=time, severity=kind.severity)
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


def _make_entries(cls: type[Event]) -> Callable[[Event], tuple[bytes, int]]:
    schema = cls._qmf_schema_
    where = f"event {schema.name}"
    columns = [Column(item.name, code_of(TYPES[item.type.base]), optional=True) for item in schema.arguments]
    names: dict[str, Any] = {"reference": _reference, "wire_value": wire_value}
    lines = ["def entries(event):"]
    for number, item in enumerate(schema.arguments):
        value, column = f"v{number}", columns[number]
        names[f"check{number}"] = argument_check(item, where)
        lines.append(f"    {value} = event.{python_name(cls, item.name)}")
        fits = _fits(item, value, number, names)
        lines.append(f"    if not ({fits}):")
        lines.append(f"        {value} = check{number}({value})")
        if item.type.base == "objId":
            lines.append(f"    {value} = reference({value})")
        elif item.type.base in ("map", "list"):
            lines.append(f"    if {value}:")
            lines.append(f"        {value} = wire_value({value})")
        else:
            columns[number] = Column(column.name, column.code)
    names["encode"] = entry_encoder(columns, _DEPTH, schema.name)
    arguments = ", ".join(f"v{number}" for number in range(len(columns)))
    lines += [f"    return encode([{arguments}])", ""]
    function: Callable[[Event], tuple[bytes, int]] = compile_function("entries", "\n".join(lines), names, schema.name)
    return function


def _fits(item: Argument, value: str, number: int, names: dict[str, Any]) -> str:
    """The condition that a value surely passes its check unchanged: the common case without a call."""
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
    return wire_value(resolve(value) if isinstance(value, Referable) else value)
