"""Queries, and subscriptions to them, as the maps that QMFv2 sends (QMF2.md 4.4; subscriptions are ours, 4.8)."""

from __future__ import annotations

import math

from qmf.codec.errors import EncodeError
from qmf.codec.types import UInt32
from qmf.errors import ProtocolError
from qmf.protocol.contents import (
    QueryRequest,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeShare,
    What,
)
from qmf.protocol.fields import Map, get_flag, get_int, get_list, get_text, need_text
from qmf.protocol.maps import class_key_to_map, get_class_key, get_object_id, object_id_to_map, wire_text, wire_value
from qmf.protocol.ordering import order_from_list, order_to_list


def query_to_map(content: QueryRequest) -> dict[str, object]:
    """The map of a query."""
    out = _wanted_fields(content, content.what)
    if content.text:
        out["_text"] = wire_text(content.text)
    if content.limit:
        out["_limit"] = UInt32(content.limit)
    if content.limit and content.order:
        out["_order"] = order_to_list(content.order)
    return out


def query_from_map(fields: Map) -> QueryRequest:
    """The query of a map.

    Raises:
        ProtocolError: `_what` is missing or unknown, or a key has a wrong type.
    """
    what_text = need_text(fields, "_what")
    try:
        what = What(what_text)
    except ValueError:
        raise ProtocolError(f"_what is {what_text!r}") from None
    return QueryRequest(
        what=what,
        class_key=get_class_key(fields),
        object_id=get_object_id(fields),
        where=get_list(fields, "_where") or (),
        text=get_text(fields, "_text") or "",
        select=_select(fields),
        row_form=_positive(fields, "_row_form"),
        limit=_positive(fields, "_limit"),
        order=order_from_list(get_list(fields, "_order")),
    )


def subscribe_to_map(content: SubscribeRequest) -> dict[str, object]:
    """The map of a request to subscribe."""
    out = _wanted_fields(content, What.OBJECT) | _times(content.interval, content.lifetime)
    if content.can_share:
        out["_can_share"] = True
    return out


def subscribe_from_map(fields: Map) -> SubscribeRequest:
    """The request to subscribe of a map.

    Raises:
        ProtocolError: `_what` is not OBJECT, or a key has a wrong type or is out of range.
    """
    what_text = need_text(fields, "_what")
    if what_text != What.OBJECT.value:
        raise ProtocolError(f"_what is {what_text!r}, and only OBJECT can be subscribed to")
    return SubscribeRequest(
        class_key=get_class_key(fields),
        object_id=get_object_id(fields),
        where=get_list(fields, "_where") or (),
        select=_select(fields),
        interval=_get_unsigned(fields, "_interval") / 1000,
        lifetime=_get_unsigned(fields, "_lifetime"),
        row_form=_positive(fields, "_row_form"),
        can_share=get_flag(fields, "_can_share"),
    )


def subscribed_to_map(content: SubscribeResponse) -> dict[str, object]:
    """The map of the answer to it."""
    return {"_subscription_id": content.subscription_id} | _times(content.interval, content.lifetime)


def subscribed_from_map(fields: Map) -> SubscribeResponse:
    """The answer of a map.

    Raises:
        ProtocolError: the id is missing, or a key has a wrong type or is out of range.
    """
    return SubscribeResponse(
        subscription_id=need_text(fields, "_subscription_id"),
        interval=_get_unsigned(fields, "_interval") / 1000,
        lifetime=_get_unsigned(fields, "_lifetime"),
    )


def refresh_to_map(content: SubscribeRefresh) -> dict[str, object]:
    """The map of a refresh."""
    out: dict[str, object] = {"_subscription_id": content.subscription_id, "_lifetime": UInt32(content.lifetime)}
    if content.bound:
        out["_bound"] = True
    return out


def refresh_from_map(fields: Map) -> SubscribeRefresh:
    """The refresh of a map; errors as of `subscribed_from_map`."""
    return SubscribeRefresh(
        subscription_id=need_text(fields, "_subscription_id"),
        lifetime=_get_unsigned(fields, "_lifetime"),
        bound=get_flag(fields, "_bound"),
    )


def share_to_map(content: SubscribeShare) -> dict[str, object]:
    """The map of a shared key."""
    return {
        "_subscription_id": content.subscription_id,
        "_shared_key": wire_text(content.shared_key),
        "_last_sequence": UInt32(content.last_sequence),
        "_first_sequence": UInt32(content.first_sequence),
    }


def share_from_map(fields: Map) -> SubscribeShare:
    """The shared key of a map; errors as of `subscribed_from_map`."""
    return SubscribeShare(
        subscription_id=need_text(fields, "_subscription_id"),
        shared_key=need_text(fields, "_shared_key"),
        last_sequence=_get_unsigned(fields, "_last_sequence"),
        first_sequence=_get_unsigned(fields, "_first_sequence"),
    )


def cancel_to_map(content: SubscribeCancel) -> dict[str, object]:
    """The map of a cancellation."""
    out: dict[str, object] = {"_subscription_id": content.subscription_id}
    if content.reason:
        out["_reason"] = wire_text(content.reason)
    return out


def cancel_from_map(fields: Map) -> SubscribeCancel:
    """The cancellation of a map; errors as of `subscribed_from_map`."""
    return SubscribeCancel(
        subscription_id=need_text(fields, "_subscription_id"), reason=get_text(fields, "_reason") or ""
    )


def _wanted_fields(content: QueryRequest | SubscribeRequest, what: What) -> dict[str, object]:
    out: dict[str, object] = {"_what": what.value}
    if content.class_key is not None:
        out["_schema_id"] = class_key_to_map(content.class_key)
    if content.object_id is not None:
        out["_object_id"] = object_id_to_map(content.object_id)
    if content.where:
        out["_where"] = wire_value(list(content.where))
    if content.select:
        out["_select"] = list(content.select)
    if content.row_form:
        out["_row_form"] = UInt32(content.row_form)
    return out


def _positive(fields: Map, key: str) -> int:
    """A number that only saves work, so one of a wrong type does not spoil the question; 0 where there is none."""
    value = fields.get(key)
    return value if type(value) is int and value > 0 else 0


def _select(fields: Map) -> tuple[str, ...]:
    return tuple(need_text({"_select": name}, "_select") for name in get_list(fields, "_select"))


def _times(interval: float, lifetime: int) -> dict[str, object]:
    milliseconds = interval * 1000
    if not math.isfinite(milliseconds):
        raise EncodeError(f"_interval: {interval} seconds cannot be encoded")
    return {"_interval": UInt32(round(milliseconds)), "_lifetime": UInt32(lifetime)}


def _get_unsigned(fields: Map, key: str) -> int:
    value = get_int(fields, key)
    if not 0 <= value <= 0xFFFFFFFF:
        raise ProtocolError(f"{key} is {value}, not 0 to 4294967295")
    return value
