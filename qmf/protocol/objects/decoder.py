"""Reading objects and events of AMQP 0-10 bodies without reading their values.

A console gets thousands of objects that differ in their numbers only. `ObjectDecoder` remembers the shapes of the maps
around and in them, and checks a map against those in a few steps; the values are unpacked when somebody asks for them.
Whatever looks different is read by the general functions in `qmf.protocol.maps`, and remembered for the next time. The
result is the same, except that its values may be a lazy mapping instead of a dictionary.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from qmf._compile import compile_function, fast_constructor
from qmf.codec import amqp010
from qmf.codec.amqp010 import decode_map_at
from qmf.codec.message import SectionMemory
from qmf.errors import DecodeError
from qmf.protocol.fields import Map, mapping
from qmf.protocol.maps import (
    block_from_map,
    class_key_from_map,
    event_from_map,
    nearest_severity,
    object_id_from_map,
    objects_from_list,
)
from qmf.protocol.objects.event_functions import EventReader, Look, event_reader
from qmf.protocol.objects.row_objects import NOTHING, RowObjects
from qmf.protocol.objects.rows import RowLayout
from qmf.protocol.objects.shapes import BUILD_AFTER, MAX_KEYS_SIZE, Shape, ShapeValues, learn
from qmf.protocol.values import EventData, ObjectBlock, ObjectData, ObjectId
from qmf.schema.model import ClassKey, Kind

#: Bounds of what is remembered. Each is above what a large system needs. A map that is full starts anew; of a list that
#: is full (outer maps, frames, shapes of one class and number, readers of events) the last goes, not used for longest.
MAX_OUTER, MAX_FRAMES, MAX_CLASSES, MAX_COUNTS, MAX_SHAPES, MAX_LAYOUTS = 8, 32, 1000, 30, 8, 200
MAX_USES, MAX_EVENT_READERS = 100, 16

#: Maps of one class and number that looked like none of `MAX_SHAPES` shapes before another one takes the place of the
#: last: to learn one and write its functions out takes as long as reading a hundred, and when maps of many looks take
#: turns, their shapes must not drive each other out.
RELEARN_AFTER = 200

#: Bytes of a class key, and of what surrounds the name in an object id, beyond which they are not remembered.
MAX_KNOWN_SIZE = 1000

#: Bytes of the keys in all shapes of a reader, plus what a shape and a key take besides, roughly: room for a thousand
#: classes of some fifty values. When they are more, all classes are forgotten.
MAX_SHAPES_SIZE, SHAPE_SIZE, KEY_SIZE = 3_000_000, 500, 20

_MAP, _TEXT16, _BINARY16 = 0xA8, 0x95, 0x90

#: Depths of what is inside each other: the list is 0, an object 1, its maps 2, and what they hold 3.
_ITEM, _FIELD, _VALUE = 1, 2, 3

_NUMBERS = {0x01: "b", 0x02: "B", 0x11: "h", 0x12: "H", 0x21: "i", 0x22: "I", 0x31: "q", 0x32: "Q"}
#: Severities that mean what they are.
_LEVELS = frozenset(range(8))
_MAPS = ("_values", "_object_id", "_schema_id")

#: In the order of their fields.
_make_object, _make_id = fast_constructor(ObjectData), fast_constructor(ObjectId)

_unpack_u32_pair = struct.Struct(">II").unpack_from
_unpack_u32 = struct.Struct(">I").unpack_from


class _Outer:
    """The map around the values, as a shape, and where in it the fields are."""

    def __init__(self, shape: Shape, numbers: tuple[str, ...]) -> None:
        self.shape = shape
        self.count = len(shape.names)
        self.values, self.object_id, self.schema_id = (
            shape.place(name)[:2] if name in shape.names else None for name in _MAPS
        )
        #: Reads the numbers wanted, in that order; None for those that are not there.
        self.numbers = _numbers_reader(shape, numbers)


def _numbers_reader(shape: Shape, names: tuple[str, ...]) -> Callable[[bytes, Sequence[int]], tuple[Any, ...]]:
    known: dict[str, object] = {}
    values = []
    for i, name in enumerate(names):
        if name in shape.names:
            run, offset, code = shape.place(name)
            known[f"read{i}"] = struct.Struct(">" + _NUMBERS[code]).unpack_from
            values.append(f"read{i}(data, starts[{run}] + {offset})[0]")
        else:
            values.append("None")
    source = f"def numbers(data, starts):\n    return ({', '.join(values)},)\n"
    reader: Callable[[bytes, Sequence[int]], tuple[Any, ...]] = compile_function("numbers", source, known, "a message")
    return reader


@attrs.frozen
class _IdFrame:
    """What the ids of one agent's objects have in common: the bytes before and behind the name, and what these say."""

    head: bytes
    tail: bytes
    text: bool
    agent_name: str | None
    agent_epoch: int


