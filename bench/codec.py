"""How long an object takes to encode and to decode: our codec beside proton's, in the same run.

The object is a queue of a broker as qpidd has it: 7 properties and 47 values of statistics. proton's `Data` encodes the
same values as an AMQP 1.0 map. Ours are

- the general codec: AMQP 0-10 as our agents send it, AMQP 1.0 as qpidd does;
- the keyed layout: the same AMQP 0-10 bytes. Writing, all values at once, and the statistics alone, as when these
  changed; reading, the check on receipt with every value unpacked, and the check alone, as when nobody looks;
- rows: no keys at all, between our own agents and consoles.

Each round measures all of them, one after the other; the figures are medians of the rounds.

    python bench/codec.py [--rounds N] [--json FILE]
"""

from __future__ import annotations

import statistics
import struct
import time
from collections.abc import Callable
from pathlib import Path

import proton
from figures import Figure, parser, report

from qmf.codec import amqp010, amqp10, wrap_value
from qmf.protocol.objects import Column, RowEncoder
from qmf.protocol.objects.keyed_encoding import entry_encoder
from qmf.protocol.objects.lazy_values import LazyValues
from qmf.protocol.objects.nested_values import nested_values
from qmf.protocol.objects.rows import RowDecoder
from qmf.protocol.objects.shapes import learn
from qmf.protocol.values import ObjectId
from qmf.schema import TYPES, ClassSchema, read_schema

SCHEMA = Path(__file__).resolve().parents[1] / "schemas" / "broker.xml"

#: Objects in one measurement, and how often it is repeated in a round.
OBJECTS, REPEATS = 20, 10

#: How much faster than proton the layouts are to be.
WANTED = 20

Values = dict[str, object]


def queue_schema() -> ClassSchema:
    """The class of a broker's queue."""
    return next(item for item in read_schema(SCHEMA).classes if item.name.lower() == "queue")


def bases(schema: ClassSchema) -> dict[str, str]:
    """The base types of all values by wire name, properties first."""
    found = {item.name: item.type.base for item in schema.properties}
    for item in schema.statistics:
        found |= {entry.name: item.type.base for entry in item.entries}
    return found


def value(base: str, number: int) -> object:
    """A value as an agent has it."""
    samples: dict[str, object] = {
        "sstr": f"queue-{number}",
        "bool": bool(number % 2),
        "map": {"qpid.max_count": number, "qpid.policy_type": "ring"},
        "objId": {"_object_name": "org.apache.qpid.broker:vhost:org.apache.qpid.broker:broker:amqp-broker,/"},
    }
    return samples.get(base, number)


def queues(schema: ClassSchema) -> list[Values]:
    """Values of some queues; numbers of some thousands and more, as busy ones have."""
    return [
        {name: value(base, 1_000_000 * number + place) for place, (name, base) in enumerate(bases(schema).items())}
        for number in range(OBJECTS)
    ]


def with_widths(schema: ClassSchema, values: Values) -> Values:
    """The values as the general encoder takes them."""
    kinds = bases(schema)
    return {
        name: item if isinstance(item, str | bool | dict) else wrap_value(TYPES[kinds[name]], item)
        for name, item in values.items()
    }


# -- what is measured: functions of all objects


def proton_encode(items: list[Values]) -> list[bytes]:
    found = []
    for item in items:
        data = proton.Data()
        data.put_object(item)
        found.append(data.encode())
    return found


def proton_decode(items: list[bytes]) -> list[object]:
    found = []
    for item in items:
        data = proton.Data()
        data.decode(item)
        data.rewind()
        data.next()
        found.append(data.get_object())
    return found


def columns(schema: ClassSchema) -> list[Column]:
    return [Column(name, TYPES[base]) for name, base in bases(schema).items()]


class Shapes:
    """Reads maps that look like the first one."""

    def __init__(self, first: bytes) -> None:
        shape = learn(first, 4, nested_values(3))
        assert shape is not None
        self._shape = shape

    def check(self, items: list[bytes]) -> list[LazyValues]:
        shape = self._shape
        found = []
        for item in items:
            matched = shape.match(item, 4, len(item))
            assert matched is not None
            found.append(LazyValues(shape, item, (4, len(item), matched)))
        return found

    def read(self, items: list[bytes]) -> list[Values]:
        return [values.unpack() for values in self.check(items)]


