"""Schemas as QMFv1 writes them (QMF2.md 8.4).

Texts go out as binary of 16-bit length and numbers in qpidd's widths, because the consoles that still ask this way were
only ever tested with qpidd. Statistics go out as their single values, and are put together again when read.
"""

from __future__ import annotations

from collections.abc import Mapping

from qmf.codec.amqp010 import Reader, Writer
from qmf.codec.errors import EncodeError
from qmf.codec.types import Int32, UInt8
from qmf.errors import ProtocolError
from qmf.protocol.coerce import from_wire
from qmf.protocol.fields import Map, get_flag, get_int, get_text, need_text, value_fields
from qmf.protocol.maps import wire_value
from qmf.protocol.statistics import fold_v1, with_suffix
from qmf.schema.literals import parse_value
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
    Statistic,
)
from qmf.schema.types import TYPES, TYPES_BY_CODE, QmfType

_KIND_DATA, _KIND_EVENT = 1, 2
_ACCESS = {1: Access.RC, 2: Access.RW, 3: Access.RO}
_ACCESS_CODES = {access: code for code, access in _ACCESS.items()}

# Codes outside the schema language that libqmf2 and others use: embedded object, array.
_FURTHER_TYPES = {20: TYPES["map"], 22: TYPES["list"]}


def write_schema(writer: Writer, schema: ClassSchema | EventSchema) -> None:
    """Append the fields of an `s` frame.

    Raises:
        EncodeError: the schema has no hash, or a name or number is too large for QMFv1.
    """
    key = schema.key
    if key.hash is None:
        raise EncodeError(f"QMFv1 sends schemas with their hash; {key} has none")
    writer.uint8(_KIND_DATA if key.kind is Kind.DATA else _KIND_EVENT)
    writer.str8(key.package)
    writer.str8(key.name)
    writer.uuid(key.hash)
    if isinstance(schema, EventSchema):
        writer.uint16(len(schema.arguments))
        for argument in schema.arguments:
            writer.map(_common(argument))
        return
    statistics = [fields for statistic in schema.statistics for fields in _statistic_maps(statistic)]
    writer.uint16(len(schema.properties))
    writer.uint16(len(statistics))
    writer.uint16(len(schema.methods))
    for item in schema.properties:
        writer.map(_property_map(item))
    for fields in statistics:
        writer.map(fields)
    for method in schema.methods:
        writer.map(_texts({"name": method.name, "desc": method.desc}) | {"argCount": Int32(len(method.arguments))})
        for argument in method.arguments:
            writer.map(_argument_map(argument))


def read_schema(reader: Reader) -> ClassSchema | EventSchema:
    """Take the fields of an `s` frame.

    Raises:
        DecodeError: the bytes end inside.
        ProtocolError: unknown kind or type, or a map without name.
    """
    kind = reader.uint8()
    if kind not in (_KIND_DATA, _KIND_EVENT):
        raise ProtocolError(f"QMFv1 's': kind of class is {kind}, not 1 or 2")
    package, name, hash = reader.str8(), reader.str8(), reader.uuid()
    if kind == _KIND_EVENT:
        arguments = tuple(_argument(reader.map()) for _ in range(reader.uint16()))
        return EventSchema(package=package, name=name, hash=hash, arguments=arguments)
    properties, statistics, methods = reader.uint16(), reader.uint16(), reader.uint16()
    return ClassSchema(
        package=package,
        name=name,
        hash=hash,
        properties=tuple(_property(reader.map()) for _ in range(properties)),
        statistics=fold_v1([_statistic(reader.map()) for _ in range(statistics)]),
        methods=tuple(_method(reader) for _ in range(methods)),
    )


# -- writing -----------------------------------------------------------------------------------------------------------


def _texts(fields: Mapping[str, str | None]) -> dict[str, object]:
    """Texts as qpidd sends them: binary, and only those that are there."""
    return {key: text.encode(errors="surrogateescape") for key, text in fields.items() if text is not None}


def _int(value: int | float) -> object:
    """A bound: four bytes as long as they hold it."""
    return Int32(value) if isinstance(value, int) and -(1 << 31) <= value < 1 << 31 else value


def _common(item: Property | Statistic | Argument) -> dict[str, object]:
    reference = item.references
    out = _texts(
        {
            "name": item.name,
            "unit": item.unit,
            "desc": item.desc,
            "refPackage": None if reference is None else reference.package,
            "refClass": None if reference is None else reference.name,
        }
    )
    out["type"] = UInt8(item.type.code)
    for key, value in (("min", item.minimum), ("max", item.maximum), ("maxlen", item.max_len)):
        if value is not None:
            out[key] = _int(value)
    return out


def _property_map(item: Property) -> dict[str, object]:
    out = _common(item)
    out["access"] = UInt8(_ACCESS_CODES[item.access])
    out["index"] = Int32(item.index)
    out["optional"] = Int32(item.optional)
    return out


def _statistic_maps(item: Statistic) -> list[dict[str, object]]:
    common = _common(item)
    return [
        common | _texts({"name": entry.v1_name, "desc": with_suffix(item.desc, entry.v1_suffix)})
        for entry in item.entries
    ]


def _argument_map(item: Argument) -> dict[str, object]:
    out = _common(item) | _texts({"dir": item.direction.value})
    if item.default is not None:
        out["default"] = wire_value(item.default)
    return out


# -- reading -----------------------------------------------------------------------------------------------------------


def _type(fields: Map) -> QmfType:
    code = get_int(fields, "type", -1)
    found = TYPES_BY_CODE.get(code) or _FURTHER_TYPES.get(code)
    if found is None:
        raise ProtocolError(f"type of {need_text(fields, 'name')} is {code}, which is no QMFv1 type code")
    return found


def _reference(fields: Map) -> Reference | None:
    name = get_text(fields, "refClass")
    return Reference(get_text(fields, "refPackage") or None, name) if name else None


def _property(fields: Map) -> Property:
    return Property(
        **value_fields(fields, ""),
        type=_type(fields),
        access=_ACCESS.get(get_int(fields, "access"), Access.RO),
        index=get_flag(fields, "index"),
        optional=get_flag(fields, "optional"),
        references=_reference(fields),
    )


def _statistic(fields: Map) -> Statistic:
    return Statistic(
        **value_fields(fields, ""),
        type=_type(fields),
        references=_reference(fields),
    )


def _method(reader: Reader) -> Method:
    fields = reader.map()
    name = need_text(fields, "name")
    arguments = tuple(_argument(reader.map()) for _ in range(get_int(fields, "argCount")))
    return Method(name=name, arguments=arguments, desc=get_text(fields, "desc"))


def _argument(fields: Map) -> Argument:
    type = _type(fields)
    direction = get_text(fields, "dir") or Direction.IN.value
    if direction not in ("I", "O", "IO"):
        raise ProtocolError(f"dir of {need_text(fields, 'name')} is {direction!r}, not I, O or IO")
    return Argument(
        **value_fields(fields, ""),
        type=type,
        direction=Direction(direction),
        default=_default(type, fields.get("default")),
        references=_reference(fields),
    )


def _default(type: QmfType, value: object) -> object:
    """A default of the argument's type. Peers send it as such or as its text in XML; one of neither kind is dropped."""
    try:
        if isinstance(value, str) and not type.is_string:
            return parse_value(type, value)
        return from_wire(type, value, exact=True)
    except (ProtocolError, ValueError):
        return None
