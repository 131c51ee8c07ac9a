"""The tables of `qpid-stat` take as much work for each row, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import pytest
from support.growth import growth

from qmf.client import Broker, BrokerAgent, BrokerObject, Connection, Queue, Session, Subscription
from qmf.tools.stat.views import VIEWS, arrange
from qmf.tools.tables import table

#: A little more than eight times the work of an eighth: sorting.
MOST = 9.0

T = TypeVar("T", bound=BrokerObject)


def _reference(name: str) -> dict[str, str]:
    return {"_object_name": f"org.apache.qpid.broker:{name}"}


class _Broker:
    """A broker with so many of each."""

    def __init__(self, count: int) -> None:
        self._numbers = range(count)

    def _made(self, kind: type[T], make: Callable[[int], dict[str, Any]]) -> list[T]:
        return [
            kind(
                cast("BrokerAgent", self),
                {
                    "_values": make(number),
                    "_object_id": {
                        "_object_name": f"org.apache.qpid.broker:{kind.class_name}:{kind.class_name}-{number}"
                    },
                },
            )
            for number in self._numbers
        ]

    def getBroker(self) -> Broker:
        return Broker(cast("BrokerAgent", self), {"_values": {}})

    def getAllQueues(self) -> list[Queue]:
        return self._made(Queue, lambda number: {"name": f"queue-{number}", "msgDepth": number * 7 % 11})

    def getAllConnections(self) -> list[Connection]:
        return self._made(Connection, lambda number: {"address": f"connection-{number}", "msgsToClient": number})

    def getAllSessions(self) -> list[Session]:
        return self._made(
            Session,
            lambda number: {"name": f"{number}", "connectionRef": _reference(f"connection:connection-{number}")},
        )

    def getAllSubscriptions(self) -> list[Subscription]:
        return self._made(
            Subscription, lambda number: {"name": "x", "sessionRef": _reference(f"session:session-{number}")}
        )

    def list(self, name: str) -> Sequence[dict[str, Any]]:
        return [{"name": f"{name}-{number}", "sessionRef": _reference(f"session:{number}")} for number in self._numbers]


@pytest.mark.parametrize(
    ("name", "column", "times"), [("queues", "msg", 1), ("connections", "msgOut", 1), ("subscriptions", "conn", 2)]
)
def test_views(name: str, column: str, times: int) -> None:
    def prepare(count: int) -> Callable[[], object]:
        broker = cast("BrokerAgent", _Broker(count))

        def work() -> list[str]:
            (view,) = [arrange(item, column, increasing=False, limit=None) for item in VIEWS[name](broker)]
            return list(table(view.title, view.columns, view.rows))

        assert len(work()) == 3 + times * count
        return work

    assert growth(prepare, 16) < MOST
