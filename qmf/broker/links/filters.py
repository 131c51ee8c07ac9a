"""From the filters of a source to what an exchange understands (QMF2.md 1.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qmf.broker.nodes.exchanges import BindingSpec
from qmf.bus.engine.values import Filter

_DIRECT = frozenset({"apache.org:legacy-amqp-direct-binding:string", 0x0000468C00000000})
_TOPIC = frozenset({"apache.org:legacy-amqp-topic-binding:string", 0x0000468C00000001})
_HEADERS = frozenset({"apache.org:legacy-amqp-headers-binding:map", 0x0000468C00000002})


def read_filters(filters: Iterable[Filter]) -> tuple[BindingSpec, tuple[Filter, ...]]:
    """What the filters of a source mean.

    Only the first filter of a kind that we know counts. Without any, the binding key is empty: on topic and
    direct exchanges that receives nothing of use, as with qpidd.

    Returns:
        the match, and the filter that made it, for the answer to the peer: what is not echoed was not applied.

    Raises:
        ValueError: the value of a known filter has the wrong type; says which.
    """
    for entry in filters:
        if entry.descriptor in _DIRECT or entry.descriptor in _TOPIC:
            if not isinstance(entry.value, str):
                raise ValueError(f"filter {entry.name} needs a string")
            return BindingSpec(key=entry.value), (entry,)
        if entry.descriptor in _HEADERS:
            if not isinstance(entry.value, Mapping) or not all(isinstance(name, str) for name in entry.value):
                raise ValueError(f"filter {entry.name} needs a map with strings as keys")
            return BindingSpec(headers={str(name): _plain(value) for name, value in entry.value.items()}), (entry,)
    return BindingSpec(), ()


def _plain(value: object) -> object:
    """Binary as text where it is text, as application properties are decoded, too."""
    if isinstance(value, bytes | memoryview):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value)
    return value
