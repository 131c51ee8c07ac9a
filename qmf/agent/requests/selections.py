"""Selections of objects by queries and subscriptions: read from the request, and applied to values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import ClassLayout
from qmf.agent.objects.object_sources import ObjectSelection, ObjectSources, expand_selection
from qmf.agent.request_errors import RequestRefused
from qmf.errors import ProtocolError
from qmf.protocol import ErrorCode, ObjectData, Predicate, QueryRequest, SubscribeRequest, compile_predicate
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
    """The objects of a query or subscription.

    Args:
        request: the request.
        what: the subject of the request, for errors.

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
