"""The shapes of objects that came over a connection: of the map around the values, and of the values by class."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import attrs

from qmf.codec.type_codes import Unpack
from qmf.protocol.maps import class_key_from_map
from qmf.protocol.objects.columns import FIXED_FORMATS, are_envelope_fields
from qmf.protocol.objects.nested_values import NestedValues
from qmf.protocol.objects.object_ids import decoded_map
from qmf.protocol.objects.shapes import Shape, learn
from qmf.schema.model import ClassKey

#: Bounds of what is remembered, each above what a large system needs. A full map starts anew; of a full list
#: (envelopes, shapes of one class and number) the last one goes, not used for longest.
MAX_ENVELOPES, MAX_CLASSES, MAX_SHAPES, MAX_COUNTED = 8, 1000, 8, 100

#: How many maps of one class and number, of unknown shapes, the general decoder reads before one is learned: objects of
#: which there is one only are not worth it. Where `MAX_SHAPES` are known already it takes more: learning takes as long
#: as reading dozens, and when maps of many shapes take turns, these must not drive each other out.
LEARN_AFTER, RELEARN_AFTER = 2, 200

#: Bytes of a class key beyond which its class is not remembered.
MAX_KEY_SIZE = 1000

#: Roughly the bytes of all shapes learned, and what a shape and a key take besides the key's text: room for a thousand
#: classes of some fifty values. When they are more, all classes are forgotten.
MAX_SHAPES_SIZE, SHAPE_SIZE, KEY_SIZE = 15_000_000, 4000, 200

_TIMES = ("_update_ts", "_create_ts", "_delete_ts")

#: How deep a class key is inside the list of a message.
_KEY_DEPTH = 2

_unpack_u32_pair = struct.Struct(">II").unpack_from
_unpack_u32 = struct.Struct(">I").unpack_from


class Envelope:
    """The shape of the map around the values, and where in it the fields are.

    Attributes:
        shape: of the map.
        values, object_id, schema_id: run and offset of each; None for one that is not there.
    """

    __slots__ = ("_times", "object_id", "schema_id", "shape", "values")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.values = shape.places["_values"][:2]
        self.object_id, self.schema_id = (
            shape.places[name][:2] if name in shape.places else None for name in ("_object_id", "_schema_id")
        )
        self._times = tuple(map(self._number, _TIMES))

    def _number(self, name: str) -> tuple[int, int, Unpack]:
        """Where a number is, and what unpacks it."""
        if name not in self.shape.places:
            return 0, 0, _zero
        run, offset, code = self.shape.places[name]
        return run, offset, struct.Struct(">" + FIXED_FORMATS[code]).unpack_from

    def times(self, data: bytes, starts: Sequence[int]) -> tuple[int, int, int]:
        """Times of update, creation and deletion; 0 for those that are not sent."""
        # Written out: it is done for each object.
        update, create, delete = self._times
        return (
            update[2](data, starts[update[0]] + update[1])[0],
            create[2](data, starts[create[0]] + create[1])[0],
            delete[2](data, starts[delete[0]] + delete[1])[0],
        )


def _zero(data: bytes, pos: int) -> tuple[int]:  # noqa: ARG001  # in place of an `Unpack`
    return (0,)


@attrs.frozen
class _Class:
    """One class.

    Attributes:
        key: its key, or None for data without schema.
        shapes: of its values, by their number; the last one used first.
        unknown: by number, how many maps had none of these shapes.
    """

    key: ClassKey | None
    shapes: dict[int, list[Shape]] = attrs.field(factory=dict)
    unknown: dict[int, int] = attrs.field(factory=dict)

    def is_worth_learning(self, number: int) -> bool:
        """Whether to learn the shape of so many values, which none of those known has."""
        if len(self.unknown) > MAX_COUNTED:
            self.unknown.clear()
        count = self.unknown[number] = self.unknown.get(number, 0) + 1
        full = len(self.shapes.get(number, ())) >= MAX_SHAPES
        return count % (RELEARN_AFTER if full else LEARN_AFTER) == 0


#: An object that was recognized: its envelope, where the runs of that start, its class; then of its values the shape,
#: where they begin and end, and where their runs start. A plain tuple: it is made for each object.
Recognized = tuple[Envelope, Sequence[int], ClassKey | None, Shape, int, int, Sequence[int]]


class KnownShapes:
    """Recognizes objects by the shapes of earlier ones.

    Attributes:
        envelopes: the maps around values, the last one used first.
        classes: by the bytes of their keys.
    """

    def __init__(self, nested: Mapping[int, NestedValues]) -> None:
        """Know no shape yet; `nested` is as for `Shape`."""
        self._nested = nested
        self.envelopes: list[Envelope] = []
        self.classes: dict[bytes, _Class] = {}
        self._size = 0

    def recognize(self, data: bytes, pos: int, end: int) -> Recognized | None:
        """The object between two offsets, of which the first is that of its size field; None if a shape is unknown.

        Raises:
            DecodeError, ProtocolError: its class key is broken.
        """
        found = self._envelope(data, pos, end)
        if found is None:
            return None
        envelope, starts, raw_key, begin, stop, number = found
        class_ = self.classes.get(raw_key)
        if class_ is None:
            return None
        shapes = class_.shapes.get(number)
        if shapes is None:
            return None
        for shape in shapes:
            value_starts = shape.match(data, begin, stop)
            if value_starts is not None:
                if shape is not shapes[0]:
                    shapes.remove(shape)
                    shapes.insert(0, shape)
                return envelope, starts, class_.key, shape, begin, stop, value_starts
        return None

    def _envelope(self, data: bytes, pos: int, end: int) -> tuple[Envelope, Sequence[int], bytes, int, int, int] | None:
        """The map around the values: its shape, starts, bytes of the class key; begin, end and number of the values."""
        envelopes = self.envelopes
        if not envelopes:
            return None
        _, count = _unpack_u32_pair(data, pos)
        for envelope in envelopes:
            if len(envelope.shape.codes) != count:
                continue
            starts = envelope.shape.match(data, pos + 8, end)
            if starts is None:
                continue
            if envelope is not envelopes[0]:
                envelopes.remove(envelope)
                envelopes.insert(0, envelope)
            raw_key = b""
            if envelope.schema_id is not None:
                run, offset = envelope.schema_id
                raw_key = data[starts[run] + offset : starts[run + 1]]
            run, offset = envelope.values
            begin, stop = starts[run] + offset, starts[run + 1]
            if stop - begin < 8:
                return None  # no room for a count
            return envelope, starts, raw_key, begin + 8, stop, _unpack_u32(data, begin + 4)[0]
        return None

    def learn(self, data: bytes, pos: int, end: int) -> None:
        """Remember an object that the general functions have read; arguments as of `recognize`."""
        found = self._envelope(data, pos, end)
        if found is None:
            shape = learn(data, pos + 8, _unpack_u32(data, pos + 4)[0], None)
            if shape is None or not are_envelope_fields(zip(shape.names, shape.codes, strict=True), _TIMES):
                return
            self.envelopes.insert(0, Envelope(shape))
            del self.envelopes[MAX_ENVELOPES:]
            found = self._envelope(data, pos, end)
            if found is None:
                return
        _, _, raw_key, begin, _, number = found
        class_ = self._class(raw_key)
        if class_ is None or not class_.is_worth_learning(number):
            return
        shape = learn(data, begin, number, self._nested)
        # It may be known, and the map around it was new.
        if shape is None or any(shape.is_like(known) for known in class_.shapes.get(number, ())):
            return
        self._size += SHAPE_SIZE + sum(map(len, shape.names)) + KEY_SIZE * len(shape.names)
        if self._size > MAX_SHAPES_SIZE:
            self.classes.clear()
            self._size = 0
            return
        shapes = class_.shapes.setdefault(number, [])
        shapes.insert(0, shape)
        del shapes[MAX_SHAPES:]

    def _class(self, raw_key: bytes) -> _Class | None:
        """The class of a key, remembered from now on; None for a key that is too long for that."""
        found = self.classes.get(raw_key)
        if found is None and len(raw_key) <= MAX_KEY_SIZE:
            if len(self.classes) >= MAX_CLASSES:
                self.classes.clear()
                self._size = 0
            fields = decoded_map(raw_key, 0, len(raw_key), _KEY_DEPTH) if raw_key else None
            found = self.classes[raw_key] = _Class(class_key_from_map(fields) if fields else None)
        return found
