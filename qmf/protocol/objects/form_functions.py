"""Functions compiled for a form: reading an object or event that has it, in one go.

The values of an object stay bytes, for most are never looked at. Those of an event do where compiled functions are
installed (`event_forms`); here they are read, since checking that its texts can be decoded takes most of what decoding
them takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from qmf._compile import fast_constructor
from qmf.codec.type_codes import CONSTANTS
from qmf.protocol.objects.event_forms import event_reader
from qmf.protocol.objects.general import nearest_severity
from qmf.protocol.objects.lazy_values import make_values
from qmf.protocol.objects.nested_values import NestedValues
from qmf.protocol.objects.row_objects import EMPTY, make_object
from qmf.protocol.objects.shape_functions import MapSource, Place, at, reading_lines
from qmf.protocol.objects.shapes import Shape
from qmf.protocol.values import EventData, ObjectData, ObjectId
from qmf.schema.model import ClassKey

D = TypeVar("D")

#: Names of the integers around the values of objects, and of events.
OBJECT_NUMBERS, EVENT_NUMBERS = ("_update_ts", "_create_ts", "_delete_ts"), ("_timestamp", "_severity")

#: Reads what is between two offsets, of which the first is that of its size field; None if it has another form.
Read = Callable[[bytes, int, int], D | None]

#: Reads an object id between two offsets, of which the first is that of its size field.
ReadId = Callable[[bytes, int, int], ObjectId]


@attrs.frozen
class Form:
    """What objects, or events, of one kind have in common.

    Attributes:
        fields: names and type codes of the map around the values.
        schema_id: bytes of the class key, from the size field on.
        class_key: what they mean.
        shape: of the values.
    """

    fields: Sequence[tuple[str, int]]
    schema_id: bytes
    class_key: ClassKey | None
    shape: Shape


def object_function(nested: Mapping[int, NestedValues], read_id: ReadId, form: Form) -> Read[ObjectData]:
    """The function that reads the objects of a form; `nested` reads maps and lists among the values, by type code."""
    source = _FormSource(nested, read_id, form, reading=False)
    source.names |= {"make": make_object, "Values": make_values, "shape": form.shape, "EMPTY": EMPTY}
    values = f"Values(shape, data, (p{source.value_runs[0]}, stop, ({''.join(f'p{i}, ' for i in source.value_runs)})))"
    result = f"make({values}, {source.object_id}, key, {', '.join(OBJECT_NUMBERS)}, EMPTY, False)"
    return source.reader(dict.fromkeys(OBJECT_NUMBERS, 0), [], result)


def event_function(nested: Mapping[int, NestedValues], read_id: ReadId, form: Form) -> Read[EventData]:
    """The function that reads the events of a form; arguments as of `object_function`."""
    compiled = event_reader(nested, form.fields, form.schema_id, form.class_key, form.shape)
    if compiled is not None:
        return compiled
    source = _FormSource(nested, read_id, form, reading=True)
    source.names |= {"make": fast_constructor(EventData), "nearest": nearest_severity}
    pairs = []
    for number, (name, (_, _, code)) in enumerate(source.values.items()):
        source.names[f"k{number}"] = name
        pairs.append(f"k{number}: " + (repr(CONSTANTS[code]) if code in CONSTANTS else f"v{number}"))
    targets = {name: f"v{number}" for number, name in enumerate(source.values)}
    last = reading_lines(source.values, targets, source.names, reading=True)
    last.append("if not 0 <= _severity <= 7: _severity = nearest(_severity)")
    result = f"make({{{', '.join(pairs)}}}, key, _timestamp, _severity, {source.object_id})"
    return source.reader({"_timestamp": 0, "_severity": nearest_severity(None)}, last, result)


class _FormSource(MapSource):
    """The source that checks what has a form.

    Attributes:
        values: where the values are, by name.
        value_runs: numbers of their runs.
        object_id: the expression for the object id.
    """

    def __init__(self, nested: Mapping[int, NestedValues], read_id: ReadId, form: Form, *, reading: bool) -> None:
        super().__init__(nested, short=form.shape.short, reading=reading)
        self.names |= {"key": form.class_key, "read_id": read_id}
        self.values: dict[str, Place] = {}
        self.value_runs = range(0)
        self.object_id = "None"
        self._fields: dict[str, Place] = {}
        self.constant(len(form.fields).to_bytes(4, "big"))
        for name, code in form.fields:
            self.key(name, code)
            if name == "_values":
                self.enter()
                first = self.run
                self.values = form.shape.add_to(self)
                self.leave()
                self.value_runs = range(first, self.run)
            elif name == "_schema_id":
                self.constant(form.schema_id)
            elif name == "_object_id":
                run, offset, _ = self.value(code, checked=False)
                self.object_id = f"read_id(data, {at(run, offset)}, p{run + 1})"
            else:
                self._fields[name] = self.value(code)
        self.leave("end")

    def reader(self, numbers: Mapping[str, int], last: list[str], result: str) -> Callable[..., Any]:
        """Compile the function.

        Args:
            numbers: those around the values, with what counts for an absent one; variables of the function.
            last: statements behind the checks.
            result: expression of what the function gives.
        """
        first = [f"{name} = {value}" for name, value in numbers.items() if name not in self._fields]
        lines = reading_lines(self._fields, {name: name for name in self._fields}, self.names, reading=self._reading)
        return self.function("read(data, pos, end)", ["p0 = pos + 4", *first], [*lines, *last], result)
