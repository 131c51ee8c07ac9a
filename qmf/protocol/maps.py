"""Object ids, class keys, objects, events and agents as the maps that QMFv2 sends (QMF2.md 4.2, 5.1, 5.2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from uuid import UUID

from qmf.codec.errors import EncodeError, escaped
from qmf.codec.limits import MAX_DEPTH
from qmf.codec.types import (
    Float32,
    Int8,
    Int16,
    Int32,
    Int64,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)
from qmf.errors import ProtocolError
from qmf.protocol.fields import (
    Map,
    get_flag,
    get_int,
    get_list,
    get_map,
    get_number,
    get_text,
    get_texts,
    get_uuid,
    mapping,
    need_bytes,
    need_text,
)
from qmf.protocol.objects.row_objects import RowObjects
from qmf.protocol.objects.rows import RowLayout
from qmf.protocol.values import AgentInfo, EventData, ObjectBlock, ObjectData, ObjectId
from qmf.schema.model import ClassKey, Kind

_KINDS = {kind.value: kind for kind in Kind}

_DEFAULT_SEVERITY = 5

#: The form of rows that is written and read here.
ROW_FORM = 1

# -- values ------------------------------------------------------------------------------------------------------------

#: Types that every encoding takes as they are.
_PLAIN: frozenset[type] = frozenset(
    {type(None), bool, int, float, bytes, UUID, Float32, Timestamp}
    | {Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64}
)


def wire_text(value: str) -> str | bytes:
    """Text in a form that every peer takes: more than 65535 bytes go out as binary.

    As a string, such text would close the connection on its way to a peer on AMQP 0-10 (QMF2.md 3.3).
    """
    if len(value) <= 0xFFFF // 4:
        return value
    raw = escaped(value)
    return value if len(raw) <= 0xFFFF else raw


def wire_value(value: object, depth: int = 0) -> object:
    """A value as the codec takes it: object ids in it, at any depth, become maps."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return wire_text(value) if type(value) is str else value
    if isinstance(value, ObjectId):
        return object_id_to_map(value)
    if depth > MAX_DEPTH:
        raise EncodeError(f"more than {MAX_DEPTH} values inside each other")
    if isinstance(value, Mapping):
        return {key: wire_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [wire_value(item, depth + 1) for item in value]
    return value


def wire_values(values: Mapping[str, object]) -> dict[str, object]:
    """`wire_value` for each value."""
    plain = _PLAIN
    return {key: value if type(value) in plain else wire_value(value) for key, value in values.items()}


def _unsigned(value: int) -> int:
    """A number that is small as a rule, as libqmf2 sends it."""
    return UInt32(value) if value <= 0xFFFFFFFF else UInt64(value)


# -- object ids and class keys -----------------------------------------------------------------------------------------


def object_id_to_map(object_id: ObjectId) -> dict[str, object]:
    """The map of an object id or reference."""
    out: dict[str, object] = {"_object_name": wire_text(object_id.object_name)}
    if object_id.agent_name is not None:
        out["_agent_name"] = wire_text(object_id.agent_name)
    if object_id.agent_epoch:
        out["_agent_epoch"] = _unsigned(object_id.agent_epoch)
    return out


def object_id_from_map(fields: Map) -> ObjectId:
    """The object id of a map.

    Raises:
        ProtocolError: `_object_name` is missing, or a key has a wrong type.
    """
    return ObjectId(need_text(fields, "_object_name"), get_text(fields, "_agent_name"), get_int(fields, "_agent_epoch"))


def get_object_id(fields: Map) -> ObjectId | None:
    """The object id under `_object_id`, or None."""
    found = get_map(fields, "_object_id")
    return None if found is None else object_id_from_map(found)


def class_key_to_map(key: ClassKey) -> dict[str, object]:
    """The map of a class key; an empty package, which matches any in queries, is left out."""
    out: dict[str, object] = {"_package_name": key.package} if key.package else {}
    out["_class_name"] = key.name
    out["_type"] = key.kind.value
    if key.hash is not None:
        out["_hash"] = key.hash
    return out


def class_key_from_map(fields: Map, kind: Kind = Kind.DATA) -> ClassKey:
    """The class key of a map; `kind` is for peers that leave `_type` out.

    Raises:
        ProtocolError: `_class_name` is missing, or a key has a wrong type or value.
    """
    word = get_text(fields, "_type")
    found = kind if not word else _KINDS.get(word)
    if found is None:
        raise ProtocolError(f"_type is {word!r}, not '_data' or '_event'")
    package = get_text(fields, "_package_name") or ""
    return ClassKey(package, need_text(fields, "_class_name"), found, get_uuid(fields, "_hash"))


def get_class_key(fields: Map, kind: Kind = Kind.DATA) -> ClassKey | None:
    """The class key under `_schema_id`, or None. libqmf2 may send an empty map."""
    found = get_map(fields, "_schema_id")
    return class_key_from_map(found, kind) if found else None


# -- objects and events ------------------------------------------------------------------------------------------------


def object_to_map(data: ObjectData) -> dict[str, object]:
    """The map of an object. Time stamps are sent all or none, as qpidd and libqmf2 do."""
    out: dict[str, object] = {"_values": wire_values(data.values)}
    if data.object_id is not None:
        out["_object_id"] = object_id_to_map(data.object_id)
    if data.class_key is not None:
        out["_schema_id"] = class_key_to_map(data.class_key)
    if data.update_ts or data.create_ts or data.delete_ts:
        out["_update_ts"] = UInt64(data.update_ts)
        out["_create_ts"] = UInt64(data.create_ts)
        out["_delete_ts"] = UInt64(data.delete_ts)
    if data.subtypes:
        out["_subtypes"] = dict(data.subtypes)
    if data.left:
        out["_left"] = True
    return out


def block_to_map(block: ObjectBlock) -> dict[str, object]:
    """The map of a block of rows (docs/protocol.md)."""
    out: dict[str, object] = {"_schema_id": class_key_to_map(block.class_key)}
    if block.agent_name is not None:
        out["_agent_name"] = wire_text(block.agent_name)
    if block.agent_epoch:
        out["_agent_epoch"] = _unsigned(block.agent_epoch)
    out["_row_form"] = UInt32(ROW_FORM)
    out["_columns"] = list(block.columns)
    out["_codes"] = block.codes
    out["_rows"] = block.rows
    return out


def block_from_map(fields: Map) -> ObjectBlock:
    """The block of a map.

    Raises:
        ProtocolError: a form of rows that is not known here, or a key is missing or has a wrong type.
    """
    form = get_int(fields, "_row_form")
    if form != ROW_FORM:
        raise ProtocolError(f"_row_form is {form}, not {ROW_FORM}")
    key = get_class_key(fields)
    if key is None:
        raise ProtocolError("_schema_id of a block is missing")
    return ObjectBlock(
        class_key=key,
        agent_name=get_text(fields, "_agent_name"),
        agent_epoch=get_int(fields, "_agent_epoch"),
        columns=tuple(need_text({"_columns": name}, "_columns") for name in get_list(fields, "_columns")),
        codes=need_bytes(fields, "_codes"),
        rows=need_bytes(fields, "_rows"),
    )


def objects_from_list(items: Iterable[object]) -> list[ObjectData]:
    """The objects of a body."""
    out: list[ObjectData] = []
    # The objects of one message mostly are of one class: its key is built once.
    raw_key: object = None
    key: ClassKey | None = None
    for item in items:
        fields = mapping(item, "object")
        if "_row_form" in fields:
            block = block_from_map(fields)
            out += RowObjects(block, RowLayout(block.columns, block.codes))
            continue
        if fields.get("_schema_id") != raw_key:
            key = get_class_key(fields)
            raw_key = fields.get("_schema_id")
        out.append(
            ObjectData(
                values=get_map(fields, "_values") or {},
                object_id=get_object_id(fields),
                class_key=key,
                update_ts=get_int(fields, "_update_ts"),
                create_ts=get_int(fields, "_create_ts"),
                delete_ts=get_int(fields, "_delete_ts"),
                subtypes=get_texts(fields, "_subtypes"),
                left=get_flag(fields, "_left"),
            )
        )
    return out


def event_to_map(event: EventData) -> dict[str, object]:
    """The map of an event."""
    out: dict[str, object] = {
        "_values": wire_values(event.values),
        "_timestamp": UInt64(event.timestamp),
        "_severity": UInt8(event.severity),
    }
    if event.class_key is not None:
        out["_schema_id"] = class_key_to_map(event.class_key)
    if event.object_id is not None:
        out["_object_id"] = object_id_to_map(event.object_id)
    return out


def nearest_severity(value: int | None) -> int:
    """Nothing is worse than an emergency nor lesser than debug: a number outside counts as the nearest."""
    return _DEFAULT_SEVERITY if value is None else min(max(value, 0), 7)


def event_from_map(item: object) -> EventData:
    """The event of a map."""
    fields = mapping(item, "event")
    return EventData(
        values=get_map(fields, "_values") or {},
        class_key=get_class_key(fields, Kind.EVENT),
        timestamp=get_int(fields, "_timestamp"),
        severity=nearest_severity(get_int(fields, "_severity", _DEFAULT_SEVERITY)),
        object_id=get_object_id(fields),
    )


# -- agents ------------------------------------------------------------------------------------------------------------

# Spellings of very old agents; they count only where the new one is missing (QMF2.md 4.2).
_OLD_SPELLINGS = {"_timestamp": "timestamp", "_heartbeat_interval": "heartbeat_interval", "_epoch": "epoch"}

_AGENT_KEYS = frozenset(
    {"_name", "_vendor", "_product", "_instance", "_timestamp", "_heartbeat_interval", "_epoch", "_schema_updated"}
    | {"qmf.agent_capability", "_direct_subject"}
)


def agent_to_map(agent: AgentInfo) -> dict[str, object]:
    """The attributes that an agent sends of itself. Intervals are rounded up to whole seconds, as peers expect.

    Raises:
        EncodeError: the interval is infinite or no number, or something else cannot be encoded.
    """
    if not math.isfinite(agent.heartbeat_interval):
        raise EncodeError(f"_heartbeat_interval: {agent.heartbeat_interval} seconds cannot be encoded")
    out = wire_values(agent.attributes)
    out.update(
        _name=wire_text(agent.name),
        _vendor=wire_text(agent.vendor),
        _product=wire_text(agent.product),
        _instance=wire_text(agent.instance),
        _timestamp=UInt64(agent.timestamp),
        _heartbeat_interval=_unsigned(math.ceil(agent.heartbeat_interval)),
        _epoch=_unsigned(agent.epoch),
    )
    if agent.schema_updated:
        out["_schema_updated"] = UInt64(agent.schema_updated)
    if agent.capability:
        out["qmf.agent_capability"] = UInt32(agent.capability)
    if agent.direct_subject is not None:
        out["_direct_subject"] = wire_text(agent.direct_subject)
    return out


def agent_from_map(fields: Map) -> AgentInfo:
    """What an agent sent of itself.

    Missing parts of the name are taken from `_name`, and the other way round; a name is split at its first two colons.

    Raises:
        ProtocolError: neither a name nor any part of it, or a key has a wrong type.
    """
    known = {key: fields[key] for key in _AGENT_KEYS if key in fields}
    others = {key: value for key, value in fields.items() if key not in _AGENT_KEYS}
    for key, old in _OLD_SPELLINGS.items():
        if key not in known and type(others.get(old)) is int:
            known[key] = others.pop(old)
    name = get_text(known, "_name")
    parts: list[str | None] = [get_text(known, key) for key in ("_vendor", "_product", "_instance")]
    if name is None:
        if not any(parts):
            raise ProtocolError("_name is missing")
        name = ":".join(part or "" for part in parts)
    split = [*name.split(":", 2), "", ""]
    vendor, product, instance = (split[i] if part is None else part for i, part in enumerate(parts))
    return AgentInfo(
        name=name,
        vendor=vendor,
        product=product,
        instance=instance,
        epoch=get_int(known, "_epoch"),
        heartbeat_interval=get_number(known, "_heartbeat_interval") or 0,
        timestamp=get_int(known, "_timestamp"),
        schema_updated=get_int(known, "_schema_updated"),
        capability=get_int(known, "qmf.agent_capability"),
        direct_subject=get_text(known, "_direct_subject"),
        attributes=others,
    )
