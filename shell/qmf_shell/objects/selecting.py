"""Selects several objects: by ranges of short ids, by names, and those of a class that match a condition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import attrs

from qmf._natural_order import natural_key
from qmf.console.aio import OrderKey
from qmf.errors import NotFoundError, QmfError
from qmf.schema import ClassKey, ClassSchema
from qmf.views.conditions import ObjectFilter
from qmf.views.fields import COMMON_FIELDS, ObjectField, sort_by
from qmf.views.objects import ObjectView, field_value
from qmf_shell.objects.columns import ALL_COLUMNS
from qmf_shell.objects.fields import find_field
from qmf_shell.objects.filtering import object_filter
from qmf_shell.objects.lookup import find_object, gone_error
from qmf_shell.parsing.selection import ParsedSelection
from qmf_shell.session.backend import ClassName, ObjectLimit
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name, class_names
from qmf_shell.session.own_objects import SESSION
from qmf_shell.session.short_ids import NumberedObject

T = TypeVar("T")

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
#: From so many objects on, their whole classes are requested instead of single objects.
WHOLE_CLASS = 8

#: The field that agents order by the names of objects.
INDEX = COMMON_FIELDS["index"]


@attrs.frozen
class FirstPage:
    """The first objects of a list.

    Attributes:
        size: how many.
        applies: says of a class whether its first objects are wanted before the others.
    """

    size: int
    applies: Callable[[ClassName], bool]


@attrs.frozen
class SelectedObjects:
    """Objects of one class.

    Attributes:
        name: package and name of the class.
        schemas: its versions.
        objects: those selected, in order: all, or at least as many as are shown at first.
        limit: how many of them to show, or None.
        others: how many more objects there are; None if that is not known.
        sure: all of these are selected as well; else perhaps fewer.
        rest: gives the objects behind these, in order, if all are to be shown; else None.
    """

    name: ClassName
    schemas: Sequence[ClassSchema]
    objects: Sequence[ObjectView]
    limit: int | None
    others: int | None = 0
    sure: bool = True
    rest: Callable[[], Sequence[ObjectView]] | None = None

    @property
    def shown(self) -> Sequence[ObjectView]:
        """The objects within the limit."""
        return self.objects if self.limit is None else self.objects[: self.limit]


def known_schemas(context: Context, keys: Sequence[ClassKey]) -> list[ClassSchema]:
    """The versions of a class whose schemas can be fetched."""
    found = []
    for key in keys:
        try:
            schema = context.backend.schema(key)
        except QmfError:
            continue  # an agent that sends objects but not their schema; the objects have what is known of it
        if isinstance(schema, ClassSchema):
            found.append(schema)
    return found


def for_each_class(
    keys: Sequence[ClassKey], make: Callable[[ClassName, Sequence[ClassKey]], T]
) -> list[tuple[ClassName, T]]:
    """What `make` returns for the versions of each class, by its name; classes for which it finds something missing are
    left out, unless that is all of them.

    Raises:
        QmfError: it raised another error, or no class has what is wanted.
    """
    found: list[tuple[ClassName, T]] = []
    missing: NotFoundError | None = None
    for name in class_names(keys):
        try:
            found.append((name, make(name, [key for key in keys if (key.package, key.name) == name])))
        except NotFoundError as error:
            missing = missing or error
    if missing is not None and not found:
        raise missing
    return found


def select_objects(
    context: Context, keys: Sequence[ClassKey], selection: ParsedSelection, page: FirstPage | None = None
) -> list[SelectedObjects]:
    """The selected objects of each class among `keys`. Of several classes with the same name, those are left out that
    don't have the values in the selection, unless that is all of them.

    Args:
        selection: which of their objects.
        page: the first objects are wanted before the others, see `SelectedObjects.rest`.

    Raises:
        QmfError: a name or value in the selection is wrong, or the request failed.
    """
    found = for_each_class(keys, lambda name, versions: _select(context, name, versions, selection, page))
    return [selected for _, selected in found]


def classes_with(context: Context, keys: Sequence[ClassKey], values: Sequence[str]) -> list[ClassKey]:
    """Of several classes with the same name, those that have some values.

    Raises:
        QmfError: no class has them all.
    """

    def check_values(_: ClassName, versions: Sequence[ClassKey]) -> Sequence[ClassKey]:
        schemas = known_schemas(context, versions)
        for value in values:
            find_field(schemas, value)
        return versions

    return [key for _, versions in for_each_class(keys, check_values) for key in versions]


@attrs.frozen
class CompiledSelection:
    """A selection whose names and values were checked against the versions of a class.

    Attributes:
        schemas: the versions.
        filter: the condition.
        sort_keys: the fields to sort by, each with whether the largest comes first.
    """

    schemas: Sequence[ClassSchema]
    filter: ObjectFilter
    sort_keys: Sequence[tuple[ObjectField, bool]]

    def schemas_of(self, objects: Sequence[ObjectView]) -> Sequence[ClassSchema]:
        """The versions, as far as schemas or objects show them."""
        return self.schemas or list({id(item.schema): item.schema for item in objects}.values())

    def in_order(self, objects: Sequence[ObjectView], *, by_name: bool = True) -> Sequence[ObjectView]:
        """Objects in the order of the selection; those that are equal by their names, or as they were."""
        found = in_order_of_names(objects) if by_name else objects
        for field, descending in reversed(self.sort_keys):
            found = _sort(found, field, descending)
        return found


def compile_selection(context: Context, keys: Sequence[ClassKey], selection: ParsedSelection) -> CompiledSelection:
    """Check a selection of objects of one class.

    Raises:
        QmfError: a name or value in it is wrong.
    """
    schemas = known_schemas(context, keys)
    chosen = selection.columns or context.columns.names(class_names(keys)[0])
    wanted = object_filter(selection.where, schemas, context.ids, chosen)
    for text in selection.columns:
        if text.lower() not in ALL_COLUMNS:
            find_field(schemas, text)
    sort_keys = [(find_field(schemas, item.name), item.descending) for item in selection.sort_keys]
    return CompiledSelection(schemas, wanted, sort_keys)


def _select(
    context: Context,
    name: ClassName,
    keys: Sequence[ClassKey],
    selection: ParsedSelection,
    page: FirstPage | None,
) -> SelectedObjects:
    compiled = compile_selection(context, keys, selection)
    wanted = compiled.filter
    limit = selection.limit
    count = limit if page is None or limit is not None else page.size if page.applies(name) else None
    order = order_of_agents(compiled.sort_keys)
    if count and order is not None and not selection.ids and name != SESSION:
        first = context.first_objects(name, ObjectLimit(count, order), wanted)
        objects = compiled.in_order(first.objects)
        found = SelectedObjects(name, compiled.schemas_of(objects), objects, limit, first.others, first.sure)
        if limit is not None or first.others == 0:
            return found
        shown = {item.identity.key for item in objects}

        def rest() -> Sequence[ObjectView]:
            everything = context.objects([name], wanted.predicate)
            later = [item for item in everything if item.identity.key not in shown]
            return compiled.in_order(later if wanted.test is None else list(filter(wanted.test, later)))

        return attrs.evolve(found, rest=rest)
    objects = (
        find_objects(context, selection.ids, classes=keys)
        if selection.ids
        else context.objects([name], wanted.predicate)
    )
    if wanted.test is not None:
        objects = [item for item in objects if wanted.test(item)]
    objects = compiled.in_order(objects, by_name=not selection.ids)
    return SelectedObjects(name, compiled.schemas_of(objects), objects, limit)


def order_of_agents(sort_keys: Sequence[tuple[ObjectField, bool]]) -> tuple[OrderKey, ...] | None:
    """The same order for agents; None if they do not have it."""
    order = []
    for field, descending in sort_keys:
        if field.name == INDEX.name:
            order.append(OrderKey(OrderKey.OBJECT_NAME, descending, natural=True, any_case=True))
        elif field.member is not None and (field.is_number or field.is_time or field.type.is_string):
            order.append(OrderKey(field.name, descending, natural=True, any_case=True))
        else:
            return None
    return (*order, OrderKey(OrderKey.OBJECT_NAME, natural=True))


def in_order_of_names(objects: Iterable[ObjectView]) -> list[ObjectView]:
    """By index in natural order; objects with the same index by agent, so that lists are always the same."""
    return sorted(
        objects,
        key=lambda item: (natural_key(item.identity.index), item.identity.key.agent_name, item.identity.key.broker),
    )


def _sort(objects: Sequence[ObjectView], field: ObjectField, descending: bool) -> list[ObjectView]:
    return sort_by(objects, lambda item: field_value(item, field), descending=descending)


def find_objects(context: Context, texts: Sequence[str], *, classes: Sequence[ClassKey] = ()) -> list[ObjectView]:
    """The objects that texts name: short ids, ranges such as ``1004-1010``, or names.

    Raises:
        NotFoundError: no object has this name; no short id in a range is assigned.
        GoneError: an object with a short id no longer exists. In a range, such objects are left out.
        AmbiguousError: several objects have this name.
    """
    within = class_names(classes)
    found: list[ObjectView] = []
    for text in texts:
        match = _RANGE.fullmatch(text)
        entries = _in_range(context, int(match[1]), int(match[2]), within) if match else []
        if entries:
            found += _get_all(context, entries)
        elif match and int(match[1]) <= int(match[2]) and context.ids.entries():
            raise NotFoundError("object with a short id in", text)
        else:
            found.append(find_object(context, text, classes=classes))
    return list({item.identity.key: item for item in found}.values())


def _in_range(context: Context, first: int, last: int, within: Sequence[ClassName]) -> list[NumberedObject]:
    return [
        entry
        for entry in context.ids.entries()
        if first <= entry.number <= last and not entry.deleted and (not within or class_name(entry.identity) in within)
    ]


def _get_all(context: Context, entries: Sequence[NumberedObject]) -> list[ObjectView]:
    """Objects by their short ids, with their current values."""
    found: list[ObjectView] = []
    if len(entries) < WHOLE_CLASS:
        found = [item for entry in entries if (item := context.backend.get(entry.identity)) is not None]
    else:
        wanted = {entry.identity.key: entry.number for entry in entries}
        names = list(dict.fromkeys(class_name(entry.identity) for entry in entries))
        found = [item for item in context.objects(names, everything=True) if item.identity.key in wanted]
        found.sort(key=lambda item: wanted[item.identity.key])
    if not found:
        raise gone_error(context, entries[0])
    return found
