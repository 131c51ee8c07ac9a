"""A schema as JSON Schema (draft 2020-12): one definition per class and event, under ``$defs``.

A class's definition describes an object as a JSON mapping of its values by wire name (QMF2.md 6): a `hilo32` called `x`
is `x`, `xHigh` and `xLow`. Annotations ``x-qmf-...``, which validators ignore, hold what JSON Schema cannot express.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from uuid import UUID

from qmf.schema import TYPES, Argument, ClassSchema, EventSchema, Method, Property, QmfType, Schema, Statistic
from qmf_codegen import headers

Json = dict[str, object]

#: Definition of references. No name in a schema begins with an underscore.
_OBJECT_ID = "_ObjectId"

_JSON_TYPES = {
    "bool": "boolean",
    "sstr": "string",
    "lstr": "string",
    "float": "number",
    "double": "number",
    "uuid": "string",
    "map": "object",
    "list": "array",
}


def document(schema: Schema, source: str) -> str:
    """The JSON Schema document of a schema from file `source`."""
    definitions: Json = {item.name: _class(item) for item in schema.classes}
    for event in schema.events:
        name = event.name
        while name in definitions:
            name += "Event"
        definitions[name] = _event(event)
    whole = {
        "$comment": headers.notice(source),
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:qmf:{schema.package}",
        "title": schema.package,
        **_present(description=schema.desc),
        "$defs": {**definitions, _OBJECT_ID: _object_id()},
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _class(item: ClassSchema) -> Json:
    properties: Json = {field.name: _property(field) for field in item.properties}
    for statistic in item.statistics:
        properties |= _statistic(statistic)
    required = [field.name for field in item.properties if not field.optional and field.type.name != "objId"]
    return {
        **_head("class", item),
        "type": "object",
        "properties": properties,
        **_present(required=required or None),
        **({"x-qmf-methods": {method.name: _method(method) for method in item.methods}} if item.methods else {}),
    }


def _event(item: EventSchema) -> Json:
    return {
        **_head("event", item),
        **_present(**{"x-qmf-severity": None if item.severity is None else item.severity.schema_name}),
        **_arguments(item.arguments),
    }


def _method(item: Method) -> Json:
    return {
        **_present(description=item.desc),
        "inputs": _arguments(item.inputs),
        "outputs": _arguments(item.outputs),
    }


def _arguments(items: Iterable[Argument]) -> Json:
    found = list(items)
    required = [item.name for item in found if item.type.name != "objId" and item.default is None]
    return {
        "type": "object",
        "properties": {item.name: _value(item, item.type) | _default(item) for item in found},
        **_present(required=required or None),
    }


def _head(kind: str, item: ClassSchema | EventSchema) -> Json:
    hash = None if item.hash is None else str(item.hash)
    return {
        "title": item.name,
        **_present(description=item.desc),
        "x-qmf-kind": kind,
        "x-qmf-package": item.package,
        **_present(**{"x-qmf-hash": hash}),
    }


def _property(item: Property) -> Json:
    flags = {
        "x-qmf-index": item.index,
        "x-qmf-optional": item.optional,
        "x-qmf-parent-ref": item.parent_ref,
        "x-qmf-general-reference": item.general_reference,
    }
    return {
        **_value(item, item.type),
        "x-qmf-access": item.access.value,
        **{name: True for name, value in flags.items() if value},
    }


def _statistic(item: Statistic) -> Json:
    """Each wire value of a statistic, with the name of the statistic."""
    out: Json = {}
    for number, entry in enumerate(item.entries):
        # The number of samples is an integer, whatever the type of the samples.
        counts = len(item.entries) == 4 and number == 0
        value = _value(item, TYPES["uint64"] if counts else item.type)
        if entry.v1_suffix:
            value |= _present(description=f"{item.desc}{entry.v1_suffix}" if item.desc else None)
        value["x-qmf-type"] = item.type.name
        value["x-qmf-statistic"] = item.name
        out[entry.name] = value | _present(**{"x-qmf-assign": item.assign})
    return out


def _value(item: Property | Statistic | Argument, type: QmfType) -> Json:
    reference = None if item.references is None else str(item.references)
    return {
        **_type(item, type),
        **_present(description=item.desc),
        "x-qmf-type": type.name,
        **_present(**{"x-qmf-unit": item.unit, "x-qmf-references": reference}),
    }


def _type(item: Property | Statistic | Argument, type: QmfType) -> Json:
    if type.name == "objId":
        return {"$ref": f"#/$defs/{_OBJECT_ID}"}
    if type.is_integer:
        low, high = _or(item.minimum, type.minimum), _or(item.maximum, type.maximum)
        return {"type": "integer", "minimum": low, "maximum": high}
    out: Json = {"type": _JSON_TYPES[type.name]}
    if type.name == "uuid":
        out["format"] = "uuid"
    if type.is_string:
        # JSON Schema counts characters, QMF octets: a text with too many characters has too many octets.
        out["maxLength"] = out["x-qmf-max-octets"] = _or(item.max_len, type.max_bytes)
    for key, bound in (("minimum", item.minimum), ("maximum", item.maximum)):
        if bound is not None and math.isfinite(bound):
            out[key] = bound
    return out


def _default(item: Argument) -> Json:
    value = str(item.default) if isinstance(item.default, UUID) else item.default
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return {}
    return {"default": value}


def _object_id() -> Json:
    return {
        "title": "Object id",
        "description": "Identifies an object of an agent",
        "type": "object",
        "properties": {
            "_object_name": {"type": "string"},
            "_agent_name": {"type": "string"},
            "_agent_epoch": {"type": "integer", "minimum": 0},
        },
        "required": ["_object_name"],
    }


def _or(value: float | None, otherwise: float | None) -> float | None:
    return otherwise if value is None else value


def _present(**values: object) -> Json:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}
