"""Objects of one agent as rows, for consoles that read them (docs/protocol.md).

The rows of a message with the same columns form a block. An object that does not fit a row is an ordinary object in the
same message. Belongs to the event loop's thread, like `qmf.agent.publishing.object_writer`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from operator import itemgetter

import attrs

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, PROPERTIES, ClassLayout
from qmf.agent.layout.object_state import LEAD, TIMES_OF_OBJ
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.object_values import read_raw_values
from qmf.agent.model.value_readers import RawValues, statistics_source
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.publishing.object_writer import columns_of
from qmf.protocol import ROW_FORM, ObjectData, ObjectsIndication, ObjectsResponse
from qmf.protocol.objects import Lead, RowEncoder

#: Selections of values whose columns are remembered: consoles repeat their queries.
_MAX_SELECTIONS = 100


class RowWriter:
    """Writes the rows of one agent."""

    def __init__(self, store: ManagedObjectStore) -> None:
        self._tick = store.tick
        self._empty = store.object_id("")
        self._whole: dict[type[ManagedObject], RowSelection] = {}
        self._selections: OrderedDict[tuple[ClassLayout, frozenset[str] | None, bool], RowSelection] = OrderedDict()

    def whole(self, obj: ManagedObject) -> Row:
        """An object of the store with all of its values.

        Raises:
            EncodeError: it does not fit a row.
        """
        selection = self._whole.get(type(obj))
        if selection is None:
            selection = self._whole[type(obj)] = self._make(object_state.layout(obj), None, loose=False)
        lead = object_state.kept_encoding(obj, LEAD, self._tick)
        if lead is None:
            lead = selection.encoder.lead(object_state.object_name(obj), read_raw_values(obj, PROPERTIES))
            object_state.keep_encoding(obj, LEAD, lead)
        assert selection.whole is not None
        return selection, selection.whole(obj, lead)

    def read(self, obj: ManagedObject, raw: RawValues, names: frozenset[str] | None) -> Row:
        """An object of the store with values that were read just now.

        Args:
            obj: the object.
            raw: all of its values.
            names: wire names of the selected values, or None for all.

        Raises:
            EncodeError: it does not fit a row.
        """
        selection = self._selection(object_state.layout(obj), names)
        values = raw if selection.pick is None else selection.pick(raw)
        encoder, leading = selection.encoder, selection.leading
        lead = encoder.lead(object_state.object_name(obj), values[:leading])
        return selection, encoder.row(*object_state.times(obj), 0, lead, values[leading:])

    def data(self, layout: ClassLayout, data: ObjectData, names: frozenset[str] | None) -> Row:
        """Any object of the agent that is not deleted; arguments as of `read`.

        Raises:
            EncodeError: it does not fit a row.
        """
        assert data.object_id is not None
        selection = self._selection(layout, names, loose=True)
        lead = selection.encoder.lead(data.object_id.object_name, ())
        values = list(map(data.values.get, selection.columns))
        return selection, selection.encoder.row(data.update_ts, data.create_ts, 0, lead, values)

    def _selection(self, layout: ClassLayout, names: frozenset[str] | None, *, loose: bool = False) -> RowSelection:
        key = (layout, names, loose)
        selection = self._selections.get(key)
        if selection is None:
            selection = self._selections[key] = self._make(layout, names, loose=loose)
            if len(self._selections) > _MAX_SELECTIONS:
                self._selections.popitem(last=False)
        return selection

    def _make(self, layout: ClassLayout, names: frozenset[str] | None, *, loose: bool) -> RowSelection:
        """Make a selection.

        Args:
            layout: of the class.
            names: wire names, or None for all.
            loose: any value may be absent; there is no prepared part.

        Raises:
            EncodeError: there are more columns than rows may have.
        """
        columns = columns_of(layout, BOTH)
        selected = [i for i, column in enumerate(columns) if names is None or column.name in names]
        properties = len(layout.wire[PROPERTIES])
        leading = 0 if loose else sum(i < properties for i in selected)
        chosen = [attrs.evolve(columns[i], optional=loose or columns[i].optional) for i in selected]
        encoder = RowEncoder(layout.key, self._empty, chosen, leading)
        return RowSelection(
            columns=tuple(column.name for column in chosen),
            leading=leading,
            pick=None if names is None else _picker(selected),
            encoder=encoder,
            whole=_whole_row(layout, encoder) if names is None and not loose else None,
        )


@attrs.frozen(kw_only=True, eq=False)
class RowSelection:
    """Rows of one class with the same columns.

    Attributes:
        columns: wire names, in schema order.
        leading: how many of them are in the part that is prepared.
        pick: selects the values of the columns from all values of an object; None if these are all.
        encoder: of the rows.
        whole: makes the row of an object and its lead; None unless all values of the class are in it.
    """

    columns: tuple[str, ...]
    leading: int
    pick: Callable[[RawValues], RawValues] | None
    encoder: RowEncoder
    whole: Callable[[ManagedObject, Lead], bytes] | None


def _whole_row(layout: ClassLayout, encoder: RowEncoder) -> Callable[[ManagedObject, Lead], bytes]:
    """The function that reads the statistics of an object and makes its row in one step."""
    reading = statistics_source(layout)
    times = f"update, create, delete = {TIMES_OF_OBJ}, 0"
    return encoder.row_function(reading._replace(steps=[*reading.steps, times]), "obj, lead")


#: A row with its columns.
Row = tuple[RowSelection, bytes]


def reads_rows(form: int) -> bool:
    """Whether a console with this form of rows gets them."""
    return form >= ROW_FORM


def content(
    kind: type[ObjectsResponse] | type[ObjectsIndication], items: Sequence[Row | ObjectData]
) -> ObjectsResponse | ObjectsIndication:
    """Rows and ordinary objects as the content of a message."""
    rows: dict[RowSelection, list[bytes]] = {}
    objects = []
    for item in items:
        if isinstance(item, tuple):
            rows.setdefault(item[0], []).append(item[1])
        else:
            objects.append(item)
    return kind(objects, [selection.encoder.block(found) for selection, found in rows.items()])


def _picker(positions: Sequence[int]) -> Callable[[RawValues], RawValues]:
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda raw: tuple(raw[position] for position in positions)