@attrs.frozen
class _Class:
    """One class: its key, the shapes of its values by their number, and how often those of events were used.

    `kept` is False for one that is not remembered; `unknown` counts maps whose shape was not known, by their number.
    """

    key: ClassKey | None
    kept: bool = True
    shapes: dict[int, list[Shape]] = attrs.field(factory=dict)
    uses: dict[tuple[_Outer, Shape], int] = attrs.field(factory=dict)
    unknown: dict[int, int] = attrs.field(factory=dict)

    def is_worth_learning(self, number: int) -> bool:
        """Whether to learn the shape of so many values, which none of those known has."""
        if len(self.shapes.get(number, ())) < MAX_SHAPES:
            return True
        count = self.unknown[number] = (self.unknown.get(number, 0) + 1) % RELEARN_AFTER
        return not count

    def keep(self, shape: Shape) -> int:
        """Remember a shape of the values; gives by how much the size of all shapes grows."""
        number = len(shape.names)
        grown = _size_of(shape)
        if number not in self.shapes and len(self.shapes) >= MAX_COUNTS:
            grown -= self.forget()
        shapes = self.shapes.setdefault(number, [])
        shapes.insert(0, shape)
        for dropped in shapes[MAX_SHAPES:]:
            grown -= _size_of(dropped)
            dropped.retire()
            for use in [use for use in self.uses if use[1] is dropped]:
                del self.uses[use]
        del shapes[MAX_SHAPES:]
        return grown

    def forget(self) -> int:
        """Forget all shapes; gives what they took."""
        shapes = [shape for shapes in self.shapes.values() for shape in shapes]
        for shape in shapes:
            shape.retire()
        self.shapes.clear()
        self.uses.clear()
        self.unknown.clear()
        return sum(map(_size_of, shapes))


class _Kin:
    """What is remembered of objects, or of events."""

    def __init__(self, kind: Kind, numbers: tuple[str, ...]) -> None:
        self.kind = kind
        self.wanted = numbers
        self.outers: list[_Outer] = []
        self.classes: dict[bytes, _Class] = {b"": _Class(None)}

    def forget(self) -> int:
        """Forget all classes, and the shapes of their values; gives what these took."""
        size = sum(class_.forget() for class_ in self.classes.values())
        self.classes.clear()
        self.classes[b""] = _Class(None)
        return size


#: A map that was recognized: where its runs start, its class, and of its values where they begin and end and how many
#: they are. A plain tuple: it is made for each object.
_Found = tuple[_Outer, Sequence[int], _Class, int, int, int]


