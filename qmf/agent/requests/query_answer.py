"""The items of an answer to a query: each matching object becomes an ordinary item or a row.

The predicate is applied to the same values that are sent. Belongs to the event loop's thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, ClassLayout
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.model.object_values import read_raw_values, values_by_name
from qmf.agent.model.value_readers import RawValues
from qmf.agent.objects.object_sources import ObjectSelection, expand_selection
from qmf.agent.objects.object_store import object_data
from qmf.agent.publishing.object_writer import Item, Message, ObjectWriter
from qmf.agent.publishing.row_writer import Row, RowWriter, content
from qmf.agent.requests.selections import Matcher, ObjectSearch
from qmf.codec.errors import EncodeError
from qmf.protocol import ObjectData, ObjectsResponse


class QueryAnswer:
    """Makes the items of one answer."""

    def __init__(
        self,
        writer: ObjectWriter,
        rows: RowWriter | None,
        selection: ObjectSelection,
        matches: Matcher,
        *,
        ids_only: bool,
    ) -> None:
        """Set up.

        Args:
            writer: of the agent.
            rows: of the agent, if the console reads rows.
            selection: the queried objects.
            matches: the predicate of the query.
            ids_only: leave the values out.
        """
        self._writer = writer
        self._rows = None if ids_only else rows
        self._selection = selection
        self._matches = matches
        self._ids_only = ids_only
        self._names: dict[ClassLayout, frozenset[str] | None] = {}
        self._search = ObjectSearch(selection.text) if selection.text else None
        #: Makes the rows, if every object is sent with all of its values.
        every = not selection.where and not selection.select
        self._whole = self._rows.whole if self._rows is not None and every else None

    def stored_item(self, obj: ManagedObject) -> Item | Row | None:
        """The item of a stored object, or None if it does not match.

        Raises:
            EncodeError: it cannot be encoded.
        """
        if self._search is not None and not self._search.is_in(obj):
            return None
        if self._whole is not None:
            try:
                return self._whole(obj)
            except EncodeError:
                return object_data(obj, obj._qmf_values())
        layout = object_state.layout(obj)
        raw: RawValues | None = None
        if self._selection.where:
            raw = read_raw_values(obj, BOTH)
            if not self._matches({name: value for (name, _), value in zip(layout.wire[BOTH], raw, strict=True)}):
                return None
        if self._ids_only:
            return self._writer.name_only(obj)
        names = self._selected_names(layout)
        if raw is None and names is None:
            return self._writer.whole(obj)
        return self._with_values(obj, read_raw_values(obj, BOTH) if raw is None else raw, names)

    def _with_values(self, obj: ManagedObject, raw: RawValues, names: frozenset[str] | None) -> Item | Row:
        if self._rows is not None:
            try:
                return self._rows.read(obj, raw, names)
            except EncodeError:
                return object_data(obj, _only(values_by_name(object_state.layout(obj), BOTH, raw), names))
        if names is None:
            return self._writer.part(obj, BOTH, raw)
        return self._writer.data(object_data(obj, _only(values_by_name(object_state.layout(obj), BOTH, raw), names)))

    def provided_item(self, layout: ClassLayout, data: ObjectData) -> Item | Row | None:
        """The item of a provided object, or None if it does not match.

        Raises:
            EncodeError: it cannot be encoded.
        """
        if self._selection.where and not self._matches(data.values):
            return None
        if self._search is not None and not self._search.is_in_provided(data):
            return None
        names = self._selected_names(layout)
        if self._rows is not None:
            try:
                return self._rows.data(layout, data, names)
            except EncodeError:
                return attrs.evolve(data, values=_only(data.values, names))
        values: Mapping[str, object] = {} if self._ids_only else _only(data.values, names)
        return self._writer.data(attrs.evolve(data, values=values))

    def content(self, items: Sequence[Any]) -> Message:
        """Items as the content of a message, and its body if that is encoded."""
        if self._rows is not None:
            return content(ObjectsResponse, items), None
        return self._writer.content(ObjectsResponse, items)

    def _selected_names(self, layout: ClassLayout) -> frozenset[str] | None:
        if not self._selection.select:
            return None
        if layout not in self._names:
            self._names[layout] = expand_selection(layout, self._selection.select) & {
                name for name, _ in layout.wire[BOTH]
            }
        return self._names[layout]


def _only(values: Mapping[str, object], names: frozenset[str] | None) -> Mapping[str, object]:
    return values if names is None else {name: value for name, value in values.items() if name in names}
