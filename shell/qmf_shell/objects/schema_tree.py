"""A whole schema as maps and lists, for programs."""

from __future__ import annotations

from qmf.schema import Argument, ClassSchema, EventSchema, Property, Statistic
from qmf_shell.objects.schema_text import DIRECTIONS


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
