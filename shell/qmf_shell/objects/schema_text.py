"""Short descriptions of parts of a schema, for menus and the toolbar; whole schemas as maps and lists, for programs."""

from __future__ import annotations

from qmf.schema import Argument, ClassSchema, Direction, EventSchema, Method, Property, Statistic, format_value
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


def schema_tree(schema: ClassSchema | EventSchema) -> dict[str, object]:
    """A class or event as maps and lists, without values that are not set."""
    front: dict[str, object] = {
        "package": schema.package,
        "class": schema.name,
        "kind": "object" if isinstance(schema, ClassSchema) else "event",
        "hash": str(schema.hash) if schema.hash else None,
        "desc": schema.desc,
    }
    if isinstance(schema, EventSchema):
        front["severity"] = schema.severity.schema_name if schema.severity is not None else None
        front["arguments"] = [_element(item) for item in schema.arguments]
    else:
        front["properties"] = [_element(item) for item in schema.properties]
        front["statistics"] = [_element(item) for item in schema.statistics]
        front["methods"] = [
            _without_unset(
                {"name": item.name, "desc": item.desc, "arguments": [_element(one) for one in item.arguments]}
            )
            for item in schema.methods
        ]
    return _without_unset(front)


def _element(item: Property | Statistic | Argument) -> dict[str, object]:
    tree: dict[str, object] = {"name": item.name, "type": item.type.name}
    if isinstance(item, Property):
        tree |= {"access": item.access.value, "index": item.index or None, "optional": item.optional or None}
        tree["parent"] = item.parent_ref or None
    if isinstance(item, Argument):
        tree |= {"direction": DIRECTIONS[item.direction], "default": item.default}
    tree |= {"unit": item.unit, "min": item.minimum, "max": item.maximum, "max_length": item.max_len}
    tree |= {"references": str(item.references) if item.references else None, "desc": item.desc}
    return _without_unset(tree)


def _without_unset(tree: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in tree.items() if value is not None}
