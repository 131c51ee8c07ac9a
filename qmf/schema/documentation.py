"""Docstrings of generated classes, composed from the constants of their schema module.

Generated code holds each description once, in the schema module. The runtime bases give the classes their docstrings
from there, so that `help()` shows descriptions, types, units and bounds. Docstrings of attributes and events are
composed when they are read. A method is a plain function, which gets its docstring when its class is created.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from qmf.schema.model import Argument, EventSchema, Method, Property, Statistic

Field = Property | Statistic | Argument


def document(cls: type, keyword: str = "") -> None:
    """Give a generated class and its methods docstrings; does nothing for a class without a schema of its own.

    Args:
        cls: the class, just made.
        keyword: description of the keyword-only parameter that all methods have besides those of the schema, if any.
    """
    namespace = vars(cls)
    schema = namespace.get("_qmf_schema_")
    if schema is None or namespace.get("__doc__") is not None:
        return
    if isinstance(schema, EventSchema):
        cls.__doc__ = _EventDocstring()  # type: ignore[assignment]  # `type.__doc__` calls its `__get__`
        return
    cls.__doc__ = _summary(schema.desc, f"Class {schema.name} of package {schema.package}")
    for method in schema.methods:
        function = namespace.get(f"{method.name}_") or namespace.get(method.name)
        if function is not None and function.__doc__ is None:
            function.__doc__ = method_docstring(method, function, keyword)


class _EventDocstring:
    """The `__doc__` of an event class, which lists the arguments."""

    def __get__(self, instance: object, owner: Any) -> str:
        return event_docstring(owner._qmf_schema_, owner)


class FieldDocstring:
    """The `__doc__` of a descriptor class: on the class its own docstring, on a descriptor that of its field.

    Args:
        own: docstring of the class. Its instances have `item`, the property or statistic that they stand for, or None.
    """

    def __init__(self, own: str | None) -> None:
        self._own = own

    def __get__(self, instance: Any, owner: type) -> str | None:
        item = None if instance is None else instance.item
        return self._own if item is None else field_text(item)

    def __set__(self, instance: object, value: object) -> None:
        """Ignore it: `property` sets the docstring of its getter."""


def event_docstring(schema: EventSchema, cls: type) -> str:
    """Docstring of an event class."""
    severity = [] if schema.severity is None else [f"Severity: {schema.severity.schema_name}."]
    names = (f"{item.name}_" if hasattr(cls, f"{item.name}_") else item.name for item in schema.arguments)
    fields = _section("Attributes", map(_entry, names, schema.arguments))
    return "\n\n".join([_summary(schema.desc, f"Event {schema.name} of package {schema.package}"), *severity, *fields])


def method_docstring(method: Method, function: Any, keyword: str = "") -> str:
    """Docstring of a method, whose inputs are the first parameters of `function` after `self`; see `document`."""
    names = function.__code__.co_varnames[1:]
    others = [f"    {name}: {keyword}." for name in function.__kwdefaults__ or ()]
    sections = _section("Args", [*map(_entry, names, method.inputs), *others])
    sections += _section("Returns", (_entry(item.name, item) for item in method.outputs))
    return "\n\n".join([_summary(method.desc, f"Method {method.name}"), *sections])


def field_text(item: Field) -> str:
    """Type, bounds and description of a property, statistic or argument, as sentences on one line."""
    return f"{', '.join(_facts(item))}. {sentence(item.desc or '')}".rstrip()


def bounds(item: Field) -> Iterator[str]:
    """The bounds of a value, e.g. ``1 to 100``."""
    if item.minimum is not None and item.maximum is not None:
        yield f"{item.minimum} to {item.maximum}"
    elif item.minimum is not None:
        yield f"at least {item.minimum}"
    elif item.maximum is not None:
        yield f"at most {item.maximum}"
    if item.max_len is not None:
        yield f"at most {item.max_len} bytes"


def sentence(text: str) -> str:
    """Text on one line with single spaces, and with a full stop unless it ends in one, or in ``!`` or ``?``."""
    line = " ".join(text.split())
    return line if not line or line[-1] in ".!?" else f"{line}."


def _facts(item: Field) -> Iterator[str]:
    yield item.type.name
    if item.unit and item.unit.strip():
        yield " ".join(item.unit.split())
    yield from bounds(item)
    if isinstance(item, Property):
        yield item.access.value
        flags = {
            "index": item.index,
            "optional": item.optional,
            "parent": item.parent_ref,
            "refers to any class": item.general_reference,
        }
        yield from (name for name, value in flags.items() if value)
    if item.references is not None:
        yield f"refers to {item.references}"
    if isinstance(item, Statistic) and item.assign is not None:
        yield f"equals {' '.join(item.assign.split())}"
    if isinstance(item, Argument) and item.default is not None:
        yield f"default {item.default!r}"


def _summary(desc: str | None, otherwise: str) -> str:
    return sentence(desc or "") or f"{otherwise}."


def _entry(name: str, item: Field) -> str:
    return f"    {name}: {field_text(item)}"


def _section(title: str, entries: Iterable[str]) -> list[str]:
    lines = list(entries)
    return ["\n".join([f"{title}:", *lines])] if lines else []
