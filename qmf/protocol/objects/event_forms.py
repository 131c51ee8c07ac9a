"""The forms of frequent events, each with the function that reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qmf.protocol.objects.columns import are_envelope_fields
from qmf.protocol.objects.event_functions import EventForm, EventFunction, event_function
from qmf.protocol.objects.nested_values import NestedValues
from qmf.protocol.objects.shapes import MAX_KEYS_SIZE, MAX_VARIABLE, Entry, map_entries
from qmf.protocol.values import EventData, ObjectId
from qmf.schema.model import ClassKey

#: Forms that have a function; of a full list the last one goes, not used for longest.
MAX_FUNCTIONS = 16

#: Events of a class and with certain arguments that the general decoder reads before a function is compiled for them:
#: compiling takes as long as reading so many.
COMPILE_AFTER = 50

#: Classes with certain arguments that are counted; when they are more, counting starts anew.
MAX_COUNTED = 1000

_NUMBERS = ("_timestamp", "_severity")


class EventForms:
    """Reads events of frequent forms.

    Attributes:
        functions: what reads them, the last one used first.
        counts: events that the general decoder has read, by the hash of class and names.
    """

    def __init__(self, nested: Mapping[int, NestedValues], object_id: Callable[[bytes, int, int], ObjectId]) -> None:
        """Know no form yet; arguments as for `event_function`."""
        self._nested = nested
        self._object_id = object_id
        self.functions: list[EventFunction] = []
        self.counts: dict[int, int] = {}

    def read(self, data: bytes, pos: int, end: int) -> EventData | None:
        """The event between two offsets, of which the first is that of its size field; None if its form is not known.

        Raises:
            DecodeError, ProtocolError: the id of its object is broken.
        """
        functions = self.functions
        for function in functions:
            event = function(data, pos, end)
            if event is not None:
                if function is not functions[0]:
                    functions.remove(function)
                    functions.insert(0, function)
                return event
        return None

    def learn(self, data: bytes, pos: int, fields: Mapping[str, object], class_key: ClassKey | None) -> None:
        """Count an event that the general decoder has read; a frequent form gets a function.

        Args:
            data: bytes that hold it.
            pos: of its size field.
            fields: the event as a map.
            class_key: its class.
        """
        values = fields.get("_values")
        # The hash is enough: two forms that share one are compiled a little earlier.
        key = hash((class_key, tuple(fields), tuple(values) if isinstance(values, dict) else None))
        if len(self.counts) >= MAX_COUNTED:
            self.counts.clear()
        count = self.counts[key] = self.counts.get(key, 0) + 1
        if count % COMPILE_AFTER == 0:
            form = _form_of(data, pos, class_key)
            if form is not None:
                self.functions.insert(0, event_function(form, self._nested, self._object_id))
                del self.functions[MAX_FUNCTIONS:]


def _form_of(data: bytes, pos: int, class_key: ClassKey | None) -> EventForm | None:
    """The form of an event, or None for one that no function is compiled for."""
    entries = _entries(data, pos)
    if entries is None or not are_envelope_fields(_kinds(entries), _NUMBERS):
        return None
    found = {entry.name: entry for entry in entries}
    arguments = _entries(data, found["_values"].begin)
    if arguments is None or len(arguments) > MAX_VARIABLE or sum(len(item.name) for item in arguments) > MAX_KEYS_SIZE:
        return None
    schema_id = data[found["_schema_id"].begin : found["_schema_id"].end] if "_schema_id" in found else b""
    return EventForm(_kinds(entries), schema_id, class_key, _kinds(arguments))


def _entries(data: bytes, pos: int) -> list[Entry] | None:
    """The entries of the map whose size field is at `pos`."""
    return map_entries(data, pos + 8, int.from_bytes(data[pos + 4 : pos + 8], "big"))


def _kinds(entries: list[Entry]) -> list[tuple[str, int]]:
    return [(entry.name, entry.code) for entry in entries]
