"""Objects of one agent as rows, for consoles that read them (docs/protocol.md).

The rows of a message with the same columns form a block. An object that does not fit a row is an ordinary object in the
same message. Belongs to the event loop's thread, like `qmf.agent.publishing.object_writer`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import itemgetter

import attrs

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, PROPERTIES, ClassLayout
from qmf.agent.layout.object_state import LEAD, TIMES_OF_OBJ
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.object_values import read_raw_values, values_by_name
from qmf.agent.model.value_readers import RawValues, statistics_source
from qmf.agent.objects.object_store import ManagedObjectStore, object_data
from qmf.agent.publishing.object_writer import Message, columns_of
from qmf.codec.errors import EncodeError
from qmf.protocol import ObjectData, ObjectsIndication, ObjectsResponse
from qmf.protocol.objects import Lead, RowEncoder, encode_block, encode_object, list_body

#: Selections of values whose columns are remembered: consoles repeat their queries.
_MAX_SELECTIONS = 100


#: A row, with what encoded it: rows of one encoder have the same columns.
Row = tuple[RowEncoder, bytes]

Picker = Callable[[RawValues], RawValues]


class RowWriter:
    """Writes the rows of one agent.

    Attributes:
        selection: gives what writes some values of a class: see `_select`, whose last results it remembers.
    """

    def __init__(self, store: ManagedObjectStore) -> None:
        self._tick = store.changes.tick
        self._empty = store.object_id("")
        self._whole: dict[type[ManagedObject], tuple[RowEncoder, Callable[[ManagedObject, Lead], bytes]]] = {}
        self._parts: dict[tuple[ClassLayout, int], RowEncoder] = {}
        self.selection = functools.lru_cache(_MAX_SELECTIONS)(self._select)

    def whole(self, obj: ManagedObject) -> Row:
        """An object of the store with all of its values.

        Raises:
            EncodeError: it does not fit a row.
        """
        found = self._whole.get(type(obj))
        if found is None:
            found = self._whole[type(obj)] = self._whole_row(object_state.layout(obj))
        encoder, row = found
        lead = object_state.kept_encoding(obj, LEAD, self._tick)
        if lead is None:
            lead = encoder.lead(object_state.object_name(obj), read_raw_values(obj, PROPERTIES))
            object_state.keep_encoding(obj, LEAD, lead)
        return encoder, row(obj, lead)

    def _whole_row(self, layout: ClassLayout) -> tuple[RowEncoder, Callable[[ManagedObject, Lead], bytes]]:
        """The encoder for all values of a class, the function that reads an object's statistics and makes its row."""
        encoder = RowEncoder(layout.key, self._empty, columns_of(layout, BOTH), len(layout.wire[PROPERTIES]))
        if layout.row_function is None:  # made once for a class, for all agents of the program
            reading = statistics_source(layout)
            times = f"update, create, delete = {TIMES_OF_OBJ}, 0"
            layout.row_function = encoder.row_function(reading._replace(steps=[*reading.steps, times]), "obj, lead")
        return encoder, layout.row_function

    def part(self, obj: ManagedObject, groups: int, raw: RawValues) -> Row:
        """An object of the store with the values of some groups, which were read before.

        Raises:
            EncodeError: it does not fit a row.
        """
        layout = object_state.layout(obj)
        encoder = self._parts.get((layout, groups))
        if encoder is None:
            encoder = RowEncoder(layout.key, self._empty, columns_of(layout, groups), 0)
            self._parts[layout, groups] = encoder
        lead = encoder.lead(object_state.object_name(obj), ())
        return encoder, encoder.row(*object_state.times(obj), 0, lead, raw)

    def read(self, obj: ManagedObject, raw: RawValues, names: frozenset[str] | None) -> Row:
        """An object of the store with values that were read just now.

        Args:
            names: wire names of the selected values, or None for all.

        Raises:
            EncodeError: it does not fit a row.
        """
        encoder, _, pick = self.selection(object_state.layout(obj), names, False)
        lead = encoder.lead(object_state.object_name(obj), ())
        return encoder, encoder.row(*object_state.times(obj), 0, lead, pick(raw))

    def data(self, layout: ClassLayout, data: ObjectData, names: frozenset[str] | None) -> Row:
        """Any object of the agent that is not deleted; arguments as of `read`.

        Raises:
            EncodeError: it does not fit a row.
        """
        assert data.object_id is not None
        encoder, columns, _ = self.selection(layout, names, True)
        lead = encoder.lead(data.object_id.object_name, ())
        return encoder, encoder.row(data.update_ts, data.create_ts, 0, lead, list(map(data.values.get, columns)))

    def _select(
        self, layout: ClassLayout, names: frozenset[str] | None, loose: bool
    ) -> tuple[RowEncoder, tuple[str, ...], Picker]:
        """The encoder for some values of a class; their names, and what selects them from all values.

        Args:
            names: wire names, or None for all.
            loose: any value may be absent.

        Raises:
            EncodeError: there are more columns than rows may have.
        """
        columns = columns_of(layout, BOTH)
        selected = [i for i, column in enumerate(columns) if names is None or column.name in names]
        chosen = [attrs.evolve(columns[i], optional=loose or columns[i].optional) for i in selected]
        encoder = RowEncoder(layout.key, self._empty, chosen, 0)
        return encoder, tuple(column.name for column in chosen), _picker(selected)


def content(
    kind: type[ObjectsResponse] | type[ObjectsIndication], items: Sequence[Row | ObjectData]
) -> ObjectsResponse | ObjectsIndication:
    """Rows and ordinary objects as the content of a message."""
    rows: dict[RowEncoder, list[bytes]] = {}
    objects = []
    for item in items:
        if isinstance(item, tuple):
            rows.setdefault(item[0], []).append(item[1])
        else:
            objects.append(item)
    return kind(objects, [encoder.block(found) for encoder, found in rows.items()])


def _picker(positions: Sequence[int]) -> Picker:
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda raw: tuple(raw[position] for position in positions)


class RowObjectWriter:
    """Writes the objects of one agent as rows, by the functions of `ObjectWriter`; what does not fit as an object."""

    def __init__(self, rows: RowWriter) -> None:
        self._rows = rows

    def whole(self, obj: ManagedObject) -> Row | ObjectData:
        """An object of the store with all of its values."""
        try:
            return self._rows.whole(obj)
        except EncodeError:
            return object_data(obj, obj._qmf_values())

    def part(self, obj: ManagedObject, groups: int, raw: RawValues) -> Row | ObjectData:
        """An object of the store with some values that were read before."""
        try:
            return self._rows.part(obj, groups, raw)
        except EncodeError:
            return object_data(obj, values_by_name(object_state.layout(obj), groups, raw))

    def values(self, layout: ClassLayout, data: ObjectData, names: frozenset[str]) -> Row | ObjectData:
        """Any object that is not deleted; `names` are the wire names that its values may have."""
        try:
            return self._rows.data(layout, data, names)
        except EncodeError:
            return data

    def data(self, data: ObjectData) -> ObjectData:
        """Any object, as an ordinary one."""
        return data

    def content(self, kind: type[ObjectsResponse] | type[ObjectsIndication], items: Sequence[object]) -> Message:
        """Items as the content of a message, and its body.

        Raises:
            EncodeError: an ordinary object cannot be encoded.
        """
        found = content(kind, [item for item in items if isinstance(item, tuple | ObjectData)])
        blocks = [encode_block(block) for block in found.blocks]
        return kind(()), list_body([*blocks, *map(encode_object, found.objects)])