def main() -> None:
    """Measure, check, print."""
    made = parser("How long an object takes to encode and to decode, beside proton")
    made.add_argument("--rounds", type=int, default=15, metavar="N")
    options = made.parse_args()
    schema = queue_schema()
    properties = len(schema.properties)
    plain = queues(schema)
    wide = [with_widths(schema, item) for item in plain]
    tuples = [tuple(item.values()) for item in plain]

    keyed = [amqp010.encode_map(item) for item in wide]
    by_proton = proton_encode(plain)
    as_qpidd = [amqp10.encode(item) for item in wide]
    encode_all = entry_encoder(columns(schema), "queue")
    encode_statistics = entry_encoder(columns(schema)[properties:], "queue statistics")
    shapes = Shapes(keyed[0])
    keyed_statistics = [amqp010.encode_map(dict(list(item.items())[properties:])) for item in wide]
    statistic_shapes = Shapes(keyed_statistics[0])
    rows = RowEncoder(schema.key, ObjectId(""), columns(schema), properties)
    leads = [rows.lead("queue", values[:properties]) for values in tuples]
    statistic_values = [values[properties:] for values in tuples]

    def write_rows() -> list[bytes]:
        return [rows.row(3, 2, 0, lead, values) for lead, values in zip(leads, statistic_values, strict=True)]

    whole_block = rows.block(write_rows())
    block, layout = whole_block.rows, RowDecoder(whole_block.columns, whole_block.codes)

    def check_rows() -> list[LazyValues]:
        return [LazyValues(layout, block, offset) for offset in layout.check(block)]

    def whole(entries: bytes, count: int) -> bytes:
        return struct.pack(">II", len(entries) + 4, count) + entries

    # All of them say the same.
    assert [whole(*encode_all(values)) for values in tuples] == keyed
    assert shapes.read(keyed) == plain
    assert [item.unpack() for item in check_rows()] == plain
    assert [amqp10.decode(item)[0] for item in as_qpidd] == proton_decode(by_proton) == plain

    measured: dict[str, Callable[[], object]] = {
        "encode, proton": lambda: proton_encode(plain),
        "encode, general AMQP 0-10": lambda: [amqp010.encode_map(item) for item in wide],
        "encode, general AMQP 1.0": lambda: [amqp10.encode(item) for item in wide],
        "encode, keyed layout": lambda: [encode_all(values) for values in tuples],
        "encode, keyed layout, changed statistics": lambda: [encode_statistics(item) for item in statistic_values],
        "encode, row, changed statistics": write_rows,
        "decode, proton": lambda: proton_decode(by_proton),
        "decode, general AMQP 0-10": lambda: [amqp010.decode_map(item, text=True) for item in keyed],
        "decode, general AMQP 1.0": lambda: [amqp10.decode(item, text=True) for item in as_qpidd],
        "decode, keyed layout, all values": lambda: shapes.read(keyed),
        "decode, keyed layout, on receipt": lambda: shapes.check(keyed),
        "decode, keyed layout, statistics, all values": lambda: statistic_shapes.read(keyed_statistics),
        "decode, row, all values": lambda: [item.unpack() for item in check_rows()],
        "decode, row, on receipt": check_rows,
    }
    times: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(options.rounds):
        for name, run in measured.items():
            times[name].append(microseconds(run))
    report(figures({name: statistics.median(found) for name, found in times.items()}), options.json)


def microseconds(run: Callable[[], object]) -> float:
    """Time for one object: the best of some repeats, which the noise of other processes only lengthens."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best / OBJECTS * 1e6


def figures(found: dict[str, float]) -> list[Figure]:
    """Each beside proton's figure for the same direction."""
    made = []
    for name, micros in found.items():
        direction = name.partition(",")[0]
        peer = f"{direction}, proton"
        if name == peer:
            made.append(Figure(name, micros, "us"))
            continue
        layout = "keyed" in name or "row" in name
        made.append(Figure(name, micros, "us", peer, found[peer], at_most=1 / WANTED if layout else None))
    return made


if __name__ == "__main__":
    main()
