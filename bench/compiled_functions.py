"""What each function that is compiled from source brings: the same work done by a plain loop, in the same run.

A loop is written as well as it can be without compiling anything: struct layouts, readers and dictionaries are made
beforehand. Objects are queues of a broker (54 values), events are subscriptions to one (7 values). Each round measures
a function and its loop, one after the other; the figures are the best of the rounds: other programs only lengthen them.

    python bench/compiled_functions.py [--rounds N] [--json FILE]
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from codec import OBJECTS, columns, queue_schema, queues, with_widths
from figures import Figure, parser, report
from queue_agent import make_queue

from qmf._compile import fast_constructor
from qmf.agent.accessors.bounded_counter import bounded_counter_class
from qmf.agent.accessors.counter import Counter
from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import PROPERTIES, STATISTICS
from qmf.agent.layout.object_state import general_setter, value_setter
from qmf.agent.model.arguments import argument_check, python_name
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.value_readers import make_reader, statistics_source
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.publishing.event_raiser import EventWriter
from qmf.agent.publishing.object_writer import columns_of
from qmf.codec import amqp010
from qmf.codec.type_codes import UUID16
from qmf.models.broker.agent import Broker, Subscribe, Vhost
from qmf.protocol import ObjectDecoder, ObjectId
from qmf.protocol.objects import RowEncoder, encode_object, list_body
from qmf.protocol.objects.columns import LENGTHS, NESTED, ROW_FORMATS
from qmf.protocol.objects.general import event_from_map, objects_from_list
from qmf.protocol.objects.keyed_encoding import entry_encoder
from qmf.protocol.objects.nested_values import NestedValues, nested_values
from qmf.protocol.objects.rows import RowDecoder
from qmf.protocol.objects.shapes import Shape, learn
from qmf.protocol.values import ObjectData
from qmf.schema import Style

REPEATS = 20

Work = Callable[[], object]


@attrs.frozen
class Pair:
    """A compiled function and the loop that does the same.

    Attributes:
        name: what they do.
        compiled, loop: do it for `count` objects, events or values.
    """

    name: str
    compiled: Work
    loop: Work
    count: int = OBJECTS


# -- keyed objects


class ShapeLoops:
    """What a shape's functions do, run by run."""

    def __init__(self, shape: Shape, nested: Mapping[int, NestedValues]) -> None:
        self._nested = nested
        self._names = shape.names
        self._runs: list[tuple[int, int, int, int | None, Any]] = []
        known, mask = bytes((0, 0, 0, len(shape.names))), b"\xff" * 4
        layout = ">4x"
        for name, code in zip(shape.names, shape.codes, strict=True):
            raw = name.encode()
            known += bytes((len(raw), *raw, code))
            mask += b"\xff" * (len(raw) + 2)
            layout += f"{len(raw) + 2}x"
            if code in LENGTHS:
                self._add(mask, known, layout, code)
                mask, known, layout = b"", b"", ">"
            else:
                width = struct.calcsize(">" + ROW_FORMATS[code])
                known, mask, layout = known + bytes(width), mask + bytes(width), layout + ROW_FORMATS[code]
        self._add(mask, known, layout, None)

    def _add(self, mask: bytes, known: bytes, layout: str, then: int | None) -> None:
        numbers = int.from_bytes(mask, "little"), int.from_bytes(known, "little")
        self._runs.append((len(known), *numbers, then, struct.Struct(layout).unpack_from))

    def match(self, data: bytes, start: int, stop: int) -> Sequence[int] | None:
        pos, starts, number = start, [], int.from_bytes
        for size, mask, known, then, _ in self._runs:
            starts.append(pos)
            end = pos + size
            if number(data[pos:end], "little") & mask != known:
                return None
            if then is None:
                return starts if end == stop else None
            width = LENGTHS[then]
            pos = end + width + number(data[end : end + width], "big")
            if then in NESTED:
                raw = data[end:pos]
                if raw not in self._nested[then].known and not self._nested[then].check(raw):
                    return None
            elif not data[end + width : pos].isascii():
                data[end + width : pos].decode()
        return None

    def unpack(self, data: bytes, starts: Sequence[int]) -> dict[str, object]:
        values: list[object] = []
        for i, (size, _, _, then, unpack) in enumerate(self._runs):
            values += unpack(data, starts[i])
            if then is not None:
                pos = starts[i] + size
                raw = data[pos : starts[i + 1]]
                values.append(self._nested[then].read(raw) if then in NESTED else raw[LENGTHS[then] :].decode())
        return dict(zip(self._names, values, strict=True))


