"""A broker with management, and a console that sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from support.waiting import until

from qmf.broker import Broker
from qmf.bus import AmqpBus, Bus
from qmf.console.aio import Client, EventRaised
from qmf.console.typed import ObjectId, TypedObject
from qmf.models.broker import console as remote

TOPIC = "amq.topic"


#: Publications that come while a test waits for them, and such that don't come into any test.
OFTEN, NEVER = 0.05, 3600.0


@asynccontextmanager
async def managed(interval: float = NEVER, **options: object) -> AsyncIterator[tuple[Broker, Client]]:
    """A broker with an agent, and a console that knows it."""
    async with Broker(port=0, management=interval, **options) as broker, Client(broker.url, settle=0.0) as client:  # type: ignore[arg-type]
        await knows_agent(client)
        yield broker, client


async def knows_agent(client: Client) -> None:
    # Heartbeats are rare here, so it is asked for.
    await client.locate(settle=0.0)
    await until(lambda: client.agents, "the agent of the broker")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Bus]:
    """A plain client."""
    bus = AmqpBus(url)
    await bus.open()
    yield bus
    await bus.close()


class Raised:
    """Collects events."""

    def __init__(self, client: Client) -> None:
        self.all: list[tuple[str, int, dict[str, object]]] = []
        client.listen(self._on_notification)

    def __call__(self, name: str, **wanted: object) -> list[dict[str, object]]:
        """The arguments of events of a class, which have these values."""
        return [values for kind, _, values in self.all if kind == name and wanted.items() <= values.items()]

    def _on_notification(self, notification: object) -> None:
        if isinstance(notification, EventRaised) and notification.event.class_key is not None:
            event = notification.event
            assert event.class_key is not None
            self.all.append((event.class_key.name, event.severity, dict(event.arguments)))


def id_of(item: TypedObject) -> ObjectId:
    found = item._qmf_remote.object_id
    assert found is not None
    return found


async def queues(client: Client) -> Mapping[str, remote.Queue]:
    return {item.name: item for item in await client.objects(remote.Queue)}


async def exchange(client: Client, name: str) -> remote.Exchange:
    (found,) = [item for item in await client.objects(remote.Exchange) if item.name == name]
    return found


class Control:
    """A `ProcessControl` that keeps what it is told."""

    def __init__(self) -> None:
        self.log_rules = "notice+"
        self.precise_times = False
        self.ended = False

    def set_log_rules(self, text: str) -> None:
        if text == "loud":
            raise ValueError("log rule 'loud'")
        self.log_rules = text

    def set_precise_times(self, precise: bool) -> None:
        self.precise_times = precise

    def shut_down(self) -> None:
        self.ended = True
