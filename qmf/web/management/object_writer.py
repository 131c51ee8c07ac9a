"""Objects as JSON, many of them in a short time: a compiled function for each class and choice of values.

Most values are what JSON has already. Only those whose JSON depends on their type, and those that an agent sent in
another type than its schema promises, are converted one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qmf._compile import compile_function
from qmf.console.aio import RemoteObject
from qmf.protocol.objects import as_dict
from qmf.schema import ClassSchema, Property, QmfType, Statistic
from qmf.web.addresses import agent_href, to_segment
from qmf.web.json_values import time_text, to_json

#: Classes and choices of values that are remembered.
_MAX_FORMS = 1000

#: Python types of values that JSON has, by base type; that of no value is in none.
_PLAIN = {"bool": "bool", "sstr": "str", "lstr": "str"}

Write = Callable[[RemoteObject, Mapping[str, object]], dict[str, Any]]


class JsonObjectWriter:
    """Makes JSON objects of objects. Integers in them may need `json_bytes` to be kept by every reader."""

    def __init__(self) -> None:
        self._forms: dict[object, tuple[ClassSchema, Write]] = {}
        self._agents: dict[str, str] = {}

    def json(self, obj: RemoteObject, fields: Sequence[str] | None = None) -> dict[str, object]:
        """An object.

        Args:
            fields: only these values, by wire name, as `values`; None for all, as `properties` and `statistics`. A
                value that the object lacks is null.
        """
        data, key = obj.data, obj.class_key
        name = obj.object_id.object_name
        found: dict[str, object] = {
            "name": name,
            "agent": obj.agent,
            "href": f"{self._agent(obj.agent)}/objects/{to_segment(name)}",
            "package": key.package if key else None,
            "class": key.name if key else None,
            "hash": key.hash if key else None,
            "updated": time_text(data.update_ts),
            "created": time_text(data.create_ts),
            "deleted": time_text(data.delete_ts),
        }
        schema = obj.schema
        if schema is None:
            return {**found, **_untyped_values(obj, fields)}
        form = (key, None if fields is None else tuple(fields))
        known = self._forms.get(form)
        if known is None or known[0] is not schema:
            if len(self._forms) >= _MAX_FORMS:
                self._forms.clear()
            known = self._forms[form] = schema, _compile(schema, fields)
        found.update(known[1](obj, as_dict(data.values)))
        return found

    def _agent(self, name: str) -> str:
        href = self._agents.get(name)
        if href is None:
            if len(self._agents) >= _MAX_FORMS:
                self._agents.clear()
            href = self._agents[name] = agent_href(name)
        return href


def _untyped_values(obj: RemoteObject, fields: Sequence[str] | None) -> dict[str, object]:
    if fields is None:
        return {"properties": to_json(obj.properties), "statistics": {}}
    return {"values": {name: to_json(obj.data.values.get(name)) for name in fields}}


def _compile(schema: ClassSchema, fields: Sequence[str] | None) -> Write:
    """The function that makes the values of an object of a class."""
    properties = {item.name: item for item in schema.properties}
    statistics = {entry.name: item for item in schema.statistics for entry in item.entries}
    names: dict[str, object] = {"convert": _convert}
    if fields is not None:
        members: dict[str, Property | Statistic | None] = {
            name: properties.get(name) or statistics.get(name) for name in fields
        }
        groups = {"values": members}
    else:
        groups = {"properties": dict(properties), "statistics": dict(statistics)}
    lines = []
    for group, items in groups.items():
        entries = []
        for name, item in items.items():
            place = len(names)
            names[f"k{place}"], names[f"t{place}"] = name, None if item is None else item.type
            plain = None if item is None else _plain(item.type)
            convert = f"convert(obj, k{place}, t{place})"
            entries.append(
                f"k{place}: {convert}"
                if plain is None
                else f"k{place}: x if (x := get(k{place})).__class__ is {plain} else {convert}"
            )
        lines.append(f"'{group}': {{{', '.join(entries)}}}")
    source = f"def write(obj, values):\n    get = values.get\n    return {{{', '.join(lines)}}}\n"
    found: Write = compile_function("write", source, names, schema.name)
    return found


def _plain(kind: QmfType) -> str | None:
    if kind.is_integer:
        return None if kind.base == "absTime" else "int"
    return _PLAIN.get(kind.base)


def _convert(obj: RemoteObject, name: str, kind: QmfType | None) -> object:
    return to_json(obj[name], kind)
