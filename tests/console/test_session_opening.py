"""Opening and closing: time limits, cancelled calls, and what is bound or asked meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable

import pytest
from bus.peer import Peer, serving
from console.conftest import MakeAgent, MakeClient
from support.recording import RecordingConsole
from support.scripted_agent import WIDGET, widget
from support.waiting import until

from qmf.agent import ManagedObject
from qmf.broker import Broker, EmbeddedBroker
from qmf.bus import AmqpBus
from qmf.bus.backoff import Backoff
from qmf.bus.engine.events import Delivery, EngineEvent, LinkRequested
from qmf.console import Session
from qmf.console.aio import Client, EventRaised
from qmf.errors import ConnectError
from qmf.protocol import Content, QueryRequest, What
from qmf.testing import FakeAgent, InThread


@pytest.mark.parametrize(
    ("links", "words"), [(False, "granted no subscription"), (True, "accepted no message")], ids=["links", "credit"]
)
async def test_a_broker_that_does_not_go_on_is_given_up_in_time(links: bool, words: str) -> None:
    def script(peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested) and links:
            peer.grant(event.link, 0)

    async with serving(script) as peers:
        client = Client(peers.url)
        with pytest.raises(ConnectError, match=f"the broker {words} within"):
            await client.open(0.2)
        agent = FakeAgent(peers.url, WIDGET).agent
        with pytest.raises(ConnectError, match=f"the broker {words} within"):
            await agent.start(0.2)
        await until(lambda: all(peer.ended.done() for peer in peers.all), "the end")


async def test_opening_that_is_cancelled_leaves_no_connection() -> None:
    async with Broker(port=0) as broker:
        client = Client(broker.url, settle=60)
        opening = asyncio.create_task(client.open())
        await until(lambda: broker.connections == 1)
        await until(lambda: client.connected)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await until(lambda: broker.connections == 0)


async def test_a_key_that_is_bound_again_swallows_nothing(make_client: MakeClient, make_agent: MakeAgent) -> None:
    agent = await make_agent()
    client, heard = await make_client(events=False, data=False)
    wide, narrow = "agent.ind.event.#", "agent.ind.event.org_example_widgets.#"
    await client.bind(wide, narrow)
    await client.unbind(wide)
    await client.bind(wide)
    for count in (1, 2):
        await agent.raise_event({"name": "w", "level": 1})
        await until(lambda wanted=count: len(heard.of(EventRaised)) == wanted)  # type: ignore[misc]


class NoV1:
    """A broker whose first connection has no `amq.direct`."""

    def __init__(self) -> None:
        self.granted: list[tuple[Peer, str | None]] = []
        self.first: Peer | None = None

    def __call__(self, peer: Peer, event: EngineEvent) -> None:
        self.first = self.first or peer
        if isinstance(event, LinkRequested):
            node = event.link.source if event.link.is_sender else event.link.target
            address = node.address if node is not None else None
            if address == "amq.direct" and peer is self.first:
                peer.engine.links.refuse(event.link, "amqp:not-found", "no such exchange")
            else:
                peer.grant(event.link)
                self.granted.append((peer, address))
        elif isinstance(event, Delivery) and event.delivery_tag is not None:
            peer.engine.decisions.settle(event.link, event.delivery_tag)


async def test_another_broker_after_a_loss_may_have_what_the_first_had_not() -> None:
    script = NoV1()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url, backoff=Backoff(first=0.01, jitter=0))
        client = Client(bus, settle=0)
        await bus.open()
        await client.open()
        peers.all[0].transport.abort()
        await until(lambda: any(address == "amq.direct" for _, address in script.granted))
        await client.close()
        await bus.close()


async def test_schemas_are_waited_for_no_longer_than_the_question(
    make_client: MakeClient, make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    answer = agent.answer

    def without_schemas(content: Content) -> list[tuple[Content, bool]]:
        return [] if isinstance(content, QueryRequest) and content.what is What.SCHEMA else answer(content)

    monkeypatch.setattr(agent, "answer", without_schemas)
    client, _ = await make_client(timeout=60)
    async with asyncio.timeout(10):
        found = await client.objects("widget", timeout=0.1)
    assert [item["name"] for item in found] == ["w"]


@pytest.mark.slow
def test_what_is_bound_while_a_managed_connection_comes_up_is_bound() -> None:
    console = RecordingConsole()
    with (
        EmbeddedBroker(port=0) as broker,
        InThread(lambda: FakeAgent(broker.url, WIDGET, interval=0.1)) as fake,
        Session(console, manageConnections=True, userBindings=True) as session,
    ):
        session.addBroker(broker.url)
        session.bindClass(WIDGET.package, WIDGET.name)
        console.wait("brokerConnected")

        async def add() -> None:
            fake.it.add("widget", name="late")

        fake.run(add())
        assert console.wait("objectProps")


@pytest.mark.slow
def test_calls_without_answer_are_answered_when_the_broker_is_deleted() -> None:
    asked = threading.Event()

    def never(obj: ManagedObject) -> Awaitable[None]:
        del obj
        asked.set()
        return asyncio.Event().wait()  # type: ignore[return-value]

    def serve() -> FakeAgent:
        fake = FakeAgent(broker.url, WIDGET)
        fake.add("widget", name="w")
        fake.on("widget", "stop", never)
        return fake

    console = RecordingConsole()
    with EmbeddedBroker(port=0) as broker, InThread(serve), Session(console) as session:
        added = session.addBroker(broker.url)
        (obj,) = session.getObjects(_class="widget")
        number = obj.stop(_async=True, _timeout=60)
        assert asked.wait(5)
        session.delBroker(added)
        ((_, seq, result),) = console.wait("methodResponse")
        assert (seq, result.status != 0) == (number, True)
