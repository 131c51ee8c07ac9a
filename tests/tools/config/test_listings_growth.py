"""What `qpid-config` shows takes as much work for each thing in it, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import pytest
from support.growth import growth

from qmf.client import Binding, BrokerAgent, BrokerObject, Exchange, Queue
from qmf.tools.config import listings
from qmf.tools.config.listings import as_json, with_bindings

#: A little more than eight times the work of an eighth.
MOST = 8.5

T = TypeVar("T", bound=BrokerObject)


def _made(kind: type[T], count: int, **values: object) -> list[T]:
    """So many objects; `{}` in a value becomes the number of each."""
    broker = cast("BrokerAgent", None)  # is used for changes only
    return [
        kind(broker, {"_values": {k: v.format(n) if isinstance(v, str) else v for k, v in values.items()}})
        for n in range(count)
    ]


def _queues(count: int) -> list[Queue]:
    return _made(Queue, count, name="queue-{}", durable=True, arguments={"qpid.max_count": 3})


def _exchanges(count: int) -> list[Exchange]:
    return _made(Exchange, count, name="exchange-{}", type="topic")


def _bindings(count: int) -> list[Binding]:
    return _made(Binding, count, queueRef="queue-{}", exchangeRef="exchange-{}", bindingKey="key-{}")


LISTS: dict[str, Callable[[int], Callable[[], Iterable[Any]]]] = {
    "queues": lambda count: lambda: listings.queue_list(_queues(count)),
    "exchanges": lambda count: lambda: listings.exchange_list(_exchanges(count)),
    "queues with bindings": lambda count: (
        lambda: listings.queue_bindings(_queues(count), _bindings(count), ignore_default=True)
    ),
    "exchanges with bindings": lambda count: lambda: listings.exchange_bindings(_exchanges(count), _bindings(count)),
    "queues as JSON": lambda count: lambda: as_json(with_bindings(_queues(count), _bindings(count))),
    "exchanges as JSON": lambda count: lambda: as_json(with_bindings(_exchanges(count), _bindings(count))),
    "any objects": lambda count: lambda: listings.object_table("queue", [item.values for item in _queues(count)], ()),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists(name: str) -> None:
    def prepare(count: int) -> Callable[[], Sequence[Any]]:
        work = LISTS[name](count)
        assert sum(1 for _ in work()) >= count
        return lambda: list(work())

    assert growth(prepare, 16) < MOST
