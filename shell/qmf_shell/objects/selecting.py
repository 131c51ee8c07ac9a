"""From what a user typed to several objects: ranges of short ids, names, and selections of a class."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from qmf.errors import NotFoundError, QmfError
from qmf.schema import ClassKey, ClassSchema
from qmf_shell.objects.filtering import ObjectField, compile_filter, field_value, find_field, sorted_by
from qmf_shell.objects.lookup import GoneError, class_names, find_classes, find_object, object_label
from qmf_shell.parsing.selection import Selection
from qmf_shell.session.backend import ClassName, ObjectKey, ObjectRecord
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name
from qmf_shell.session.short_ids import NumberedObject
from qmf_shell.text import natural_key

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
#: From so many objects of a class on, the whole class is asked for at once.
WHOLE = 8


@attrs.frozen
class SelectedObjects:
    """Objects of one class.

    Attributes:
        name: package and name of the class.
        schemas: its versions.
        objects: those chosen, in order, without a limit.
        limit: how many of them to show, or None.
    """

    name: ClassName
    schemas: Sequence[ClassSchema]
    objects: Sequence[ObjectRecord]
    limit: int | None

    @property
    def shown(self) -> Sequence[ObjectRecord]:
        """The objects within the limit."""
        return self.objects if self.limit is None else self.objects[: self.limit]


def known_schemas(context: Context, keys: Sequence[ClassKey]) -> list[ClassSchema]:
    """The versions of a class that can be had."""
    found = []
    for key in keys:
        try:
            schema = context.backend.schema(key)
        except QmfError:
            continue  # an agent that tells its objects but not their class; the objects bring what there is
        if isinstance(schema, ClassSchema):
            found.append(schema)
    return found


def select_objects(context: Context, keys: Sequence[ClassKey], selection: Selection) -> list[SelectedObjects]:
    """The selected objects of each class among `keys`.

    Raises:
        QmfError: a name or value in the selection is wrong, or the question failed.
    """
    return [
        _choose(context, name, [key for key in keys if (key.package, key.name) == name], selection)
        for name in class_names(keys)
    ]


def _choose(context: Context, name: ClassName, keys: Sequence[ClassKey], selection: Selection) -> SelectedObjects:
    schemas = known_schemas(context, keys)

    def resolve(text: str, field: ObjectField) -> ObjectKey:
        return find_object(context, text, classes=_referred(context, schemas, field)).identity.key

    chosen = compile_filter(selection.where, schemas, resolve)
    order = [(find_field(schemas, item.name), item.down) for item in selection.order]
    if selection.ids:
        objects: Sequence[ObjectRecord] = find_objects(context, selection.ids, classes=keys)
    else:
        objects = context.objects([name], chosen.predicate)
        objects = sorted(objects, key=_order)
    if chosen.test is not None:
        objects = [item for item in objects if chosen.test(item)]
    for field, down in reversed(order):
        objects = _sorted(objects, field, down)
    schemas = schemas or list({id(item.schema): item.schema for item in objects}.values())
    return SelectedObjects(name, schemas, objects, selection.limit)


def _order(item: ObjectRecord) -> tuple[object, str, str]:
    """By index as people count; of the same index, by agent, so that lists come out the same each time."""
    return natural_key(item.identity.index), item.identity.key.agent, item.identity.key.broker


def _sorted(objects: Sequence[ObjectRecord], field: ObjectField, down: bool) -> list[ObjectRecord]:
    return sorted_by(objects, lambda item: field_value(item, field), down=down)


def _referred(context: Context, schemas: Sequence[ClassSchema], field: ObjectField) -> list[ClassKey]:
    """The classes that a reference may name, where the schema tells."""
    for schema in schemas:
        item = schema.property(field.name)
        if item is not None and item.references is not None:
            package = item.references.package or schema.package
            try:
                return find_classes(context.classes(), f"{package}:{item.references.name}")
            except NotFoundError:
                return []
    return []


def find_objects(context: Context, texts: Sequence[str], *, classes: Sequence[ClassKey] = ()) -> list[ObjectRecord]:
    """The objects that texts name, each a short id, a range such as ``1004-1010``, or a name.

    Raises:
        NotFoundError: nothing is called so; no id in a range was given.
        GoneError: an object with a short id is gone. Of a range, those that are gone are left out.
        AmbiguousError: a name has several objects.
    """
    within = class_names(classes)
    found: list[ObjectRecord] = []
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


def _get_all(context: Context, entries: Sequence[NumberedObject]) -> list[ObjectRecord]:
    """Objects by their entries, as they are now."""
    found: list[ObjectRecord] = []
    if len(entries) < WHOLE:
        found = [item for entry in entries if (item := context.backend.get(entry.identity)) is not None]
    else:
        wanted = {entry.identity.key: entry.number for entry in entries}
        names = list(dict.fromkeys(class_name(entry.identity) for entry in entries))
        found = [item for item in context.objects(names) if item.identity.key in wanted]
        found.sort(key=lambda item: wanted[item.identity.key])
    if not found:
        raise GoneError(entries[0].number, object_label(entries[0].identity))
    return found
