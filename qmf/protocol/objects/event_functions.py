"""Functions compiled for frequent events: reading one in one go, the map around the arguments and the arguments.

Agents raise events of a class by the thousand, which differ in their numbers and texts only. Checking such an event
already takes most of what reading it takes, for texts have to be decoded to know that they are text. So, unlike those
of objects, its values are not left as bytes. Whatever looks different is left to the general functions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import attrs

from qmf._compile import compile_function, fast_constructor
from qmf.codec.type_codes import AMQP010, CONSTANTS, UUID16
from qmf.protocol.objects.columns import FIXED_FORMATS, LENGTHS, NESTED, TEXTS
from qmf.protocol.objects.general import nearest_severity
from qmf.protocol.objects.nested_values import NestedValues, text_or_bytes
from qmf.protocol.values import EventData, ObjectId
from qmf.schema.model import ClassKey

#: Reads the event between two offsets, of which the first is that of its size field; None if it looks different.
EventFunction = Callable[[bytes, int, int], EventData | None]

_ERRORS = (struct.error, UnicodeDecodeError)


@attrs.frozen
class EventForm:
    """What events of one kind have in common.

    Attributes:
        fields: names and type codes of the map around the arguments.
        schema_id: bytes of its class key, from the size field on; empty without.
        class_key: what they mean.
        arguments: names and type codes of the arguments.
    """

    fields: Sequence[tuple[str, int]]
    schema_id: bytes
    class_key: ClassKey | None
    arguments: Sequence[tuple[str, int]]


def event_function(
    form: EventForm, nested: Mapping[int, NestedValues], object_id: Callable[[bytes, int, int], ObjectId]
) -> EventFunction:
    """The function that reads the events of one form.

    Args:
        form: of events that were read by the general functions.
        nested: what reads maps and lists among the arguments, by type code.
        object_id: reads an object id between two offsets, of which the first is that of its size field.
    """
    return _Source(form, nested, object_id).function()


class _Source:
    """Puts the text of one function together: what is known is compared, the rest is unpacked."""

    def __init__(
        self, form: EventForm, nested: Mapping[int, NestedValues], object_id: Callable[[bytes, int, int], ObjectId]
    ) -> None:
        self._form = form
        self._names: dict[str, object] = {
            "make": fast_constructor(EventData),
            "key": form.class_key,
            "object_id": object_id,
            "nearest": nearest_severity,
            "levels": frozenset(range(8)),
            "text": text_or_bytes,
            "UUID": UUID,
            "errors": _ERRORS,
        }
        for code, values in nested.items():
            self._names |= {f"nested{code}": values.known, f"check{code}": values.check, f"read{code}": values.read}
        self._lines: list[str] = []
        self._known = b""
        self._format = ">"
        self._targets: list[str] = []
        self._checks: list[str] = []
        self._number = 0

    def function(self) -> EventFunction:
        """Compile the function."""
        form = self._form
        found = {"_timestamp": "0", "_severity": "None", "_object_id": "None"}
        values = "{}"
        self._known = len(form.fields).to_bytes(4, "big")
        for name, code in form.fields:
            self._key(name, code)
            if name == "_values":
                values = self._values()
            elif name == "_schema_id":
                self._known += form.schema_id
            elif name == "_object_id":
                self._take("I", "size")
                self._unpack()
                self._lines += ["o = p - 4", "p += size", "o_end = p"]
                found[name] = "object_id(data, o, o_end)"
            else:
                found[name] = self._fresh()
                self._take(FIXED_FORMATS[code], found[name])
        self._unpack()
        severity = found["_severity"]
        level = f"{severity} if {severity} in levels else nearest({severity})"
        source = "\n".join(
            [
                "def read(data, pos, end):",
                "    try:",
                "        p = pos + 4",
                *(f"        {line}" for line in self._lines),
                "        if p != end: return None",
                f"        values = {values}",
                "    except errors:",
                "        return None",
                f"    return make(values, key, {found['_timestamp']}, {level}, {found['_object_id']})",
                "",
            ]
        )
        return compile_function("read", source, self._names, "an event")

    def _values(self) -> str:
        """Add the steps that read the arguments; gives the expression of all of them."""
        self._take("I", "size")
        self._unpack()
        self._lines.append("values_end = p + size")
        self._known = len(self._form.arguments).to_bytes(4, "big")
        pairs = []
        for name, code in self._form.arguments:
            self._key(name, code)
            key = self._constant(name)
            pairs.append(f"{key}: {self._value(code)}")
        self._unpack()
        self._lines.append("if p != values_end: return None")
        return f"{{{', '.join(pairs)}}}"

    def _value(self, code: int) -> str:
        """Add the steps that read an argument; gives its expression."""
        if code in CONSTANTS:
            return repr(CONSTANTS[code])
        value = self._fresh()
        if code in FIXED_FORMATS:
            self._take(FIXED_FORMATS[code], value)
            return f"UUID(bytes={value})" if code == UUID16 else value
        self._take(AMQP010[code].format, "size")
        self._unpack()
        if code in NESTED:
            self._lines += [
                f"raw = data[p - {LENGTHS[code]}:p + size]",
                f"if raw not in nested{code} and not check{code}(raw): return None",
                f"{value} = read{code}(raw)",
                "p += size",
            ]
        else:
            decoded = "data[begin:p].decode()" if code in TEXTS else "text(data[begin:p])"
            self._lines += ["begin = p", "p += size", f"{value} = {decoded}"]
        return value

    def _key(self, name: str, code: int) -> None:
        raw = name.encode()
        self._known += bytes((len(raw), *raw, code))

    def _take(self, format: str, target: str) -> None:
        """Unpack a number behind what is known up to here."""
        self._compare()
        self._format += format
        self._targets.append(target)

    def _compare(self) -> None:
        if self._known:
            target = self._fresh()
            self._format += f"{len(self._known)}s"
            self._targets.append(target)
            self._checks.append(f"{target} != {self._constant(self._known)}")
            self._known = b""

    def _unpack(self) -> None:
        """End a struct: what follows is at a place that depends on what it holds."""
        self._compare()
        if not self._targets:
            return
        unpack = self._constant(struct.Struct(self._format).unpack_from)
        self._lines.append(f"{', '.join(self._targets)}, = {unpack}(data, p)")
        if self._checks:
            self._lines.append(f"if {' or '.join(self._checks)}: return None")
        self._lines.append(f"p += {struct.calcsize(self._format)}")
        self._format = ">"
        self._targets = []
        self._checks = []

    def _fresh(self) -> str:
        self._number += 1
        return f"x{self._number}"

    def _constant(self, value: object) -> str:
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name
