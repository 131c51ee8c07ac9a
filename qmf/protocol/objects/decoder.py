"""Reading the objects and events of AMQP 0-10 bodies, as they come over one connection.

A console gets thousands of objects that differ in their numbers only. `ObjectDecoder` remembers the forms that objects
and events have, and reads those by functions compiled for them; the values of an object are unpacked when somebody asks
for them. Everything else is read by the general functions in `qmf.protocol.objects.general`. The result is the same,
except that the values of an object may be a lazy mapping instead of a dictionary.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from qmf.codec import amqp010
from qmf.codec.message import MAX_HEADS, SectionMemory
from qmf.codec.plain_maps import AnswerHead
from qmf.codec.type_codes import MAP
from qmf.errors import DecodeError
from qmf.protocol.fields import Map, mapping
from qmf.protocol.objects.event_forms import run_reader
from qmf.protocol.objects.form_functions import EVENT_NUMBERS, OBJECT_NUMBERS, event_function, object_function
from qmf.protocol.objects.general import block_from_map, event_from_map, objects_from_list
from qmf.protocol.objects.known_forms import KnownForms
from qmf.protocol.objects.nested_values import nested_values
from qmf.protocol.objects.object_ids import ObjectIdDecoder, decoded_map
from qmf.protocol.objects.row_objects import RowObjects
from qmf.protocol.objects.rows import RowDecoder
from qmf.protocol.objects.shapes import MAX_KEYS_SIZE
from qmf.protocol.values import EventData, ObjectBlock, ObjectData

#: Layouts of rows remembered, above what a large system needs.
MAX_LAYOUTS = 200

#: How many objects, or events, of one kind the general functions read before a form is learned: objects of which there
#: is one only are not worth it, and compiling takes as long as reading fifty events.
LEARN_AFTER, COMPILE_AFTER = 2, 50

#: Depths of what is inside each other: the list is 0, an object 1, its maps 2, and what they hold 3.
_OBJECT_DEPTH, _VALUE_DEPTH = 1, 3

_unpack_u32_pair = struct.Struct(">II").unpack_from
#: Type code and size of an item.
_unpack_item = struct.Struct(">BI").unpack_from


D = TypeVar("D", ObjectData, EventData)


class ObjectDecoder:
    """Reads objects and events, and remembers what they look like. One for each connection.

    Attributes:
        general: objects and events that the general decoder read, so far; the others looked like earlier ones.
        sections: remembers sections of the messages around them.
        answer_heads: what is around the correlation ids of answers of methods, the last ones used first.
        object_forms, event_forms, object_ids: what was learned of objects, events and ids.
        row_decoder: gives the decoder for the columns and type codes of rows.
    """

    def __init__(self) -> None:
        self.general = 0
        self.sections = SectionMemory()
        self.answer_heads: list[AnswerHead] = []
        self.object_ids = ObjectIdDecoder()
        nested, read_id = nested_values(_VALUE_DEPTH), self.object_ids.decode
        self.object_forms = KnownForms(
            OBJECT_NUMBERS, functools.partial(object_function, nested, read_id), nested, LEARN_AFTER
        )
        self.event_forms = KnownForms(
            EVENT_NUMBERS, functools.partial(event_function, nested, read_id), nested, COMPILE_AFTER
        )
        self.row_decoder = functools.lru_cache(MAX_LAYOUTS)(functools.partial(RowDecoder, nested=nested_values(0)))

    def learn_answer(self, head: AnswerHead) -> None:
        """Remember what is around the correlation id of an answer."""
        if head not in self.answer_heads:
            self.answer_heads.insert(0, head)
            del self.answer_heads[MAX_HEADS:]

    def objects(self, body: bytes) -> Sequence[ObjectData]:
        """The objects of a body that is an AMQP 0-10 list.

        Raises:
            DecodeError: it is no list.
            ProtocolError: what it holds are no objects.
        """
        return self._read(body, self.object_forms, self._general_objects)

    def events(self, body: bytes) -> Sequence[EventData]:
        """The events of a body that is an AMQP 0-10 list; errors as of `objects`."""
        return self._read(body, self.event_forms, self._general_events)

    def _read(self, body: bytes, forms: KnownForms[D], general: Callable[[Map], Sequence[D]]) -> Sequence[D]:
        """The objects, or events, of a body; `general` gives those of a map whose form is not known."""
        stop, count = len(body), _count_items(body)
        out: list[D] = []
        items: Sequence[D] = out
        read = forms.last
        pos = 8
        run = run_reader(read) if count > 1 else None
        if run is not None:
            out, pos = run(body, pos, count)
            items = out
        for _ in range(count - len(out)):
            try:
                code, size = _unpack_item(body, pos)
            except struct.error:
                raise _truncation_error(body) from None
            pos, end = pos + 1, pos + 5 + size
            if code != MAP:
                for item in amqp010.decode_list(body, text=True):
                    mapping(item, "item of the body")  # raises for the first that is no map
            if end > stop or size < 4:
                raise DecodeError(f"map at offset {pos - 1} does not fit into the {stop} bytes of its list")
            found = read(body, pos, end)
            if found is None:
                found = forms.read(body, pos, end)
                read = forms.last
            if found is not None:
                out.append(found)
            else:
                fields = decoded_map(body, pos, end, _OBJECT_DEPTH)
                items = general(fields)
                out += items if count > 1 else ()
                forms.learn(body, pos, end, fields, items[0].class_key if items else None)
            pos = end
        if pos != stop:
            raise DecodeError(f"items that should end at offset {stop} end at {pos}")
        # Mostly there is nothing but one block of rows, whose objects are not made yet.
        return items if count == 1 else out

    def _general_objects(self, fields: Map) -> Sequence[ObjectData]:
        if "_row_form" in fields:
            return self._rows(block_from_map(fields))
        self.general += 1
        return objects_from_list([fields])

    def _general_events(self, fields: Map) -> Sequence[EventData]:
        self.general += 1
        return [event_from_map(fields)]

    def _rows(self, block: ObjectBlock) -> RowObjects:
        """The objects of a block, whose layout is remembered."""
        remembered = sum(map(len, block.columns)) <= MAX_KEYS_SIZE
        decoder = self.row_decoder if remembered else self.row_decoder.__wrapped__
        return RowObjects(block, decoder(block.columns, block.codes))


def _count_items(body: bytes) -> int:
    """How many items a list says that it has."""
    try:
        size, count = _unpack_u32_pair(body, 0)
    except struct.error:
        raise _truncation_error(body) from None
    if size + 4 != len(body):
        amqp010.decode_list(body, text=True)  # raises the error that names what is wrong
    return int(count)


def _truncation_error(body: bytes) -> DecodeError:
    return DecodeError(f"list: the data ends at {len(body)}, inside the list")
