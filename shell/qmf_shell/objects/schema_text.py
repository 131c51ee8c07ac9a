"""Short descriptions of parts of a schema, for menus and the toolbar."""

from __future__ import annotations

from qmf.schema import Argument, Direction, Method, Property, format_value
from qmf.schema.documentation import bounds
from qmf.views.fields import ObjectField
from qmf.views.text import plural

#: Directions of arguments as shown to the user.
DIRECTIONS = {Direction.IN: "in", Direction.OUT: "out", Direction.IN_OUT: "in/out"}


def about_argument(item: Argument | Property) -> str:
    """Type, direction, unit, bounds, default and description: ``uint32, in/out, 1 to 64, default 5: Any number``."""
    parts = [f"reference to {item.references}" if item.references else item.type.name]
    if isinstance(item, Argument) and item.direction is not Direction.IN:
        parts.append(DIRECTIONS[item.direction])
    if item.unit:
        parts.append(item.unit)
    parts += bounds(item)
    if isinstance(item, Argument) and item.default is not None:
        parts.append(f"default {format_value(item.default)}")
    return ", ".join(parts) + (f": {item.desc}" if item.desc else "")


def about_field(field: ObjectField) -> str:
    """Type, unit and description of a field."""
    kind = field.type if field.member is None else field.member.type
    return ", ".join(filter(None, (kind.name, field.unit))) + (f": {field.desc}" if field.desc else "")


def about_method(method: Method) -> str:
    """The description of a method, or its number of arguments."""
    return method.desc or plural(len(method.inputs), "argument")
