"""Object ids, class keys and agents as the maps that QMFv2 sends (QMF2.md 4.2, 5.1, 5.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from uuid import UUID

from qmf.codec.errors import EncodeError, escape
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
    get_int,
    get_map,
    get_number,
    get_text,
    get_uuid,
    need_text,
)
from qmf.protocol.values import AgentInfo, ObjectId
from qmf.schema.model import ClassKey, Kind

_KINDS = {kind.value: kind for kind in Kind}

# -- values ------------------------------------------------------------------------------------------------------------

#: Types that every encoding takes as they are.
_PLAIN: frozenset[type] = frozenset(
    {type(None), bool, int, float, bytes, UUID, Float32, Timestamp}
    | {Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64}
)


#: Characters of a text that has no more than 65535 bytes, whatever it consists of.
_SHORT = 0xFFFF // 4


def wire_text(value: str) -> str | bytes:
    """Text in a form that every peer takes: more than 65535 bytes go out as binary.

    As a string, such text would close the connection on its way to a peer on AMQP 0-10 (QMF2.md 3.3).
    """
    if len(value) <= _SHORT:
        return value
    raw = escape(value)
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
    plain, short = _PLAIN, _SHORT
    return {
        key: value if type(value) in plain or (type(value) is str and len(value) <= short) else wire_value(value)
        for key, value in values.items()
    }


def to_unsigned(value: int) -> int:
    """A number that is small as a rule, as libqmf2 sends it."""
    return UInt32(value) if value <= 0xFFFFFFFF else UInt64(value)


# -- object ids and class keys -----------------------------------------------------------------------------------------


def object_id_to_map(object_id: ObjectId) -> dict[str, object]:
    """The map of an object id or reference."""
    out: dict[str, object] = {"_object_name": wire_text(object_id.object_name)}
    if object_id.agent_name is not None:
        out["_agent_name"] = wire_text(object_id.agent_name)
    if object_id.agent_epoch:
        out["_agent_epoch"] = to_unsigned(object_id.agent_epoch)
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
    kind_name = get_text(fields, "_type")
    found = kind if not kind_name else _KINDS.get(kind_name)
    if found is None:
        raise ProtocolError(f"_type is {kind_name!r}, not '_data' or '_event'")
    package = get_text(fields, "_package_name") or ""
    return ClassKey(package, need_text(fields, "_class_name"), found, get_uuid(fields, "_hash"))


def get_class_key(fields: Map, kind: Kind = Kind.DATA) -> ClassKey | None:
    """The class key under `_schema_id`, or None. libqmf2 may send an empty map."""
    found = get_map(fields, "_schema_id")
    return class_key_from_map(found, kind) if found else None


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
        _heartbeat_interval=to_unsigned(math.ceil(agent.heartbeat_interval)),
        _epoch=to_unsigned(agent.epoch),
    )
    if agent.schema_updated:
        out["_schema_updated"] = UInt64(agent.schema_updated)
    if agent.capability:
        out["qmf.agent_capability"] = UInt32(agent.capability)
    if agent.direct_subject is not None:
        out["_direct_subject"] = wire_text(agent.direct_subject)
    return out


def _agent_names(known: Map) -> tuple[str, str, str, str]:
    """The name of an agent, with its vendor, product and instance."""
    name = get_text(known, "_name")
    parts: list[str | None] = [get_text(known, key) for key in ("_vendor", "_product", "_instance")]
    if name is None:
        if not any(parts):
            raise ProtocolError("_name is missing")
        name = ":".join(part or "" for part in parts)
    split = [*name.split(":", 2), "", ""]
    vendor, product, instance = (split[i] if part is None else part for i, part in enumerate(parts))
    return name, vendor, product, instance


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
    name, vendor, product, instance = _agent_names(known)
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