class ObjectDecoder:
    """Reads objects and events, and remembers what they look like.

    Attributes:
        matched: objects and events that looked like others before, so far; values of objects were kept as bytes.
        general: those that the general decoder read.
        sections: of the messages around them.
    """

    def __init__(self) -> None:
        self.matched = self.general = 0
        self.sections = SectionMemory()
        self._sound: set[bytes] = set()
        self._objects = _Kin(Kind.DATA, ("_update_ts", "_create_ts", "_delete_ts"))
        self._events = _Kin(Kind.EVENT, ("_timestamp", "_severity"))
        self._layouts: dict[tuple[tuple[str, ...], bytes], RowLayout] = {}
        self._frames: list[_IdFrame] = []
        self._event_readers: list[EventReader] = []
        self._shapes_size = 0

    def objects(self, body: bytes) -> Sequence[ObjectData]:
        """The objects of a body that is an AMQP 0-10 list.

        Raises:
            DecodeError: it is no list.
            ProtocolError: what it holds are no objects.
        """
        out: list[ObjectData] = []
        rows: RowObjects | None = None
        for pos, end in _items(body):
            if rows is not None:
                out += rows
                rows = None
            found = self._find(self._objects, body, pos, end)
            values = None if found is None else self._values(found, body)
            if found is None or values is None:
                more = self._general_objects(body, pos, end)
                if isinstance(more, RowObjects):
                    rows = more
                else:
                    out += more
                continue
            outer, starts, class_ = found[:3]
            update, create, delete = outer.numbers(body, starts)
            out.append(
                _make_object(
                    values,
                    None if outer.object_id is None else self._object_id(outer.object_id, starts, body),
                    class_.key,
                    update or 0,
                    create or 0,
                    delete or 0,
                    NOTHING,
                    False,
                )
            )
        if rows is None:
            return out
        # Mostly there is nothing but one block.
        return [*out, *rows] if out else rows

    def events(self, body: bytes) -> list[EventData]:
        """The events of a body that is an AMQP 0-10 list; errors as of `objects`."""
        out: list[EventData] = []
        readers = self._event_readers
        for pos, end in _items(body):
            for read in readers:
                item = read(body, pos, end)
                if item is not None:
                    self.matched += 1
                    if read is not readers[0]:
                        readers.remove(read)
                        readers.insert(0, read)
                    break
            else:
                item = self._event(body, pos, end)
            out.append(item)
        return out

    def _event(self, body: bytes, pos: int, end: int) -> EventData:
        """An event of a look that is not frequent, or not yet."""
        found = self._find(self._events, body, pos, end)
        values = None if found is None else self._values(found, body)
        if found is None or values is None:
            event = event_from_map(_decoded(body, pos, end))
            self.general += 1
            self._learn(self._events, body, pos, end)
            return event
        outer, starts, class_ = found[:3]
        self._count_event(found, values.layout, body)
        timestamp, severity = outer.numbers(body, starts)
        return EventData(
            values=values,
            class_key=class_.key,
            timestamp=timestamp or 0,
            severity=severity if severity in _LEVELS else nearest_severity(severity),
            object_id=None if outer.object_id is None else self._object_id(outer.object_id, starts, body),
        )

    def _count_event(self, found: _Found, shape: object, body: bytes) -> None:
        """Count the events of a look; what is frequent gets a reader of its own."""
        outer, starts, class_ = found[:3]
        if not isinstance(shape, Shape):
            return
        if len(class_.uses) >= MAX_USES:
            class_.uses.clear()
        count = class_.uses[outer, shape] = class_.uses.get((outer, shape), 0) + 1
        if count % BUILD_AFTER:
            return
        schema_id = b""
        if outer.schema_id is not None:
            run, offset = outer.schema_id
            schema_id = body[starts[run] + offset : starts[run + 1]]
        fields = list(zip(outer.shape.names, outer.shape.codes, strict=True))
        look = Look(fields, schema_id, class_.key, shape.names, shape.codes)
        self._event_readers.insert(0, event_reader(look, self._object_id_at))
        del self._event_readers[MAX_EVENT_READERS:]

    def _general_objects(self, body: bytes, pos: int, end: int) -> Sequence[ObjectData]:
        fields = _decoded(body, pos, end)
        if "_row_form" in fields:
            return self._rows(block_from_map(fields))
        found = objects_from_list([fields])
        self.general += 1
        self._learn(self._objects, body, pos, end)
        return found

    def _rows(self, block: ObjectBlock) -> RowObjects:
        """The objects of a block, whose layout is remembered once it has proved to be one."""
        key = (block.columns, block.codes)
        layout = self._layouts.get(key)
        if layout is not None:
            return RowObjects(block, layout)
        layout = RowLayout(*key)
        found = RowObjects(block, layout)
        if sum(map(len, block.columns)) <= MAX_KEYS_SIZE:
            if len(self._layouts) >= MAX_LAYOUTS:
                self._layouts.clear()
            self._layouts[key] = layout
        return found

    # -- recognizing

    def _find(self, kin: _Kin, data: bytes, pos: int, end: int) -> _Found | None:
        """Recognize the map around the values, whose size field is at `pos`."""
        _, count = _unpack_u32_pair(data, pos)
        outers = kin.outers
        for outer in outers:
            if outer.count != count:
                continue
            starts = outer.shape.match(data, pos + 8, end, self._sound, _FIELD)
            if starts is None or outer.values is None:
                continue
            if outer is not outers[0]:
                outers.remove(outer)
                outers.insert(0, outer)
            run, offset = outer.values
            begin = starts[run] + offset
            if starts[run + 1] - begin < 8:
                return None  # no room for a count
            class_ = self._class(kin, outer, data, starts)
            return outer, starts, class_, begin + 8, starts[run + 1], _unpack_u32(data, begin + 4)[0]
        return None

    def _class(self, kin: _Kin, outer: _Outer, data: bytes, starts: Sequence[int]) -> _Class:
        raw = b""
        if outer.schema_id is not None:
            run, offset = outer.schema_id
            raw = data[starts[run] + offset : starts[run + 1]]
        found = kin.classes.get(raw)
        if found is None:
            fields = _decoded(raw, 0, len(raw), _FIELD)
            key = class_key_from_map(fields, kin.kind) if fields else None
            found = _Class(key, len(raw) <= MAX_KNOWN_SIZE)
            if found.kept:
                if len(kin.classes) >= MAX_CLASSES:
                    self._shapes_size -= kin.forget()
                kin.classes[raw] = found
        return found

    def _values(self, found: _Found, data: bytes) -> ShapeValues | None:
        _, _, class_, begin, end, size = found
        shapes = class_.shapes.get(size)
        if shapes is not None:
            for shape in shapes:
                starts = shape.match(data, begin, end, self._sound, _VALUE)
                if starts is not None:
                    if shape is not shapes[0]:
                        shapes.remove(shape)
                        shapes.insert(0, shape)
                    self.matched += 1
                    return ShapeValues(shape, data, begin, end, starts)
        return None

    def _object_id(self, place: tuple[int, int], starts: Sequence[int], data: bytes) -> ObjectId:
        run, offset = place
        return self._object_id_at(data, starts[run] + offset, starts[run + 1])

    def _object_id_at(self, data: bytes, pos: int, end: int) -> ObjectId:
        """The object id between two offsets, of which the first is that of its size field."""
        frames = self._frames
        for frame in frames:
            if not data.startswith(frame.head, pos + 4):
                continue
            at = pos + 4 + len(frame.head)
            stop = end - len(frame.tail)
            if at + 2 > stop:
                continue
            if at + 2 + (data[at] << 8) + data[at + 1] != stop or not data.startswith(frame.tail, stop):
                continue
            if frame is not frames[0]:
                frames.remove(frame)
                frames.insert(0, frame)
            raw = data[at + 2 : stop]
            try:
                name = raw.decode() if frame.text else raw.decode(errors="surrogateescape")
            except UnicodeDecodeError:
                break
            return _make_id(name, frame.agent_name, frame.agent_epoch)
        object_id = object_id_from_map(_decoded(data, pos, end, _FIELD))
        self._learn_frame(data, pos, end, object_id)
        return object_id

    # -- remembering

    def _learn(self, kin: _Kin, data: bytes, pos: int, end: int) -> None:
        """Remember a map, whose size field is at `pos`, that the general functions have read."""
        found = self._find(kin, data, pos, end)
        if found is None:
            shape = learn(data, pos + 8, _unpack_u32(data, pos + 4)[0], checked=False)
            if shape is None or not _is_usual(shape, kin.wanted):
                return
            kin.outers.insert(0, _Outer(shape, kin.wanted))
            del kin.outers[MAX_OUTER:]
            found = self._find(kin, data, pos, end)
            if found is None:
                return
        _, _, class_, begin, _, size = found
        if not class_.kept or not class_.is_worth_learning(size):
            return
        shape = learn(data, begin, size)
        # It may be known, and the map around it was new.
        if shape is None or any(shape.is_like(known) for known in class_.shapes.get(size, ())):
            return
        if self._shapes_size + _size_of(shape) > MAX_SHAPES_SIZE:
            self._shapes_size -= self._objects.forget() + self._events.forget()
        else:
            self._shapes_size += class_.keep(shape)

    def _learn_frame(self, data: bytes, pos: int, end: int, object_id: ObjectId) -> None:
        shape = learn(data, pos + 8, _unpack_u32(data, pos + 4)[0])
        starts = None if shape is None else shape.match(data, pos + 8, end, self._sound, _VALUE)
        if shape is None or starts is None:
            return
        run, offset, code = shape.place("_object_name")
        if code not in (_TEXT16, _BINARY16):
            return
        at = starts[run] + offset
        if end - pos - (starts[run + 1] - at) > MAX_KNOWN_SIZE:
            return
        frame = _IdFrame(
            head=data[pos + 4 : at],
            tail=data[starts[run + 1] : end],
            text=code == _TEXT16,
            agent_name=object_id.agent_name,
            agent_epoch=object_id.agent_epoch,
        )
        self._frames.insert(0, frame)
        del self._frames[MAX_FRAMES:]


