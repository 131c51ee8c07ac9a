"""Objects of a broker as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from qmf.client import Binding, Exchange, Queue
from qmf.client.objects import referenced_name
from qmf.views.records import JsonForm


def as_json(value: object) -> str:
    """The text of a value; what JSON does not have, such as bytes and ids, is a text."""
    return json.dumps(_FORM.plain(value), indent=2, ensure_ascii=False)


def values_of(item: Mapping[str, object]) -> dict[str, object]:
    """The values of an object, with the names of others instead of references."""
    return {name: referenced_name(value) for name, value in item.items()}


def bindings_by(end: str, bindings: Iterable[Binding]) -> Mapping[str, Sequence[Binding]]:
    """Bindings by the name of their exchange or queue, which `end` says: ``exchangeRef`` or ``queueRef``."""
    found: dict[str, list[Binding]] = {}
    for item in bindings:
        found.setdefault(getattr(item, end), []).append(item)
    return found


def with_bindings(items: Sequence[Exchange] | Sequence[Queue], bindings: Sequence[Binding]) -> list[dict[str, object]]:
    """Exchanges or queues with their bindings."""
    end = "exchangeRef" if items and isinstance(items[0], Exchange) else "queueRef"
    other = "queueRef" if end == "exchangeRef" else "exchangeRef"
    name = other.removesuffix("Ref")
    bound = bindings_by(end, bindings)
    return [
        values_of(item.values)
        | {
            "bindings": [
                {name: getattr(binding, other), "key": binding.bindingKey, "arguments": binding.arguments or {}}
                for binding in bound.get(item.name, ())
            ]
        }
        for item in items
    ]


_FORM = JsonForm(binary=lambda value: value.decode("utf-8", "backslashreplace"))
