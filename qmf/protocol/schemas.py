"""Schemas as the maps of QMFv2 (QMF2.md 5.3).

libqmf2's maps know neither optional properties nor bounds, widths or statistics. Ours carry those in further keys,
which other peers ignore, so that nothing is lost between our own agents and consoles:

===========================  ===========================================================================================
``_qmf_type``                name of the type in XML; without it, integers count as `int64`, strings as `lstr`, ...
``_optional``                true for optional properties
``_min`` ``_max``            bounds
``_maxlen``                  longest encoding of a string in bytes
``_references``              class that an `objId` points to, ``Class`` or ``package:Class``
``_parent_ref``              true for the reference to the parent
``_general_reference``       true for a reference to objects of any class
``_default``                 default of a method's argument
``_group``                   ``statistic`` for each value of a statistic
``_qmf_name``                name of the statistic, in the map of its first value; name of the class as written in XML
``_assign``                  expression that a statistic equals
===========================  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from qmf.codec.types import UInt32
from qmf.errors import ProtocolError
from qmf.protocol.coerce import from_wire
from qmf.protocol.fields import (
    Map,
    get_flag,
    get_int,
    get_list,
    get_map,
    get_text,
    mapping,
    need_text,
    value_fields,
)
from qmf.protocol.maps import class_key_from_map, class_key_to_map, wire_text, wire_value
from qmf.protocol.statistics import with_suffix
from qmf.schema.model import (
    Access,
    Argument,
    ClassSchema,
    Direction,
    EventSchema,
    Kind,
    Method,
    Property,
    Reference,
    Severity,
    Statistic,
)
from qmf.schema.types import TYPES, QmfType, Style

_STATISTIC = "statistic"

_E = TypeVar("_E", bound=Enum)

# Types by `_type` and `_subtype`; a subtype that is not here counts as none.
_PLAIN_TYPES = {
    "TYPE_VOID": "lstr",
    "TYPE_BOOL": "bool",
    "TYPE_INT": "int64",
    "TYPE_FLOAT": "double",
    "TYPE_STRING": "lstr",
    "TYPE_MAP": "map",
    "TYPE_LIST": "list",
    "TYPE_UUID": "uuid",
}
_SUBTYPES = {
    ("TYPE_MAP", "reference"): "objId",
    ("TYPE_INT", "timestamp"): "absTime",
    ("TYPE_INT", "abstime"): "absTime",
    ("TYPE_INT", "duration"): "deltaTime",
    ("TYPE_INT", "deltatime"): "deltaTime",
}


def schema_to_map(schema: ClassSchema | EventSchema) -> dict[str, object]:
    """The map of a class or event class."""
    out: dict[str, object] = {"_schema_id": class_key_to_map(schema.key)}
    if schema.desc is not None:
        out["_desc"] = wire_text(schema.desc)
    if isinstance(schema, EventSchema):
        if schema.severity is not None:
            out["_default_severity"] = UInt32(schema.severity)
        out["_properties"] = [_argument_to_map(item) for item in schema.arguments]
        out["_methods"] = []
        return out
    if schema.name != schema.key.name:
        out["_qmf_name"] = wire_text(schema.name)
    properties = [_property_to_map(item) for item in schema.properties]
    for statistic in schema.statistics:
        properties += _statistic_to_maps(statistic)
    out["_properties"] = properties
    out["_methods"] = [_method_to_map(item) for item in schema.methods]
    return out


def schema_from_map(item: object) -> ClassSchema | EventSchema:
    """The class or event class of a map.

    Raises:
        ProtocolError: a key is missing, or has a wrong type or an unknown value; names it.
    """
    fields = mapping(item, "schema")
    found = get_map(fields, "_schema_id")
    if found is None:
        raise ProtocolError("_schema_id is missing")
    key = class_key_from_map(found)
    items = [mapping(item, f"_properties of {key.name}") for item in get_list(fields, "_properties")]
    desc = get_text(fields, "_desc")
    if key.kind is Kind.EVENT:
        return EventSchema(
            package=key.package,
            name=key.name,
            severity=_severity(fields),
            hash=key.hash,
            arguments=tuple(_argument_from_map(item) for item in items),
            desc=desc,
        )
    written = get_text(fields, "_qmf_name")
    return ClassSchema(
        package=key.package,
        name=written if written is not None and written.lower() == key.name else key.name,
        hash=key.hash,
        properties=tuple(_property_from_map(item) for item in items if item.get("_group") != _STATISTIC),
        statistics=tuple(_statistics_from_maps(item for item in items if item.get("_group") == _STATISTIC)),
        methods=tuple(_method_from_map(item) for item in get_list(fields, "_methods")),
        desc=desc,
    )


def _severity(fields: Map) -> Severity | None:
    # A libqmf2 agent that set none was seen to send 20, so a number that is no severity counts as none.
    number = get_int(fields, "_default_severity", -1)
    return Severity(number) if 0 <= number <= 7 else None


# -- what properties, statistics and arguments have in common ----------------------------------------------------------


def _common_to_map(
    item: Property | Statistic | Argument, *, access: Access = Access.RO, direction: Direction = Direction.IN
) -> dict[str, object]:
    out: dict[str, object] = {
        "_name": item.name,
        "_type": item.type.v2,
        "_access": access.value,
        "_dir": direction.value,
        "_qmf_type": item.type.name,
        "_subtype": item.type.subtype,
        "_unit": item.unit,
        "_desc": None if item.desc is None else wire_text(item.desc),
        "_min": item.minimum,
        "_max": item.maximum,
        "_maxlen": item.max_len,
        "_references": None if item.references is None else str(item.references),
    }
    return {key: value for key, value in out.items() if value is not None}


def _type_from_map(fields: Map) -> QmfType:
    """The type of a value: by the name that this project sends, if it is one and agrees with the general one."""
    known = TYPES.get(get_text(fields, "_qmf_type") or "")
    type_name = need_text(fields, "_type")
    # They must agree, or the map was made by another program.
    if known is not None and known.v2 == type_name:
        return known
    name = _SUBTYPES.get((type_name, get_text(fields, "_subtype") or "")) or _PLAIN_TYPES.get(type_name)
    if name is None:
        raise ProtocolError(f"_type of {need_text(fields, '_name')} is {type_name!r}")
    return TYPES[name]


def _reference(fields: Map) -> Reference | None:
    text = get_text(fields, "_references")
    if text is None:
        return None
    package, _, name = text.rpartition(":")
    return Reference(package or None, name)


def _enum_value(fields: Map, key: str, kind: type[_E], default: _E) -> _E:
    """The member of an enumeration whose value is under `key`."""
    text = get_text(fields, key)
    if text is None:
        return default
    try:
        return kind(text)
    except ValueError:
        raise ProtocolError(f"{key} is {text!r}, not {' or '.join(str(item.value) for item in kind)}") from None


# -- properties --------------------------------------------------------------------------------------------------------


def _property_to_map(item: Property) -> dict[str, object]:
    out = _common_to_map(item, access=item.access)
    flags = {
        "_index": item.index,
        "_optional": item.optional,
        "_parent_ref": item.parent_ref,
        "_general_reference": item.general_reference,
    }
    out.update((key, True) for key, value in flags.items() if value)
    return out


def _property_from_map(fields: Map) -> Property:
    return Property(
        **value_fields(fields, "_"),
        type=_type_from_map(fields),
        access=_enum_value(fields, "_access", Access, Access.RO),
        index=get_flag(fields, "_index"),
        optional=get_flag(fields, "_optional"),
        parent_ref=get_flag(fields, "_parent_ref"),
        references=_reference(fields),
        general_reference=get_flag(fields, "_general_reference"),
    )


# -- statistics --------------------------------------------------------------------------------------------------------


def _statistic_to_maps(item: Statistic) -> list[dict[str, object]]:
    """One map per wire value; the first says what the statistic is."""
    out: list[dict[str, object]] = []
    for entry in item.entries:
        fields = _common_to_map(item) if not out else _common_to_map(Statistic(name="", type=TYPES[item.type.base]))
        fields["_name"] = entry.name
        fields["_group"] = _STATISTIC
        if item.unit is not None:
            fields["_unit"] = item.unit
        desc = with_suffix(item.desc, entry.v1_suffix)
        if desc is not None:
            fields["_desc"] = wire_text(desc)
        if not out:
            fields["_qmf_name"] = item.name
            if item.assign is not None:
                fields["_assign"] = item.assign
        out.append(fields)
    return out


def _statistics_from_maps(items: Iterable[Map]) -> Iterable[Statistic]:
    """Statistics from the maps of their values; values that nothing claims become plain statistics."""
    claimed: set[str] = set()
    for fields in items:
        name = need_text(fields, "_name")
        if name in claimed:
            claimed.remove(name)
            continue
        statistic = _statistic_from_map(fields, name)
        claimed.update(entry.name for entry in statistic.entries[1:])
        yield statistic


def _statistic_from_map(fields: Map, wire_name: str) -> Statistic:
    type = _type_from_map(fields)
    common = value_fields(fields, "_")
    common["name"] = get_text(fields, "_qmf_name") or wire_name
    first = Statistic(name=common["name"], type=type).entries[0]
    if first.name != wire_name:
        # Not our own map after all: an average, say, under another name. It is a value of its own.
        common["name"], type = wire_name, type if type.style in (Style.DIRECT, Style.COUNT) else TYPES[type.base]
    elif common["desc"] is not None:
        common["desc"] = common["desc"].removesuffix(first.v1_suffix)
    return Statistic(
        **common,
        type=type,
        assign=get_text(fields, "_assign"),
        references=_reference(fields),
    )


# -- methods and arguments ---------------------------------------------------------------------------------------------


def _method_to_map(method: Method) -> dict[str, object]:
    out: dict[str, object] = {
        "_name": method.name,
        "_arguments": [_argument_to_map(argument) for argument in method.arguments],
    }
    if method.desc is not None:
        out["_desc"] = wire_text(method.desc)
    return out


def _method_from_map(item: object) -> Method:
    fields = mapping(item, "_methods")
    name = need_text(fields, "_name")
    arguments = (mapping(item, f"_arguments of {name}") for item in get_list(fields, "_arguments"))
    return Method(name=name, arguments=tuple(map(_argument_from_map, arguments)), desc=get_text(fields, "_desc"))


def _argument_to_map(item: Argument) -> dict[str, object]:
    out = _common_to_map(item, direction=item.direction)
    if item.default is not None:
        out["_default"] = wire_value(item.default)
    return out


def _argument_from_map(fields: Map) -> Argument:
    type = _type_from_map(fields)
    return Argument(
        **value_fields(fields, "_"),
        type=type,
        direction=_enum_value(fields, "_dir", Direction, Direction.IN),
        default=from_wire(type, fields.get("_default"), exact=True),
        references=_reference(fields),
    )
