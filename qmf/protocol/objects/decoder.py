"""Reading the objects and events of AMQP 0-10 bodies, as they come over one connection.

A console gets thousands of objects that differ in their numbers only. `ObjectDecoder` remembers the forms that objects
and events have, and reads those by functions compiled for them; the values of an object are unpacked when somebody asks
for them. Everything else is read by the general functions in `qmf.protocol.objects.general`. The result is the same,
except that the values of an object may be a lazy mapping instead of a dictionary.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence

from qmf.codec import amqp010
from qmf.codec.message import SectionMemory
from qmf.codec.type_codes import MAP
from qmf.errors import DecodeError
from qmf.protocol.fields import mapping
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


class ObjectDecoder:
    """Reads objects and events, and remembers what they look like. One for each connection.

    Attributes:
        general: objects and events that the general decoder read, so far; the others looked like earlier ones.
        sections: remembers sections of the messages around them.
        object_forms, event_forms, object_ids: what was learned of objects, events and ids.
        row_decoder: gives the decoder for the columns and type codes of rows.
    """

    def __init__(self) -> None:
        self.general = 0
        self.sections = SectionMemory()
        self.object_ids = ObjectIdDecoder()
        nested, read_id = nested_values(_VALUE_DEPTH), self.object_ids.decode
        self.object_forms = KnownForms(
            OBJECT_NUMBERS, functools.partial(object_function, nested, read_id), nested, LEARN_AFTER
        )
        self.event_forms = KnownForms(
            EVENT_NUMBERS, functools.partial(event_function, nested, read_id), nested, COMPILE_AFTER
        )
        self.row_decoder = functools.lru_cache(MAX_LAYOUTS)(functools.partial(RowDecoder, nested=nested_values(0)))

    def objects(self, body: bytes) -> Sequence[ObjectData]:
        """The objects of a body that is an AMQP 0-10 list.

        Raises:
            DecodeError: it is no list.
            ProtocolError: what it holds are no objects.
        """
        out: list[ObjectData] = []
        rows: RowObjects | None = None
        forms = self.object_forms
        read = forms.last
        for pos, end in _items(body):
            if rows is not None:
                out += rows
                rows = None
            found = read(body, pos, end)
            if found is None:
                found = forms.read(body, pos, end)
                read = forms.last
            if found is not None:
                out.append(found)
                continue
            fields = decoded_map(body, pos, end, _OBJECT_DEPTH)
            if "_row_form" in fields:
                rows = self._rows(block_from_map(fields))
                continue
            (data,) = objects_from_list([fields])
            out.append(data)
            self.general += 1
            forms.learn(body, pos, end, fields, data.class_key)
        if rows is None:
            return out
        # Mostly there is nothing but one block.
        return [*out, *rows] if out else rows

    def events(self, body: bytes) -> list[EventData]:
        """The events of a body that is an AMQP 0-10 list; errors as of `objects`."""
        out: list[EventData] = []
        forms = self.event_forms
        read = forms.last
        for pos, end in _items(body):
            event = read(body, pos, end)
            if event is None:
                event = forms.read(body, pos, end)
                read = forms.last
            if event is None:
                fields = decoded_map(body, pos, end, _OBJECT_DEPTH)
                event = event_from_map(fields)
                self.general += 1
                forms.learn(body, pos, end, fields, event.class_key)
            out.append(event)
        return out

    def _rows(self, block: ObjectBlock) -> RowObjects:
        """The objects of a block, whose layout is remembered."""
        remembered = sum(map(len, block.columns)) <= MAX_KEYS_SIZE
        decoder = self.row_decoder if remembered else self.row_decoder.__wrapped__
        return RowObjects(block, decoder(block.columns, block.codes))


def _items(body: bytes) -> Iterator[tuple[int, int]]:
    """Where the maps of a list start, at their size fields, and where they end."""
    try:
        size, count = _unpack_u32_pair(body, 0)
        if size + 4 != len(body):
            amqp010.decode_list(body, text=True)  # raises the error that names what is wrong
        pos, stop = 8, len(body)
        for _ in range(count):
            code, size = _unpack_item(body, pos)
            end = pos + 5 + size
            if code != MAP:
                for item in amqp010.decode_list(body, text=True):
                    mapping(item, "item of the body")  # raises for the first that is no map
            if end > stop or size < 4:
                raise DecodeError(f"map at offset {pos} does not fit into the {stop} bytes of its list")
            yield pos + 1, end
            pos = end
    except struct.error:
        raise DecodeError(f"list: the data ends at {len(body)}, inside the list") from None
    if pos != len(body):
        raise DecodeError(f"items that should end at offset {len(body)} end at {pos}")
