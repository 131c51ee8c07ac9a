"""Docstrings of generated classes: what the schema says, in the reader's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qmf.schema import Argument, ClassSchema, EventSchema, Method, Property, Schema, Statistic
from qmf_codegen.filters.layout import flat
from qmf_codegen.filters.literals import is_short, literal
from qmf_codegen.filters.text import QUOTES, docstring, escape, sentence, wrap


def module_doc(schema: Schema, what: str) -> str:
    """Docstring of a module."""
    desc = f" {escape(sentence(schema.desc))}" if schema.desc else ""
    return docstring([wrap(f"{what} of package {schema.package}.{desc}", 0, room=QUOTES)], 0)


def class_doc(item: ClassSchema, names: Mapping[str, str]) -> str:
    """Docstring of a managed class; `names` are the Python names of its properties and statistics."""
    sections = [_summary(item.desc, f"Class {item.name} of package {item.package}", 4)]
    sections += _section("Properties", [_field(names[field.name], field, 8) for field in item.properties], 4)
    sections += _section("Statistics", [_field(names[field.name], field, 8) for field in item.statistics], 4)
    return docstring(sections, 4)


def method_doc(item: Method, names: Mapping[str, str], outputs: Mapping[str, str], timeout: str | None = None) -> str:
    """Docstring of a method.

    Args:
        item: the method.
        names: of its parameters.
        outputs: names of its result's fields.
        timeout: name of the parameter that says how long a console waits, if it has one.
    """
    sections = [_summary(item.desc, f"Method {item.name}", 8)]
    entries = [_field(names[field.name], field, 12) for field in item.inputs]
    sections += _section("Args", entries + ([] if timeout is None else [_timeout(timeout)]), 8)
    sections += _section("Returns", [_field(outputs[field.name], field, 12) for field in item.outputs], 8)
    return docstring(sections, 8)


def set_doc(items: Iterable[Property], names: Mapping[str, str], timeout: str) -> str:
    """Docstring of the method that sets properties; `names` are those of its parameters."""
    sections = ["Set properties, all or none; those that are not given stay as they are."]
    sections += _section("Args", [*(_field(names[item.name], item, 12) for item in items), _timeout(timeout)], 8)
    return docstring(sections, 8)


def result_doc(item: Method, owner: str, names: Mapping[str, str]) -> str:
    """Docstring of a result class; `names` are those of its fields."""
    sections = [f"What `{owner}.{item.name}` returns."]
    sections += _section("Attributes", [_field(names[field.name], field, 8) for field in item.outputs], 4)
    return docstring(sections, 4)


def event_doc(item: EventSchema, names: Mapping[str, str]) -> str:
    """Docstring of an event class; `names` are those of its fields."""
    sections = [_summary(item.desc, f"Event {item.name} of package {item.package}", 4)]
    if item.severity is not None:
        sections.append(f"Severity: {item.severity.word}.")
    sections += _section("Attributes", [_field(names[field.name], field, 8) for field in item.arguments], 4)
    return docstring(sections, 4)


def facts(item: Property | Statistic | Argument) -> str:
    """Everything about a value but its description: type, unit, bounds, access and so on."""
    words = [item.type.name]
    if item.unit and item.unit.strip():
        words.append(" ".join(item.unit.split()))
    words += bounds(item)
    if isinstance(item, Property):
        words.append(item.access.value)
        flags = {"index": item.index, "optional": item.optional, "names the parent": item.parent_ref}
        words += [word for word, value in flags.items() if value]
        words += ["refers to any class"] if item.general_reference else []
    if item.references is not None:
        words.append(f"refers to {item.references}")
    if isinstance(item, Statistic) and item.assign is not None:
        words.append(f"equals {' '.join(item.assign.split())}")
    if isinstance(item, Argument) and item.default is not None and is_short(item.default):
        words.append(f"default {flat(literal(item.default, item.type))}")
    return ", ".join(words)


def bounds(item: Property | Statistic | Argument) -> Iterable[str]:
    """The bounds of a value in words."""
    if item.minimum is not None and item.maximum is not None:
        yield f"{item.minimum} to {item.maximum}"
    elif item.minimum is not None:
        yield f"at least {item.minimum}"
    elif item.maximum is not None:
        yield f"at most {item.maximum}"
    if item.max_len is not None:
        yield f"at most {item.max_len} bytes"


def _summary(desc: str | None, otherwise: str, indent: int) -> str:
    text = sentence(desc or "") or f"{otherwise}."
    return wrap(escape(text), indent, room=QUOTES)


def _field(name: str, item: Property | Statistic | Argument, indent: int) -> str:
    text = sentence(facts(item))
    if item.desc and item.desc.strip():
        text = f"{text} {sentence(item.desc)}"
    return wrap(escape(text), indent, first=f"{name}:", hanging=4)


def _timeout(name: str) -> str:
    return f"{name}: Seconds to wait for the answer; None for the client's."


def _section(title: str, entries: Iterable[str], indent: int) -> list[str]:
    lines = [" " * (indent + 4) + entry for entry in entries]
    return ["\n".join([f"{title}:", *lines])] if lines else []
