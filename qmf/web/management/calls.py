"""Method calls and changes of properties for a caller: arguments from JSON, results to JSON, the log."""

from __future__ import annotations

from collections.abc import Mapping

from qmf.console.aio import RemoteObject
from qmf.errors import ConstraintError, NotFoundError
from qmf.web.access.access import WebAccess
from qmf.web.access.rules import SET_PROPERTIES
from qmf.web.json_values import from_json, to_json
from qmf.web.scopes import Caller


async def call(
    obj: RemoteObject,
    method: str,
    arguments: Mapping[str, object],
    *,
    caller: Caller,
    access: WebAccess,
    timeout: float | None = None,
) -> dict[str, object]:
    """Call a method of an object for a caller; the agent learns the caller's name.

    Args:
        method: its name.
        arguments: by name, as JSON.
        access: has the rules, and the log, which gets the call and its result.
        timeout: seconds to wait; None for the console's.

    Returns:
        the outputs as JSON.

    Raises:
        Problem: 403, the rules deny it.
        QmfError: as of `RemoteObject.call`.
    """
    with access.acting(caller, "call", obj, method, method=method, arguments=arguments) as (called, record):
        inputs = _inputs(obj, method, arguments)
        outputs = _outputs(obj, method, await called.call(method, _timeout=timeout, **inputs))
        record["outputs"] = outputs
    return outputs


async def set_properties(
    obj: RemoteObject,
    values: Mapping[str, object],
    *,
    caller: Caller,
    access: WebAccess,
    timeout: float | None = None,
) -> None:
    """Set properties of an object for a caller, all or none; the agent learns the caller's name.

    Args:
        obj: the object; its values stay as they were.
        values: by name, as JSON.
        caller, access, timeout: as of `call`.

    Raises:
        Problem: 403, the rules deny it.
        QmfError: as of `RemoteObject.set`.
    """
    with access.acting(caller, "set", obj, SET_PROPERTIES, properties=values) as (changed, _):
        await changed.set(_timeout=timeout, **_values(obj, values))


def _inputs(obj: RemoteObject, method: str, arguments: Mapping[str, object]) -> dict[str, object]:
    known = obj.methods.get(method)
    if known is None:
        if obj.schema is not None:
            raise NotFoundError(f"method of {obj.schema.name}", method, obj.methods)
        return dict(arguments)
    kinds = {item.name: item.type for item in known.inputs}
    unknown = [name for name in arguments if name not in kinds]
    if unknown:
        raise NotFoundError(f"argument of {method}", unknown[0], kinds)
    return {name: from_json(value, kinds[name], f"argument '{name}' of {method}") for name, value in arguments.items()}


def _outputs(obj: RemoteObject, method: str, outputs: Mapping[str, object]) -> dict[str, object]:
    known = obj.methods.get(method)
    kinds = {} if known is None else {item.name: item.type for item in known.outputs}
    return {name: to_json(value, kinds.get(name)) for name, value in outputs.items()}


def _values(obj: RemoteObject, values: Mapping[str, object]) -> dict[str, object]:
    if not values:
        raise ConstraintError("properties", "object", {}, "must name at least one property")
    kinds = {} if obj.schema is None else {item.name: item.type for item in obj.schema.properties}
    unknown = [name for name in values if kinds and name not in kinds]
    if unknown:
        raise NotFoundError("property", unknown[0], kinds)
    return {
        name: from_json(value, kinds[name], f"property '{name}'") if name in kinds else value
        for name, value in values.items()
    }
