"""`setprop`: sets read-write properties of an object."""

from __future__ import annotations

from qmf.errors import CallerError, NotFoundError
from qmf.schema import Access, Property
from qmf.views.arguments import ArgumentError, checked_value
from qmf.views.conditions.words import Word
from qmf.views.objects import ObjectView
from qmf.views.text import clean, listing, plural
from qmf_shell.objects.fields import WrongWordError, kind_of_name
from qmf_shell.objects.lookup import find_object, object_label
from qmf_shell.parsing.command import BoundArguments, Command, Parameter, ParameterKind
from qmf_shell.parsing.method_arguments import argument_name
from qmf_shell.results.result import Notice, NoticeLevel
from qmf_shell.session.context import Context


def run(context: Context, args: BoundArguments) -> Notice:
    """Set the properties."""
    target = find_object(context, args.texts[0])
    values: dict[str, object] = {}
    for word in args.words[1:]:
        name, value = _value(context, target, word)
        if name in values:
            raise ArgumentError(f"property {name!r} is given twice")
        values[name] = value
    context.backend.set_properties(target, values)
    number = context.ids.assign(target.identity, target.created)
    return Notice(
        f"{plural(len(values), 'property', 'properties')} of {number} {object_label(target.identity)} set",
        NoticeLevel.GOOD,
    )


def _value(context: Context, target: ObjectView, word: Word) -> tuple[str, object]:
    name = argument_name(word)
    if name is None:
        raise ArgumentError(f"{clean(word.text)!r} is not NAME=VALUE")
    text = word.text[len(name) + 1 :]
    item = target.schema.property(name)
    if item is None:
        raise _no_property(target, name)
    if item.access is not Access.RW:
        reason = {Access.RC: "can only be set when the object is created", Access.RO: "is read-only"}[item.access]
        raise ArgumentError(f"property {name!r} of {clean(target.schema.name)} {reason}")
    return name, _convert(context, target, item, text)


def _no_property(target: ObjectView, name: str) -> CallerError:
    schema, writable = target.schema, [one.name for one in target.schema.properties if one.access is Access.RW]
    owner = clean(schema.name)
    found = kind_of_name(schema, name)
    if found is not None and found[1] == "property":
        return NotFoundError(f"property of {owner}", name, [found[0]])
    settable = f"it has {listing(map(clean, writable), 'and')}" if writable else "it has none"
    if found is not None:
        return WrongWordError(f"{clean(found[0])} is a {found[1]} of {owner}, not a property to set; {settable}")
    error = NotFoundError(f"property of {owner}", name, writable)
    return error if error.near else WrongWordError(f"{error} to set; {settable}")


def _convert(context: Context, target: ObjectView, item: Property, text: str) -> object:
    if item.type.name == "objId":
        return find_object(context, text).identity.key
    return checked_value(item, text, f"property {item.name!r} of {target.schema.name}")


SETPROP = Command(
    name="setprop",
    usage=("setprop ID NAME=VALUE...",),
    summary="Set read-write properties of an object",
    help=(
        "All of them are set, or none. `schema CLASS` shows which properties are ReadWrite. Only agents of this "
        "project support it; others have methods instead.",
    ),
    examples=(("setprop filesystem:/ threshold=80", "one property"),),
    parameters=(
        Parameter("ID", ParameterKind.OBJECT, "short id, name or index", required=True),
        Parameter("NAME=VALUE", ParameterKind.SETTABLE, "a property and its new value", required=True, repeated=True),
    ),
    handler=run,
)
