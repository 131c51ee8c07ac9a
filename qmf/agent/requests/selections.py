"""Selections of objects by queries and subscriptions: read from the request, and applied to values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, ClassLayout
from qmf.agent.model.managed_object import ManagedObject, layout_of
from qmf.agent.model.value_readers import make_reader_of
from qmf.agent.objects.object_sources import ObjectSelection, ObjectSources, expand_selection
from qmf.agent.request_errors import RequestRefused
from qmf.errors import ProtocolError
from qmf.protocol import ErrorCode, ObjectData, Predicate, QueryRequest, SubscribeRequest, TextSearch, compile_predicate
from qmf.schema import ClassKey

#: Whether values match a predicate.
Matcher = Callable[[Mapping[str, object]], bool]


def compile_where(where: Predicate) -> Matcher:
    """The function of a predicate.

    Raises:
        RequestRefused: the predicate is invalid.
    """
    try:
        return compile_predicate(where)
    except ProtocolError as error:
        raise invalid_query(f"invalid predicate: {error}") from error


def selection_of(request: QueryRequest | SubscribeRequest, what: str) -> ObjectSelection:
    """The objects of a query or subscription; `what`: the subject of the request, for errors.

    Raises:
        RequestRefused: the request names neither class nor object.
    """
    if request.object_id is None and request.class_key is None:
        raise invalid_query(f"a query for {what} must have an '_object_id' or a '_schema_id'")
    order, text = (request.order, request.text) if isinstance(request, QueryRequest) else ((), "")
    return ObjectSelection(
        class_key=request.class_key,
        object_id=request.object_id,
        where=request.where,
        text=text,
        select=request.select,
        order=order,
    )


def class_of_selection(sources: ObjectSources, selection: ObjectSelection) -> ClassKey | None:
    """The class of the selected objects, or None if it is unknown."""
    for obj in sources.stored_objects(selection) if selection.object_id is not None else ():
        return object_state.layout(obj).key
    for provided in sources.providers(selection):
        return provided.layout.key
    return selection.class_key if selection.object_id is None else None


def with_selected_values(data: ObjectData, layout: ClassLayout, selection: ObjectSelection) -> ObjectData:
    """An object with its selected values only."""
    if not selection.select:
        return data
    names = expand_selection(layout, selection.select)
    return attrs.evolve(data, values={name: value for name, value in data.values.items() if name in names})


def invalid_query(text: str) -> RequestRefused:
    """The error for an invalid query."""
    return RequestRefused(ErrorCode.UNKNOWN_OBJECT, text)


#: Whether an object contains the text.
_Test = Callable[[ManagedObject], bool]


class ObjectSearch:
    """Searches for one text in objects of any classes. Belongs to the event loop's thread.

    Only the values are read that can contain it, and looked at one by one only if it stands in the representation of
    all together: for one of a hundred thousand objects, that is a sixth of the time.
    """

    def __init__(self, text: str) -> None:
        self._search = TextSearch(text)
        self._tests: dict[type[ManagedObject], _Test] = {}

    def is_in(self, obj: ManagedObject) -> bool:
        """True if the name or a value of a stored object contains the text."""
        test = self._tests.get(type(obj))
        if test is None:
            test = self._tests[type(obj)] = self._make_test(layout_of(type(obj)))
        return test(obj)

    def is_in_provided(self, data: ObjectData) -> bool:
        """The same of an object of a provider."""
        return self._search.is_in(data)

    def _make_test(self, layout: ClassLayout) -> _Test:
        search, text = self._search, self._search.text
        fields = layout.fields(BOTH)
        wanted = [name for field in fields for name, kind in field.wire if search.can_be_in(kind)]
        _, read = make_reader_of(layout, wanted)
        plain = search.is_plain

        def test(obj: ManagedObject) -> bool:
            if text in object_state.object_name(obj).lower():
                return True
            raw = read(obj)
            if plain and text not in repr(raw).lower():
                return False
            return any(map(search.is_in_value, raw))

        return test
