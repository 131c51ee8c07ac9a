"""The keyword arguments of `getObjects`, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from qmf import schema
from qmf.console.identity import ClassKey, ObjectId
from qmf.console.proxies import Agent, Broker, plain_value
from qmf.console.schema_views import SchemaClass
from qmf.errors import CallerError, ConstraintError, NotFoundError
from qmf.protocol import ObjectId as CoreId

#: Seconds that a query waits when it does not specify it.
GET_TIME = 60.0

_KNOWN = ("_schema", "_key", "_class", "_package", "_objectId", "_agent", "_broker", "_timeout")


@attrs.frozen(kw_only=True)
class Selection:
    """Which objects a program wants.

    Attributes:
        name, package: class name and package, or None.
        class_key: class key, or None.
        object_id: id of one object, or None.
        agent: the only agent to ask; None for all.
        broker: the only broker through which to ask; None for all.
        timeout: seconds.
        values: values that the objects must have, by name.
    """

    name: str | None = None
    package: str | None = None
    class_key: schema.ClassKey | None = None
    object_id: CoreId | None = None
    agent: Agent | None = None
    broker: Broker | None = None
    timeout: float = GET_TIME
    values: Mapping[str, object] = attrs.field(factory=dict)


def select(arguments: Mapping[str, Any]) -> Selection:
    """Read the arguments.

    Raises:
        NotFoundError: an unknown argument that starts with ``_``.
        ConstraintError: an argument of the wrong type.
        CallerError: no class and no object id, or several of them.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    _check_names(given)
    values = {name: plain_value(value) for name, value in given.items() if not name.startswith("_")}
    chosen: SchemaClass | None = _argument(given, "_schema", SchemaClass)
    key: ClassKey | None = chosen.getKey() if chosen else _argument(given, "_key", ClassKey)
    wanted: ObjectId | None = _argument(given, "_objectId", ObjectId)
    return Selection(
        name=_argument(given, "_class", str),
        package=_argument(given, "_package", str),
        class_key=key.core if key else None,
        object_id=wanted.core if wanted else None,
        agent=_argument(given, "_agent", Agent),
        broker=_argument(given, "_broker", Broker),
        timeout=_seconds(given.get("_timeout", GET_TIME)),
        values=values,
    )


def _check_names(given: Mapping[str, Any]) -> None:
    """Refuse unknown arguments, and combinations that select nothing or twice."""
    for name in given:
        if name.startswith("_") and name not in _KNOWN:
            raise NotFoundError("argument of getObjects", name, _KNOWN)
    ways = [name for name in ("_schema", "_key", "_class", "_objectId") if name in given]
    if len(ways) != 1:
        raise CallerError(
            f"getObjects: give one of _class, _key, _schema and _objectId, not {', '.join(ways) or 'none'}"
        )
    if "_package" in given and ways != ["_class"]:
        raise CallerError(f"getObjects: _package goes with _class, not with {ways[0]}")


def _argument(given: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    value = given.get(name)
    if value is not None and not isinstance(value, kind):
        raise ConstraintError(f"argument {name} of getObjects", kind.__name__, value, f"must be a {kind.__name__}")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ConstraintError("argument _timeout of getObjects", "seconds", value, "must be a number from 0")
    return float(value)