def _items(body: bytes) -> Iterator[tuple[int, int]]:
    """Where the maps of a list start, at their size fields, and where they end."""
    try:
        size, count = _unpack_u32_pair(body, 0)
        if size + 4 != len(body):
            amqp010.decode_list(body, text=True)  # says what is wrong
        pos = 8
        for _ in range(count):
            code = body[pos]
            end = pos + 5 + _unpack_u32(body, pos + 1)[0]
            if code != _MAP:
                for item in amqp010.decode_list(body, text=True):
                    mapping(item, "item of the body")  # raises for the first that is no map
            if end > len(body) or end < pos + 9:
                raise DecodeError(f"map at offset {pos} does not fit into the {len(body)} bytes of its list")
            yield pos + 1, end
            pos = end
    except (IndexError, struct.error):
        raise DecodeError(f"list: the data ends at {len(body)}, inside the list") from None
    if pos != len(body):
        raise DecodeError(f"items that should end at offset {len(body)} end at {pos}")


def _decoded(body: bytes, pos: int, end: int, depth: int = _ITEM) -> Map:
    """The map between two offsets, read in full."""
    try:
        fields, stop = decode_map_at(body, pos, True, depth)
    except (IndexError, struct.error):
        raise DecodeError(f"map at offset {pos}: the data ends at {len(body)}, inside the map") from None
    if stop != end:
        raise DecodeError(f"map at offset {pos} ends at {stop}, not at {end}")
    return fields


def _size_of(shape: Shape) -> int:
    """What a shape takes, in bytes and roughly."""
    return SHAPE_SIZE + sum(map(len, shape.names)) + KEY_SIZE * len(shape.names)


def _is_usual(shape: Shape, numbers: tuple[str, ...]) -> bool:
    """True when the map around the values has no fields but those that are read here, of the types that they have."""
    return "_values" in shape.names and all(
        code == _MAP if name in _MAPS else name in numbers and code in _NUMBERS
        for name, code in zip(shape.names, shape.codes, strict=True)
    )
