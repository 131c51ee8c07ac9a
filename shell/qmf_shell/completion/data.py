"""What completion knows at one moment: names from the latest snapshot, short ids, commands. Never uses the network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from qmf.schema import Access, Argument, ClassSchema, Kind, Method, Property
from qmf.views.fields import ObjectField, fields_of
from qmf_shell.completion.kinds import ArgumentNames
from qmf_shell.parsing.method_arguments import find_method
from qmf_shell.parsing.registry import Registry
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameSnapshot
from qmf_shell.session.object_names import MARK, names_class, names_of
from qmf_shell.session.short_ids import ShortIds
from qmf_shell.settings import SETTINGS, Setting


@attrs.frozen
class CompletionData:
    """The data that names come from.

    Attributes:
        snapshot: classes and objects.
        ids: short ids.
        registry: commands.
        aliases: words, each with the text that it stands for.
        contexts: names of contexts, each with the URLs of its brokers.
    """

    snapshot: NameSnapshot
    ids: ShortIds
    registry: Registry[Context]
    aliases: Sequence[tuple[str, str]] = ()
    contexts: Sequence[tuple[str, Sequence[str]]] = ()


def classes_of(data: CompletionData, target: str) -> list[ClassSchema]:
    """The class that `target` names; or else the classes of every object that it may name."""
    first = target.replace(",", "-").partition("-")[0]
    digits = target if target.isdigit() else first
    entry = data.ids.entry(int(digits)) if digits.isascii() and digits.isdigit() else None
    if entry is not None:
        keys = [entry.identity.class_key]
    else:
        keys = [key for key in data.snapshot.schemas if key.kind is Kind.DATA and names_class(target, key)]
        if not keys:
            marked = MARK + target.lower()
            keys = [
                identity.class_key
                for identity, search in zip(data.snapshot.objects, data.snapshot.searches, strict=True)
                if (marked in search or ":" in target) and target in names_of(identity)
            ]
    schemas = {id(schema): schema for key in keys if isinstance(schema := data.snapshot.schemas.get(key), ClassSchema)}
    return list(schemas.values())


def method_of(data: CompletionData, target: str, method: str) -> Method | None:
    """The method that a call on `target` names."""
    for schema in classes_of(data, target):
        found = find_method(schema.methods, method)
        if found is not None:
            return found
    return None


def target_fields(data: CompletionData, target: str) -> Iterable[ObjectField]:
    """The fields of the classes of `target`, each name once."""
    return fields_of(*classes_of(data, target)).values()


def settable_properties(data: CompletionData, target: str) -> list[Property]:
    """The read-write properties of the classes of `target`."""
    return [item for schema in classes_of(data, target) for item in schema.properties if item.access is Access.RW]


def argument_of(data: CompletionData, target: str, method: str, name: str) -> tuple[Method, Argument] | None:
    """The input of a method with this name, and the method."""
    found = method_of(data, target, method)
    return next(((found, item) for item in found.inputs if item.name == name), None) if found else None


def field_of(data: CompletionData, target: str, name: str) -> ObjectField | None:
    """The field of the classes of `target` with this name, in any case of letters."""
    return next((item for item in target_fields(data, target) if item.name.lower() == name.lower()), None)


def settable_property(data: CompletionData, target: str, name: str) -> Property | None:
    """The read-write property of the classes of `target` with this name."""
    return next((item for item in settable_properties(data, target) if item.name == name), None)


def setting_called(name: str) -> Setting | None:
    """The setting with this name."""
    return next((item for item in SETTINGS if item.name == name.lower()), None)


def free_inputs(method: Method, kind: ArgumentNames) -> list[Argument]:
    """The inputs that have no value yet, the next one first."""
    return [item for item in method.inputs if item.name not in kind.used][kind.position :]