def keyed() -> list[Pair]:
    schema = queue_schema()
    plain = queues(schema)
    items = [amqp010.encode_map(with_widths(schema, item)) for item in plain]
    nested = nested_values(3)
    shape = learn(items[0], 4, nested)
    assert shape is not None
    loops = ShapeLoops(shape, nested)
    found = [shape.match(item, 4, len(item)) for item in items]
    starts = [item for item in found if item is not None]
    assert starts == [tuple(loops.match(item, 4, len(item)) or ()) for item in items]
    unpacked = [shape.read(item, at) for item, at in zip(items, starts, strict=True)]
    assert unpacked == [loops.unpack(item, at) for item, at in zip(items, starts, strict=True)] == plain
    encode = entry_encoder(columns(schema), "queue")
    tuples = [tuple(item.values()) for item in plain]
    wide = [with_widths(schema, item) for item in plain]
    assert [encode(values)[0] for values in tuples] == [amqp010.encode_map(item)[8:] for item in wide]
    pairs = list(zip(items, starts, strict=True))
    objects = [
        ObjectData(values=item, object_id=ObjectId(f"q{number}", "a:b:c", 1), class_key=schema.key, update_ts=1)
        for number, item in enumerate(wide)
    ]
    body = list_body([encode_object(item) for item in objects])
    decoder = ObjectDecoder()
    assert list(decoder.objects(body)) == list(decoder.objects(body)) == objects
    assert decoder.general < OBJECTS
    return [
        Pair(
            "keyed object: decode on receipt (loop: the general decoder)",
            lambda: decoder.objects(body),
            lambda: objects_from_list(amqp010.decode_list(body, text=True)),
        ),
        Pair(
            "keyed object: match",
            lambda: [shape.match(item, 4, len(item)) for item in items],
            lambda: [loops.match(item, 4, len(item)) for item in items],
        ),
        Pair(
            "keyed object: unpack",
            lambda: [shape.read(item, at) for item, at in pairs],
            lambda: [loops.unpack(item, at) for item, at in pairs],
        ),
        Pair(
            "keyed object: encode (loop: the general encoder)",
            lambda: [encode(values) for values in tuples],
            lambda: [amqp010.encode_map(item) for item in wide],
        ),
    ]


# -- rows


class RowLoops:
    """What the functions of rows do, column by column."""

    def __init__(self, decoder: RowDecoder) -> None:
        self._layout = layout = decoder.layout
        self._nested = decoder.nested
        self._head = struct.Struct(f">{layout.bitmap_size}s24x{layout.numbers}{layout.lengths}")
        self._lengths = struct.Struct(">" + layout.lengths).unpack_from
        self._fixed = [i for i, code in enumerate(layout.codes) if code in ROW_FORMATS]
        self._uuids = [i for i, code in enumerate(layout.codes) if code == UUID16]

    def check(self, data: bytes) -> list[int]:
        layout = self._layout
        found, start, end = [], 0, len(data)
        size_of = struct.Struct(">I").unpack_from
        while start < end:
            (size,) = size_of(data, start)
            name, *sizes = self._lengths(data, start + layout.lengths_at)
            assert layout.name_at - 4 + name + sum(sizes) == size
            pos = start + layout.name_at + name
            for i, length in zip(layout.variable_columns, sizes, strict=True):
                if layout.codes[i] in NESTED:
                    raw = data[pos : pos + length]
                    assert raw in self._nested[layout.codes[i]].known or self._nested[layout.codes[i]].check(raw)
                pos += length
            found.append(start)
            start += 4 + size
        return found

    def unpack(self, data: bytes, offset: int) -> dict[str, object]:
        layout = self._layout
        fields = self._head.unpack_from(data, offset + 4)
        values: list[Any] = [None] * len(layout.columns)
        at = 1 + len(self._fixed)
        for i, value in zip(self._fixed, fields[1:at], strict=True):
            values[i] = value
        end = offset + layout.name_at + fields[at]
        for i, size in zip(layout.variable_columns, fields[at + 1 :], strict=True):
            start, end = end, end + size
            raw, code = data[start:end], layout.codes[i]
            values[i] = self._nested[code].read(raw) if code in NESTED else raw.decode()
        return dict(zip(layout.columns, values, strict=True))


def rows() -> list[Pair]:
    schema = queue_schema()
    plain = queues(schema)
    properties = len(schema.properties)
    encoder = RowEncoder(schema.key, ObjectId(""), columns(schema), properties)
    tuples = [tuple(item.values()) for item in plain]
    leads = [encoder.lead("queue", values[:properties]) for values in tuples]
    block = encoder.block(
        [encoder.row(3, 2, 0, lead, values[properties:]) for lead, values in zip(leads, tuples, strict=True)]
    )
    decoder = RowDecoder(block.columns, block.codes)
    loops = RowLoops(decoder)
    data = block.rows
    offsets = decoder.check(data)
    assert loops.check(data) == offsets
    assert [loops.unpack(data, at) for at in offsets] == [decoder.unpack(data, at) for at in offsets] == plain
    return [
        Pair("row: check", lambda: decoder.check(data), lambda: loops.check(data)),
        Pair(
            "row: unpack",
            lambda: [decoder.unpack(data, at) for at in offsets],
            lambda: [loops.unpack(data, at) for at in offsets],
        ),
    ]


# -- events


