"""First pass of Python: names for everything in a schema.

A name is that of the schema where possible. If it is a keyword of Python, hides something that generated code uses, or
is in use already, it gets a trailing underscore. The runtime base finds methods, outputs and event fields by this rule:
``name_`` if the class has it, else ``name`` (descriptors know their schema names). So a plain ``name`` must never stand
beside a ``name_`` that means something else.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set

import attrs

from qmf.schema import ClassSchema, Method, Schema
from qmf_codegen.python.imports import IMPORTED

#: Builtins that generated code uses by name.
_BUILTINS = frozenset({"NotImplementedError", "bool", "float", "int", "object", "str", "super"})

#: Names within functions: ours, and those in the methods that attrs makes.
_LOCALS = frozenset({"NOTHING", "attr_dict", "self"})

#: Names that linters refuse, since they look like numbers.
_AMBIGUOUS = frozenset({"I", "O", "l"})

#: Constants that each schema module has, and names in capitals that it imports.
RESERVED_CONSTANTS = frozenset({"PACKAGE", "SCHEMA", "TYPES", "UUID"}) | _AMBIGUOUS

#: No class, member or parameter may have one of these names.
RESERVED = IMPORTED | _BUILTINS | _LOCALS | _AMBIGUOUS | frozenset(keyword.kwlist)

#: No field of an event that a console receives may have one of these names: every event has them.
RESERVED_IN_EVENTS = RESERVED | {"agent", "object_id", "severity", "timestamp"}

_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@attrs.frozen(kw_only=True)
class MemberNames:
    """Python names within one class, by schema name.

    Attributes:
        fields: of properties and statistics.
        methods: of methods.
        results: of the result classes of methods with outputs.
    """

    fields: Mapping[str, str]
    methods: Mapping[str, str]
    results: Mapping[str, str]


@attrs.frozen(kw_only=True)
class Names:
    """Python names within one schema, by schema name.

    Attributes:
        constants: of classes and events in the schema module; keys are the schemas' positions in `Schema`.
        classes, events: of the Python classes.
        members: per class.
    """

    constants: Sequence[str]
    classes: Mapping[str, str]
    events: Mapping[str, str]
    members: Mapping[str, MemberNames]


def names_of(schema: Schema) -> Names:
    """Choose all names of a schema; the same schema always gets the same names."""
    used = set(RESERVED)
    classes = {item.name: _claim(capitalise(item.name), used) for item in schema.classes}
    events = {}
    for item in schema.events:
        name = capitalise(item.name)
        events[item.name] = _claim(f"{name}Event" if name in used - RESERVED else name, used)
    results = {
        item.name: {
            method.name: _claim(f"{classes[item.name]}{capitalise(method.name)}Result", used)
            for method in item.methods
            if method.outputs
        }
        for item in schema.classes
    }
    return Names(
        constants=_constants(schema),
        classes=classes,
        events=events,
        members={item.name: _members(item, results[item.name]) for item in schema.classes},
    )


def capitalise(name: str) -> str:
    """A name as that of a class: ``queueDeclare`` becomes ``QueueDeclare``."""
    return name[0].upper() + name[1:]


def constant(name: str) -> str:
    """A name as that of a constant: ``HaBroker`` becomes ``HA_BROKER``."""
    return _WORD_STARTS.sub("_", name).upper()


def plain_names(names: Sequence[str], reserved: Set[str] = RESERVED) -> dict[str, str]:
    """Names of the fields of an event or result."""
    return _avoid_clashes(names, names, reserved)


def parameter_names(method: Method) -> dict[str, str]:
    """Names of a method's parameters, which are passed by position."""
    return plain_names([argument.name for argument in method.inputs])


def output_names(method: Method) -> dict[str, str]:
    """Names of the fields of a method's result."""
    return plain_names([argument.name for argument in method.outputs])


def free_name(name: str, used: Collection[str]) -> str:
    """A name of ours, with underscores until it is not among the `used` ones of the schema."""
    while name in used:
        name += "_"
    return name


def _members(item: ClassSchema, results: Mapping[str, str]) -> MemberNames:
    fields = [*(member.name for member in item.properties), *(member.name for member in item.statistics)]
    reserved = RESERVED | set(results.values())
    methods = [method.name for method in item.methods]
    method_names = _avoid_clashes(methods, [*methods, *fields], reserved | set(fields))
    return MemberNames(fields=_field_names(fields, method_names, reserved), methods=method_names, results=results)


def _avoid_clashes(names: Iterable[str], beside: Sequence[str], reserved: Set[str]) -> dict[str, str]:
    """Append one underscore to every name that needs it by the rule above.

    Args:
        names: to be given names.
        beside: all schema names of the same scope, `names` included.
        reserved: names that must not be used.
    """
    known = set(beside)
    result: dict[str, str] = {}
    # Shorter names first: `x_` becomes `x__` if `x` became `x_`.
    for name in sorted(names, key=len):
        displaced = name.endswith("_") and result.get(name[:-1]) == name
        result[name] = f"{name}_" if name in reserved or f"{name}_" in known or displaced else name
    return result


def _field_names(fields: Sequence[str], methods: Mapping[str, str], reserved: Set[str]) -> dict[str, str]:
    """Names of properties and statistics, beside those of the methods."""
    # The runtime base would mistake `m_` for method `m`.
    blocked = {f"{name}_" for name, python in methods.items() if name == python}
    used = set(methods.values())
    result: dict[str, str] = {}
    for name in fields:
        others = {other for other in fields if other != name}
        python = name
        while python in reserved or python in blocked or python in used or python in others:
            python += "_"
        used.add(python)
        result[name] = python
    return result


def _constants(schema: Schema) -> list[str]:
    used = set(RESERVED_CONSTANTS)
    names = [_claim(constant(item.name), used) for item in schema.classes]
    for item in schema.events:
        name = constant(item.name)
        names.append(_claim(f"{name}_EVENT" if name in used - RESERVED_CONSTANTS else name, used))
    return names


def _claim(name: str, used: set[str]) -> str:
    while name in used:
        name += "_"
    used.add(name)
    return name
