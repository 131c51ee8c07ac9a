"""Parts of the description (OpenAPI) of these routes that their signatures don't say."""

from __future__ import annotations

from typing import Any

_MEANINGS = {
    400: "malformed",
    403: "not allowed by the broker, or a host that may not be pushed to",
    404: "no such destination or consumer",
    409: "in conflict with the destination, or with a subscription of that name",
    410: "the consumer has ended",
    412: "out of step: the header names the right link",
    413: "the body is too long",
    415: "a body of another kind",
    501: "not provided by this broker",
    502: "refused by the broker",
    503: "no message, no connection to the broker, or too many consumers",
}

_PARAMETERS: dict[str, dict[str, object]] = {
    "autoAck": {"type": "boolean", "default": True, "description": "messages count as acknowledged when pulled"},
    "selector": {"type": "string", "description": "condition on the properties of messages"},
    "idle-timeout": {"type": "integer", "minimum": 1, "description": "milliseconds until an idle consumer ends"},
    "durable": {"type": "boolean", "default": False, "description": "the subscription outlives the server"},
    "name": {"type": "string", "description": "of the subscription"},
    "delete-when-idle": {"type": "boolean", "default": False, "description": "an idle consumer ends its subscription"},
    "acknowledge": {"type": "boolean", "description": "true: processed; false: to be delivered again"},
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Answers that are problems."""
    content = {"application/problem+json": {"schema": {"type": "object"}}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in (*statuses, 501, 502)}


def form(*names: str) -> dict[str, Any]:
    """A body that is a form with these parameters."""
    schema = {
        "type": "object",
        "properties": {name: _PARAMETERS[name] for name in names},
        "additionalProperties": False,
    }
    required = names == ("acknowledge",)
    if required:
        schema["required"] = list(names)
    return {"requestBody": {"required": required, "content": {"application/x-www-form-urlencoded": {"schema": schema}}}}


def any_body() -> dict[str, Any]:
    """A body of any kind."""
    return {"requestBody": {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}}


def registration() -> dict[str, Any]:
    """The document of a push registration."""
    return {"requestBody": {"required": True, "content": {"application/xml": {"schema": {"type": "string"}}}}}


def creation() -> dict[str, Any]:
    """The body and the query parameters of the creation of a message."""
    described: dict[str, dict[str, object]] = {
        "durable": {"type": "boolean", "default": False, "description": "kept over a restart of the broker"},
        "ttl": {"type": "integer", "minimum": 0, "description": "milliseconds until it expires"},
        "expiration": {"type": "integer", "minimum": 0, "description": "when it expires: milliseconds since 1970"},
        "priority": {"type": "integer", "minimum": 0, "maximum": 9},
    }
    parameters = [{"name": name, "in": "query", "schema": schema} for name, schema in described.items()]
    return {**any_body(), "parameters": parameters}
