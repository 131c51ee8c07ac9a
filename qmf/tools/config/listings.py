"""What `qpid-config` shows, in the formats of release 1.40. Reads from the broker and returns lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from qmf.client import Binding, BrokerAgent, Exchange, Queue
from qmf.client.objects import referenced_name
from qmf.tools.config import arguments as names
from qmf.tools.tables import TextColumn, table
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


#: Arguments of queues that are shown as the option that sets them; the values of flags are left out.
_QUEUE_OPTIONS = {
    names.REPLICATE: "--replicate",
    **{name: f"--{option.replace('_', '-')}" for option, name in names.STORE.items()},
    **{name: f"--{option.replace('_', '-')}" for option, name in names.LIMITS.items()},
    names.POLICY: "--limit-policy",
    names.LVQ_KEY: "--lvq-key",
    names.EVENTS: "--generate-queue-events",
    **{name: f"--{option.replace('_', '-')}" for option, name in names.FLOW.items()},
    names.GROUP_HEADER: "--group-header",
}
_QUEUE_FLAGS = {
    names.SHARED_GROUPS: "--shared-groups",
    names.LVQ: "--order=lvq",
    names.LVQ_NO_BROWSE: "--order=lvq-no-browse",
}
#: Properties that ``list`` shows by default; of other classes the first `_SHOWN`.
_DEFAULT_PROPERTIES = {
    "exchange": ["name", "type", "durable"],
    "queue": ["name", "durable", "autoDelete"],
    "domain": ["name", "url", "mechanisms", "username", "durable"],
    "incoming": ["name", "domain", "source", "target", "transfers"],
    "outgoing": ["name", "domain", "source", "target", "transfers"],
    "link": ["name", "host", "port", "durable", "state", "lastError"],
}
_SHOWN = 6


def overview(broker: BrokerAgent, *, own: bool) -> Iterator[str]:
    """The numbers of exchanges by type, and of queues; `own`: with those of agents, consoles and tools."""
    counts = overview_counts(broker, own=own)
    yield f"Total Exchanges: {sum(counts['exchanges'].values())}"
    for kind, count in counts["exchanges"].items():
        yield f"{kind:>15}: {count}"
    yield ""
    yield f"   Total Queues: {sum(counts['queues'].values())}"
    for kind, count in counts["queues"].items():
        yield f"{kind:>15}: {count}"


def overview_counts(broker: BrokerAgent, *, own: bool) -> dict[str, dict[str, int]]:
    """The numbers of `overview`."""
    exchanges, (queues, _) = broker.getAllExchanges(), selected_queues(broker, "", own=own)
    durable = sum(1 for queue in queues if queue.durable)
    return {
        "exchanges": dict(Counter(str(exchange.type) for exchange in exchanges)),
        "queues": {"durable": durable, "non-durable": len(queues) - durable},
    }


def selected_exchanges(broker: BrokerAgent, text: str, *, ignore_default: bool) -> list[Exchange]:
    """The exchanges whose names contain a text."""
    return [item for item in broker.getAllExchanges() if text in item.name and (item.name or not ignore_default)]


def selected_queues(broker: BrokerAgent, text: str, *, own: bool) -> tuple[list[Queue], int]:
    """The queues whose names contain a text, and how many are left out.

    Those of agents, consoles and tools are left out unless `own`, or if one is named in full.
    """
    found = [item for item in broker.getAllQueues() if text in item.name]
    shown = [item for item in found if own or not item.is_own or item.name == text]
    return shown, len(found) - len(shown)


def exchange_list(exchanges: Sequence[Exchange]) -> Iterator[str]:
    """Exchanges with their types and attributes."""
    kind = "Type      "
    width = max(len("Exchange Name"), *(len(item.name) for item in exchanges))
    yield f"{kind}{'Exchange Name':<{width}}  Attributes"
    yield "=====" * ((width + len(kind)) // 5 + 5)
    for item in exchanges:
        yield f"{item.type:<10}{item.name:<{width}}  {' '.join(exchange_attributes(item))}".rstrip()


def queue_list(queues: Sequence[Queue]) -> Iterator[str]:
    """Queues with their attributes."""
    width = max(len("Queue Name"), *(len(item.name) for item in queues))
    yield f"{'Queue Name':<{width}}  Attributes"
    yield "=====" * (width // 5 + 5)
    for item in queues:
        yield f"{item.name:<{width}}  {' '.join(queue_attributes(item))}".rstrip()


def exchange_attributes(exchange: Exchange) -> Iterator[str]:
    """The options that would create the exchange again."""
    given = exchange.arguments or {}
    if exchange.durable:
        yield "--durable"
    if names.REPLICATE in given:
        yield f"--replicate={given[names.REPLICATE]}"
    if given.get(names.SEQUENCE):
        yield "--sequence"
    if given.get(names.IVE):
        yield "--ive"
    if exchange.altExchange:
        yield f"--alternate-exchange={exchange.altExchange}"


def queue_attributes(queue: Queue) -> Iterator[str]:
    """The options that would create the queue again; ``auto-del`` and ``excl`` have none."""
    given = queue.arguments or {}
    for shown, text in ((queue.durable, "--durable"), (queue.autoDelete, "auto-del"), (queue.exclusive, "excl")):
        if shown:
            yield text
    for name, option in _QUEUE_OPTIONS.items():
        if name in given:
            value = str(given[name])
            yield f"{option}={value.replace('_', '-') if name == names.POLICY else value}"
    if queue.altExchange:
        yield f"--alternate-exchange={queue.altExchange}"
    for name, text in _QUEUE_FLAGS.items():
        if given.get(name):
            yield text
    for name, value in given.items():
        if name not in _QUEUE_OPTIONS and name not in _QUEUE_FLAGS:
            yield f"--argument {name}={value}"


def exchange_bindings(exchanges: Sequence[Exchange], bindings: Sequence[Binding]) -> Iterator[str]:
    """Exchanges, each with what is bound to it."""
    bound = bindings_by("exchangeRef", bindings)
    for exchange in exchanges:
        yield f"Exchange '{exchange.name}' ({exchange.type})"
        for item in bound.get(exchange.name, ()):
            yield _binding(item, item.queueRef)


def queue_bindings(queues: Sequence[Queue], bindings: Sequence[Binding], *, ignore_default: bool) -> Iterator[str]:
    """Queues, each with the exchanges that it is bound to."""
    bound = bindings_by("queueRef", bindings)
    for queue in queues:
        yield f"Queue '{queue.name}'"
        for item in bound.get(queue.name, ()):
            if item.exchangeRef or not ignore_default:
                yield _binding(item, item.exchangeRef or "''")


def _binding(item: Binding, other: str) -> str:
    return f"    bind [{item.bindingKey}] => {other}{f' {item.arguments}' if item.arguments else ''}"


def object_table(class_name: str, objects: Sequence[Mapping[str, Any]], properties: Sequence[str]) -> Iterator[str]:
    """Objects of any class.

    Args:
        class_name: as the user gave it.
        objects: values by name.
        properties: what to show; none for the default.
    """
    known = known_properties(objects)
    shown = [name for name in properties if name in known] if properties else _DEFAULT_PROPERTIES.get(class_name)
    shown = known[:_SHOWN] if shown is None else shown
    rows = [[referenced_name(item.get(name, "n/a")) for name in shown] for item in objects]
    yield from table(f"Objects of type '{class_name}'", [TextColumn(name) for name in shown], rows)


def known_properties(objects: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of all values that objects have, ``name`` first."""
    known = list(dict.fromkeys(name for item in objects for name in item))
    return sorted(known, key=lambda name: name != "name")