def events() -> list[Pair]:
    writer = EventWriter(Subscribe)
    raised = [
        Subscribe(rhost=f"h{i}", user="bob", qName=f"queue-{i}", dest="d", excl=False, args={}) for i in range(100)
    ]
    items = [writer.item(writer.arguments(event), number, 6) for number, event in enumerate(raised)]
    checks = [
        (python_name(Subscribe, item.name), argument_check(item, "event")) for item in Subscribe._qmf_schema_.arguments
    ]
    assert [writer.arguments(event) for event in raised] == [
        [check(getattr(event, name)) for name, check in checks] for event in raised
    ]
    body = list_body(items)
    decoder = ObjectDecoder()
    general = [event_from_map(item) for item in amqp010.decode_list(body, text=True) if isinstance(item, dict)]
    assert decoder.events(body) == decoder.events(body) == general
    assert decoder.general < 100
    return [
        Pair(
            "event: decode (loop: the general decoder)",
            lambda: decoder.events(body),
            lambda: [event_from_map(item) for item in amqp010.decode_list(body, text=True)],
            100,
        ),
        Pair(
            "event: check the arguments",
            lambda: [writer.arguments(event) for event in raised],
            lambda: [[check(getattr(event, name)) for name, check in checks] for event in raised],
            100,
        ),
    ]


# -- the agent


def loop_reader(layout: Any) -> Callable[[ManagedObject], list[object]]:
    """Reads the statistics field by field."""
    fields = [
        (field, field.direct, field.cell, field.slot, field.type.style is Style.COUNT) for field in layout.statistics
    ]

    def read(obj: ManagedObject) -> list[object]:
        cells, out = object_state.cells(obj), []
        for _, direct, cell, slot, count in fields:
            if direct:
                out.append(cells[cell])
            elif count:
                out.append(getattr(obj, slot)._value)
            else:
                out += getattr(obj, slot)._read()
        return out

    return read


def assign(setter: Callable[[Any, Any], None], obj: ManagedObject) -> None:
    for number in range(1000):
        setter(obj, number)


def count(counter: Counter) -> None:
    for _ in range(1000):
        counter.inc()


def agent() -> list[Pair]:
    store = ManagedObjectStore("a:b:c", 1, time.time_ns)
    vhost = Vhost(name="/")
    store.add(vhost, "/")
    objects = [make_queue(number, vhost) for number in range(OBJECTS)]
    layout = object_state.layout(objects[0])
    read, slow = make_reader(layout, STATISTICS), loop_reader(layout)
    assert [list(read(obj)) for obj in objects] == [slow(obj) for obj in objects]
    properties = columns_of(layout, PROPERTIES)
    every = [*properties, *columns_of(layout, STATISTICS)]
    encoder = RowEncoder(layout.key, ObjectId(""), every, len(properties))
    lead = encoder.lead("n", [None] * len(properties))
    whole = encoder.row_function(statistics_source(layout), "obj, lead, update, create, delete")
    assert [whole(obj, lead, 3, 2, 0) for obj in objects] == [encoder.row(3, 2, 0, lead, read(obj)) for obj in objects]
    broker = Broker(name="bench")
    field = object_state.layout(broker).by_name["maxConns"]
    fast, general = value_setter(field), general_setter(field)
    counted = next(item for item in layout.accessors if item.type.style is Style.COUNT and item.formula is None)
    bounded, plain = (
        kind(object_state.cells(objects[0]), counted) for kind in (bounded_counter_class(counted), Counter)
    )
    thousand = range(1000)
    make = fast_constructor(ObjectData)
    return [
        Pair(
            "object: read the statistics",
            lambda: [read(obj) for obj in objects],
            lambda: [slow(obj) for obj in objects],
        ),
        Pair(
            "object: read and write a row (loop: a function for each)",
            lambda: [whole(obj, lead, 3, 2, 0) for obj in objects],
            lambda: [encoder.row(3, 2, 0, lead, read(obj)) for obj in objects],
        ),
        Pair(
            "assign a number (loop: the general setter)",
            lambda: assign(fast, broker),
            lambda: assign(general, broker),
            1000,
        ),
        Pair(
            "counter.inc() (loop: bounds are fetched)",
            lambda: count(bounded),
            lambda: count(plain),
            1000,
        ),
        Pair(
            "make a frozen object of 8 fields (loop: its class)",
            lambda: [make({}, None, None, 1, 2, 3, {}, False) for _ in thousand],
            lambda: [ObjectData(values={}, update_ts=1, create_ts=2, delete_ts=3) for _ in thousand],
            1000,
        ),
    ]


def microseconds(work: Work, count: int) -> float:
    """Time for one: the best of some repeats, which the noise of other processes only lengthens."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e6


def main() -> None:
    """Measure and report."""
    made = parser("What each compiled function brings, beside a loop")
    made.add_argument("--rounds", type=int, default=9, metavar="N")
    options = made.parse_args()
    pairs = [*keyed(), *rows(), *events(), *agent()]
    times: dict[str, tuple[list[float], list[float]]] = {pair.name: ([], []) for pair in pairs}
    for _ in range(options.rounds):
        for pair in pairs:
            compiled, loop = times[pair.name]
            compiled.append(microseconds(pair.compiled, pair.count))
            loop.append(microseconds(pair.loop, pair.count))
    report(
        [Figure(name, min(compiled), "us", "a loop", min(loop)) for name, (compiled, loop) in times.items()],
        options.json,
    )


if __name__ == "__main__":
    main()
