"""Objects and events as the maps that QMFv2 sends, for the general encoder and decoder (QMF2.md 5.1, 5.2)."""

from __future__ import annotations

from collections.abc import Iterable

from qmf.codec.types import UInt8, UInt32, UInt64
from qmf.errors import ProtocolError
from qmf.protocol.fields import (
    Map,
    get_flag,
    get_int,
    get_list,
    get_map,
    get_text,
    get_texts,
    mapping,
    need_bytes,
    need_text,
)
from qmf.protocol.maps import (
    class_key_to_map,
    get_class_key,
    get_object_id,
    object_id_to_map,
    to_unsigned,
    wire_text,
    wire_values,
)
from qmf.protocol.objects.row_objects import RowObjects
from qmf.protocol.objects.rows import RowDecoder
from qmf.protocol.values import EventData, ObjectBlock, ObjectData
from qmf.schema.model import ClassKey, Kind

_DEFAULT_SEVERITY = 5

#: The form of rows that is written and read here.
ROW_FORM = 1


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
        out["_agent_epoch"] = to_unsigned(block.agent_epoch)
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
            out += RowObjects(block, RowDecoder(block.columns, block.codes))
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
