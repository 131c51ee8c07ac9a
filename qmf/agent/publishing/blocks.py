"""Objects of one agent as rows, for consoles that read them (docs/protocol.md).

The rows of a message that have the same columns make up a block. What does not fit a row goes as an ordinary object in
the same message. Belongs to the event loop's thread, like `qmf.agent.publishing.writing`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any

from qmf.agent.layout.class_layout import BOTH, PROPERTIES, PROPERTIES_CELL, STATISTICS, ClassLayout
from qmf.agent.model.collecting import RawValues, make_row_writer
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.values import note_changes, read_raw_values
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.publishing.writing import code_of, may_be_absent, may_be_kept
from qmf.codec import amqp010
from qmf.codec.errors import EncodeError
from qmf.protocol import ObjectBlock, ObjectData, ObjectsIndication, ObjectsResponse
from qmf.protocol.maps import ROW_FORM, object_id_to_map, wire_value
from qmf.protocol.objects.row_encoding import Lead, RowEncoder
from qmf.protocol.objects.rows import FIXED_FORMATS, LIST, MAP, RowLayout
from qmf.protocol.values import ObjectId

#: Selections of values whose columns are remembered: consoles repeat theirs.
_MAX_SHAPES = 100

_Convert = Callable[[Any], bytes]


class RowWriter:
    """Writes the rows of one agent."""

    def __init__(self, store: ManagedObjectStore) -> None:
        self._store = store
        self._empty = store.object_id("")
        self._whole: dict[ClassLayout, Shape] = {}
        self._shapes: OrderedDict[tuple[ClassLayout, frozenset[str] | None, bool], Shape] = OrderedDict()

    def whole(self, obj: ManagedObject) -> Row:
        """An object of the store with all of its values.

        Raises:
            EncodeError: it does not fit a row.
        """
        layout = obj._qmf_layout
        shape = self._whole.get(layout)
        if shape is None:
            shape = self._whole[layout] = Shape(layout, None, self._empty, loose=False)
        cells = obj._qmf_cells
        if cells[PROPERTIES_CELL]:
            note_changes(obj, self._store.tick())
        lead = obj._qmf_lead
        if lead is None or cells[PROPERTIES_CELL]:
            lead = shape.lead(name_of(obj), read_raw_values(obj, PROPERTIES))
            if may_be_kept(obj, shape.references):
                obj._qmf_lead = lead
        if shape.write is not None:
            return shape, shape.write(obj, lead)
        return shape, shape.row(obj._qmf_update_ts, obj._qmf_create_ts, lead, read_raw_values(obj, STATISTICS))

    def read(self, obj: ManagedObject, raw: RawValues, names: frozenset[str] | None) -> Row:
        """An object of the store with values that were read just now.

        Args:
            obj: the object.
            raw: all of its values.
            names: wire names of those wanted, or None for all.

        Raises:
            EncodeError: it does not fit a row.
        """
        shape = self._shape(obj._qmf_layout, names)
        values = raw if shape.pick is None else shape.pick(raw)
        lead = shape.lead(name_of(obj), values[: shape.leading])
        return shape, shape.row(obj._qmf_update_ts, obj._qmf_create_ts, lead, values[shape.leading :])

    def data(self, layout: ClassLayout, data: ObjectData, names: frozenset[str] | None) -> Row:
        """Any object of the agent that is not deleted; arguments as of `read`.

        Raises:
            EncodeError: it does not fit a row.
        """
        assert data.object_id is not None
        shape = self._shape(layout, names, loose=True)
        lead = shape.lead(data.object_id.object_name, ())
        get = data.values.get
        return shape, shape.row(data.update_ts, data.create_ts, lead, [get(name) for name in shape.columns])

    def _shape(self, layout: ClassLayout, names: frozenset[str] | None, *, loose: bool = False) -> Shape:
        key = (layout, names, loose)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = Shape(layout, names, self._empty, loose=loose)
            if len(self._shapes) > _MAX_SHAPES:
                self._shapes.popitem(last=False)
        return shape


class Shape:
    """Rows of one class with the same columns.

    Attributes:
        columns: wire names, in schema order.
        leading: how many of them make up the part that is prepared (`qmf.protocol.objects.row_encoding`).
        references: cells of references in the class.
        pick: takes the columns' values from all values of an object, or None where that is all of them.
        write: makes a row of an object and its lead in one go; None where not all values are in it, or statistics are
            maps or lists.
    """

    def __init__(self, layout: ClassLayout, names: frozenset[str] | None, empty: ObjectId, *, loose: bool) -> None:
        """Make one.

        Args:
            layout: of the class.
            names: wire names, or None for all.
            empty: the id of an object of the agent that has no name.
            loose: any value may be absent; there is no prepared part.
        """
        wire = [(name, base, may_be_absent(field)) for field in layout.fields(BOTH) for name, base in field.wire]
        wanted = [i for i, (name, _, _) in enumerate(wire) if names is None or name in names]
        self.columns = tuple(wire[i][0] for i in wanted)
        self.references = tuple(field.cell for field in layout.references)
        self.pick: Callable[[RawValues], RawValues] | None = None if names is None else _picker(wanted)
        properties = len(layout.wire[PROPERTIES])
        self.leading = 0 if loose else sum(i < properties for i in wanted)
        codes = bytes(code_of(wire[i][1]) or (LIST if wire[i][1].name == "list" else MAP) for i in wanted)
        optional = {place for place, i in enumerate(wanted) if loose or wire[i][2]}
        self._encoder = RowEncoder(RowLayout(self.columns, codes), self.leading, optional, layout.schema.name)
        converts = [_CONVERTS.get(code) if code not in FIXED_FORMATS else None for code in codes]
        self._lead_converts = _numbered(converts[: self.leading])
        self._converts = _numbered(converts[self.leading :])
        self.write: Callable[[ManagedObject, Lead], bytes] | None = None
        if names is None and not loose and not self._converts:
            self.write = make_row_writer(layout, self._encoder)
        self._block = (layout.key, empty.agent_name, empty.agent_epoch, self.columns, codes)

    def lead(self, name: str, values: Sequence[Any]) -> Lead:
        """The prepared part of a row."""
        return self._encoder.lead(name, _converted(values, self._lead_converts))

    def row(self, update: int, create: int, lead: Lead, values: Sequence[Any]) -> bytes:
        """A row."""
        if self._converts:
            values = _converted(values, self._converts)
        return self._encoder.row(update, create, 0, lead, *values)

    def block(self, rows: Sequence[bytes]) -> ObjectBlock:
        """Rows as part of a message."""
        key, agent_name, agent_epoch, columns, codes = self._block
        return ObjectBlock(
            class_key=key,
            agent_name=agent_name,
            agent_epoch=agent_epoch,
            columns=columns,
            codes=codes,
            rows=b"".join(rows),
        )


#: A row with its shape.
Row = tuple[Shape, bytes]


def reads_rows(form: int) -> bool:
    """Whether a console that announces this form of rows gets them."""
    return form >= ROW_FORM


def content(
    kind: type[ObjectsResponse] | type[ObjectsIndication], items: Sequence[Row | ObjectData]
) -> ObjectsResponse | ObjectsIndication:
    """Rows and ordinary objects as what a message says."""
    if items and set(map(type, items)) == {tuple}:
        # Mostly all are of one shape.
        shapes, raw = zip(*items, strict=True)
        if shapes.count(shapes[0]) == len(shapes):
            return kind((), [shapes[0].block(raw)])
    rows: dict[Shape, list[bytes]] = {}
    objects = []
    for item in items:
        if isinstance(item, tuple):
            rows.setdefault(item[0], []).append(item[1])
        else:
            objects.append(item)
    return kind(objects, [shape.block(found) for shape, found in rows.items()])


def name_of(obj: ManagedObject) -> str:
    """The name of an object of the store."""
    assert obj._qmf_id is not None
    return obj._qmf_id.object_name


def _picker(positions: Sequence[int]) -> Callable[[RawValues], RawValues]:
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda raw: tuple(raw[position] for position in positions)


def _map(value: Any) -> bytes:
    fields = object_id_to_map(value) if isinstance(value, ObjectId) else wire_value(value)
    if not isinstance(fields, dict):
        raise EncodeError(f"a {type(value).__name__} instead of a map")
    return amqp010.encode_map(fields)


def _list(value: Any) -> bytes:
    items = wire_value(value)
    if not isinstance(items, list):
        raise EncodeError(f"a {type(value).__name__} instead of a list")
    return amqp010.encode_list(items)


_CONVERTS: dict[int, _Convert] = {MAP: _map, LIST: _list}


def _numbered(converts: Collection[_Convert | None]) -> tuple[tuple[int, _Convert], ...]:
    return tuple((i, convert) for i, convert in enumerate(converts) if convert is not None)


def _converted(values: Sequence[Any], converts: tuple[tuple[int, _Convert], ...]) -> Sequence[Any]:
    """Values with maps and lists as bytes."""
    result = list(values)
    for i, convert in converts:
        if result[i] is not None:
            result[i] = convert(result[i])
    return result
