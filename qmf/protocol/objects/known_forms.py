"""The forms of objects, or events, that came over a connection, each with a function that reads them.

Objects of one class and one sender differ in their numbers, texts and maps only. What is the same - the map around the
values, the class key, the shape of the values - is their form. A function compiled for it compares what is known and
reads the rest; whatever looks different is left to the general functions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from qmf.codec.type_codes import AMQP010, MAP
from qmf.protocol.objects.form_functions import Form, Read
from qmf.protocol.objects.nested_values import NestedValues
from qmf.protocol.objects.shapes import Shape, ShapeEntry, learn, map_entries
from qmf.schema.model import ClassKey

D = TypeVar("D")

#: Bounds of what is remembered, above what a large system needs: bytes of a class key, forms of one class (of a full
#: list the last one goes, not used for longest), and kinds of maps that are counted.
MAX_KEY_SIZE, MAX_FORMS, MAX_COUNTED = 1000, 8, 1000

#: Roughly the bytes of all forms, and what a form and a key take besides the key's text: room for a thousand classes of
#: some fifty values. When they are more, all are forgotten.
MAX_SIZE, FORM_SIZE, KEY_SIZE = 15_000_000, 4000, 200

#: How many maps of one kind the general functions read before a form is learned from it, where a class has `MAX_FORMS`
#: already: learning takes as long as reading dozens, and when many kinds take turns, they must not drive each other
#: out.
RELEARN_AFTER = 200

_SCHEMA_ID = b"\x0a_schema_id" + bytes((MAP,))
_INTEGERS = frozenset(code for code, row in AMQP010.items() if row.is_number and row.format in "bBhHiIqQ")

_unpack_u32 = struct.Struct(">I").unpack_from


class KnownForms(Generic[D]):
    """Reads objects, or events, of the forms of earlier ones.

    Attributes:
        functions: forms with their functions, by the bytes of the class key; the last one used first.
        last: the function that was last used of all; callers try it first, for mostly one form follows itself.
    """

    def __init__(
        self,
        numbers: Sequence[str],
        function: Callable[[Form], Read[D]],
        nested: Mapping[int, NestedValues],
        after: int,
    ) -> None:
        """Know no form yet.

        Args:
            numbers: names of the integers around the values.
            function: makes the function for a form.
            nested: what reads maps and lists among the values, by type code.
            after: how many maps of one kind the general functions read before a form is learned from it.
        """
        self.functions: dict[bytes, list[tuple[Form, Read[D]]]] = {}
        self._numbers = numbers
        self._function = function
        self._nested = nested
        self._after = after
        self._counts: dict[int, int] = {}
        self._size = 0
        self.last: Read[D] = _read_nothing

    def read(self, data: bytes, pos: int, end: int) -> D | None:
        """What is between two offsets, of which the first is that of its size field; None if its form is not known.

        Raises:
            DecodeError, ProtocolError: an object id is broken.
        """
        forms = self.functions.get(_raw_key(data, pos, end), [])
        for item in forms:
            found = item[1](data, pos, end)
            if found is not None:
                self.last = item[1]
                if item is not forms[0]:
                    forms.remove(item)
                    forms.insert(0, item)
                return found
        return None

    def learn(self, data: bytes, pos: int, end: int, fields: Mapping[str, object], class_key: ClassKey | None) -> None:
        """Count a map that the general functions have read; one that comes again gets a function.

        Args:
            data, pos, end: as of `read`.
            fields: the map.
            class_key: its class.
        """
        raw_key, values = _raw_key(data, pos, end), fields.get("_values")
        if len(raw_key) > MAX_KEY_SIZE or not isinstance(values, dict):
            return
        if len(self._counts) >= MAX_COUNTED:
            self._counts.clear()
        # The hash is enough: two kinds that share one are learned a little earlier.
        kind = hash((raw_key, tuple(fields), tuple(values)))
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        forms = self.functions.get(raw_key, [])
        if count % (self._after if len(forms) < MAX_FORMS else RELEARN_AFTER):
            return
        form = self._form(data, pos, class_key, [form.shape for form, _ in forms])
        if form is None:
            return
        names = form.shape.names
        self._size += FORM_SIZE + sum(map(len, names)) + KEY_SIZE * len(names)
        if self._size > MAX_SIZE:
            self.functions.clear()
            self._size, self.last = 0, _read_nothing
            return
        self.functions[raw_key] = [(form, self._function(form)), *forms[: MAX_FORMS - 1]]

    def _form(self, data: bytes, pos: int, class_key: ClassKey | None, shapes: list[Shape]) -> Form | None:
        """The form of a map, or None for one that no function is compiled for; shapes that are known are shared."""
        entries = map_entries(data, pos + 4)
        if entries is None or not all(map(self._is_known_field, entries)):
            return None
        found = {entry.name: entry for entry in entries}
        shape = learn(data, found["_values"].begin + 4, self._nested)
        if shape is None:
            return None
        shape = next((known for known in shapes if known.is_like(shape)), shape)
        schema_id = data[found["_schema_id"].begin : found["_schema_id"].end] if "_schema_id" in found else b""
        return Form([(entry.name, entry.code) for entry in entries], schema_id, class_key, shape)

    def _is_known_field(self, entry: ShapeEntry) -> bool:
        if entry.name in ("_values", "_object_id", "_schema_id"):
            return entry.code == MAP
        return entry.name in self._numbers and entry.code in _INTEGERS


def _read_nothing(data: bytes, pos: int, end: int) -> None:
    """A function that reads nothing."""


def _raw_key(data: bytes, pos: int, end: int) -> bytes:
    """What seems to be the class key of a map; empty where there is none.

    Only a hint: a value may hold the same bytes, but then no form fits.
    """
    at = data.find(_SCHEMA_ID, pos, end) + len(_SCHEMA_ID)
    if at < len(_SCHEMA_ID) or at + 4 > end:
        return b""
    return data[at : at + 4 + _unpack_u32(data, at)[0]]
