"""Parts of a schema in a few words, for menus, the toolbar and questions; a whole one as a tree for programs.

Pure functions.
"""

from __future__ import annotations

from qmf.schema import Argument, ClassSchema, Direction, EventSchema, Method, Property, Statistic
from qmf_shell.objects.filtering import ObjectField
from qmf_shell.parsing.method_arguments import value_text
from qmf_shell.text import plural

_DIRECTION = {Direction.IN: "in", Direction.OUT: "out", Direction.IN_OUT: "in/out"}


def about_argument(item: Argument | Property) -> str:
    """Type, direction, unit, bounds, default and meaning: ``uint32, in/out, 1 to 64, default 5: Any number``."""
    parts = [f"reference to {item.references}" if item.references else item.type.name]
    if isinstance(item, Argument) and item.direction is not Direction.IN:
        parts.append(_DIRECTION[item.direction])
    if item.unit:
        parts.append(item.unit)
    parts += _bounds(item)
    if isinstance(item, Argument) and item.default is not None:
        parts.append(f"default {value_text(item.default)}")
    return ", ".join(parts) + (f": {item.desc}" if item.desc else "")


def _bounds(item: Argument | Property) -> list[str]:
    if item.minimum is not None and item.maximum is not None:
        return [f"{item.minimum} to {item.maximum}"]
    if item.minimum is not None:
        return [f"at least {item.minimum}"]
    if item.maximum is not None:
        return [f"at most {item.maximum}"]
    return []


def about_field(field: ObjectField) -> str:
    """The same of a value."""
    parts = [field.type.name if field.type else "", field.unit or ""]
    return ", ".join(part for part in parts if part) + (f": {field.desc}" if field.desc else "")


def about_method(method: Method) -> str:
    """What a method does."""
    return method.desc or plural(len(method.inputs), "argument")


def schema_tree(schema: ClassSchema | EventSchema) -> dict[str, object]:
    """Everything of a class or event as maps and lists; what is not set is left out."""
    front: dict[str, object] = {
        "package": schema.package,
        "class": schema.name,
        "kind": "object" if isinstance(schema, ClassSchema) else "event",
        "hash": str(schema.hash) if schema.hash else None,
        "desc": schema.desc,
    }
    if isinstance(schema, EventSchema):
        front["severity"] = schema.severity.word if schema.severity is not None else None
        front["arguments"] = [_part(item) for item in schema.arguments]
    else:
        front["properties"] = [_part(item) for item in schema.properties]
        front["statistics"] = [_part(item) for item in schema.statistics]
        front["methods"] = [
            _kept({"name": item.name, "desc": item.desc, "arguments": [_part(one) for one in item.arguments]})
            for item in schema.methods
        ]
    return _kept(front)


def _part(item: Property | Statistic | Argument) -> dict[str, object]:
    tree: dict[str, object] = {"name": item.name, "type": item.type.name}
    if isinstance(item, Property):
        tree |= {"access": item.access.value, "index": item.index or None, "optional": item.optional or None}
        tree["parent"] = item.parent_ref or None
    if isinstance(item, Argument):
        tree |= {"direction": _DIRECTION[item.direction], "default": item.default}
    tree |= {"unit": item.unit, "min": item.minimum, "max": item.maximum, "max_length": item.max_len}
    tree |= {"references": str(item.references) if item.references else None, "desc": item.desc}
    return _kept(tree)


def _kept(tree: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in tree.items() if value is not None}
