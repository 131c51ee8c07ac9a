"""Agents, classes, schemas, objects and events as JSON objects."""

from __future__ import annotations

from qmf.console.aio import Agent, AnySchema, RemoteEvent
from qmf.schema import (
    Argument,
    ClassKey,
    ClassSchema,
    Kind,
    Method,
    Property,
    QmfType,
    Statistic,
    Style,
)
from qmf.views.events import severity_name
from qmf.web.addresses import agent_href, schema_href
from qmf.web.json_values import reference, time_text, to_json

Json = dict[str, object]


def agent_json(agent: Agent) -> Json:
    """An agent as it is known now."""
    info = agent.info
    return {
        "name": agent.name,
        "href": agent_href(agent.name),
        "vendor": agent.vendor,
        "product": agent.product,
        "instance": agent.instance,
        "epoch": to_json(agent.epoch),
        "broker": agent.is_broker,
        "announced": agent.is_announced,
        "subscriptions": agent.supports_subscriptions,
        "heartbeatInterval": info.heartbeat_interval or None,
        "heard": time_text(info.timestamp),
        "schemaUpdated": time_text(info.schema_updated),
        "attributes": to_json(info.attributes),
    }


def class_json(key: ClassKey) -> Json:
    """A class or event class by its key."""
    return {
        "package": key.package,
        "name": key.name,
        "kind": "event" if key.kind is Kind.EVENT else "object",
        "hash": None if key.hash is None else str(key.hash),
        "schema": schema_href(key.package, key.name, key.hash),
    }


def schema_json(schema: AnySchema) -> Json:
    """A schema, with types, units and bounds."""
    found: Json = {**class_json(schema.key), "description": schema.desc}
    if isinstance(schema, ClassSchema):
        found["properties"] = [_property(item) for item in schema.properties]
        found["statistics"] = [_statistic(item) for item in schema.statistics]
        found["methods"] = [_method(item) for item in schema.methods]
    else:
        severity = schema.severity
        found["severity"] = None if severity is None else severity.schema_name
        found["arguments"] = [_argument(item) for item in schema.arguments]
    return found


def _type_json(kind: QmfType) -> Json:
    return {"type": kind.name, "json": json_type(kind)}


def json_type(kind: QmfType) -> object:
    """The type of a value in JSON Schema."""
    match kind.base:
        case "absTime":
            return {"type": ["string", "null"], "format": "date-time"}
        case "uuid":
            return {"type": "string", "format": "uuid"}
        case "objId":
            return {"type": ["object", "null"]}
        case "map":
            return {"type": "object"}
        case "list":
            return {"type": "array"}
        case "bool":
            return {"type": "boolean"}
        case "float" | "double":
            return {"type": ["number", "string"]}
        case "sstr" | "lstr":
            return {"type": "string", "maxLength": kind.max_bytes}
    limits: Json = {"minimum": to_json(kind.minimum), "maximum": to_json(kind.maximum)}
    if kind.maximum is not None and kind.maximum >= 2**53:
        return {"type": ["integer", "string"], **limits}
    return {"type": "integer", **limits}


def _bounds(item: Argument | Property | Statistic) -> Json:
    bounds: Json = {"minimum": to_json(item.minimum), "maximum": to_json(item.maximum), "maxLength": item.max_len}
    return {name: value for name, value in bounds.items() if value is not None}


def _property(item: Property) -> Json:
    found: Json = {"name": item.name, **_type_json(item.type), "access": item.access.value, "unit": item.unit}
    found |= {"index": item.index, "optional": item.optional, **_bounds(item), "description": item.desc}
    if item.references is not None:
        found["references"] = str(item.references)
    return found


def _statistic(item: Statistic) -> Json:
    found: Json = {"name": item.name, **_type_json(item.type), "style": item.type.style.value, "unit": item.unit}
    found |= {**_bounds(item), "description": item.desc}
    if item.type.style in (Style.HILO, Style.MMA):
        found["values"] = [entry.name for entry in item.entries]
    if item.assign is not None:
        found["assign"] = item.assign
    return found


def _method(item: Method) -> Json:
    return {"name": item.name, "description": item.desc, "arguments": [_argument(each) for each in item.arguments]}


def _argument(item: Argument) -> Json:
    found: Json = {"name": item.name, **_type_json(item.type), "direction": item.direction.value, "unit": item.unit}
    found |= {"default": to_json(item.default, item.type), **_bounds(item), "description": item.desc}
    return found


def event_json(event: RemoteEvent) -> Json:
    """An event."""
    key = event.class_key
    types = {} if event.schema is None else {item.name: item.type for item in event.schema.arguments}
    return {
        "agent": event.agent.name,
        "package": key.package if key else None,
        "class": key.name if key else None,
        "time": time_text(event.timestamp),
        "severity": severity_name(event.severity),
        "arguments": {name: to_json(value, types.get(name)) for name, value in event.arguments.items()},
        "object": None if event.object_id is None else reference(event.object_id),
    }
