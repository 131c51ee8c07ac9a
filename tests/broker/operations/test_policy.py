"""What the policy refuses is refused by each way: links, messages, transactions, methods, buses inside the process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import proton
import pytest
from broker.management.managed import NEVER, Control, knows_agent
from broker.operations.rules import REASON, Rules, refusing, state
from broker.raw_clients import Client, connect
from broker.visible_broker import VisibleBroker
from proton.reactor import DurableSubscription, LinkOption
from proton.utils import BlockingConnection
from proton.utils import LinkDetached as LinkRefused
from support.recording import message
from support.waiting import until

from qmf.broker import Broker, EmbeddedBroker
from qmf.broker.local_bus import LocalBus
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import Action, ObjectType, OperationRefused
from qmf.bus import AmqpBus, Binding
from qmf.bus.engine.events import LinkAttached, LinkDetached, OutcomeReceived
from qmf.bus.engine.resumption import Resumption
from qmf.bus.engine.values import Durability, ExpiryPolicy, Outcome, Terminus
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, encode_message
from qmf.console.aio import Client as Console
from qmf.errors import ConnectError, LinkError, RemoteError
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message
from qmf.models.broker import console as remote
from qmf.protocol import ErrorCode

UNAUTHORIZED = "amqp:unauthorized-access"

LASTING = {"durability": Durability.UNSETTLED_STATE, "expiry": ExpiryPolicy.NEVER}
DELETE_ON_CLOSE = {"capabilities": ("queue",), "properties": {"lifetime-policy": "amqp:delete-on-close:list"}}
BIND = {"qmf.link-bindings": [{"exchange": "amq.direct", "key": "k"}]}
BIND_NODE = {"qmf.node-bindings": [{"exchange": "amq.direct", "key": "k"}]}
SOURCE, TARGET = False, True

E, Q, A = ObjectType.EXCHANGE, ObjectType.QUEUE, Action
CONNECTION, METHOD = ObjectType.CONNECTION, ObjectType.METHOD


@pytest.mark.parametrize(
    ("refused", "is_sender", "terminus", "properties"),
    [
        ((A.ACCESS, Q, "q"), TARGET, Terminus("q"), {}),
        ((A.ACCESS, E, "none"), TARGET, Terminus("none"), {}),
        ((A.ACCESS, E, "amq.topic"), TARGET, Terminus("amq.topic"), {}),
        ((A.ACCESS, E, "ANONYMOUS-RELAY"), TARGET, Terminus(None), {}),
        ((A.PUBLISH, E, ""), TARGET, Terminus("q"), {}),
        ((A.PUBLISH, E, "amq.topic"), TARGET, Terminus("amq.topic"), {}),
        ((A.CREATE, Q, "new"), TARGET, Terminus("new", capabilities=("create-on-demand", "queue")), {}),
        ((A.CREATE, E, "new"), TARGET, Terminus("new", capabilities=("create-on-demand", "topic")), {}),
        ((A.CREATE, Q, "auto.1"), TARGET, Terminus("auto.1"), {}),
        ((A.CREATE, Q, None), TARGET, Terminus(dynamic=True), {}),
        ((A.CREATE, Q, None), SOURCE, Terminus(dynamic=True), {}),
        ((A.CONSUME, Q, None), SOURCE, Terminus(dynamic=True), {}),
        ((A.DELETE, Q, "q"), TARGET, Terminus("q", **DELETE_ON_CLOSE), {}),  # type: ignore[arg-type]
        ((A.BIND, E, "amq.direct"), TARGET, Terminus("q"), BIND_NODE),
        ((A.BIND, E, "amq.direct"), SOURCE, Terminus("q"), BIND),
        ((A.CONSUME, Q, "q"), SOURCE, Terminus("q"), BIND),
        ((A.BROWSE, Q, "q"), SOURCE, Terminus("q", browse=True), BIND),
        ((A.CREATE, Q, None), SOURCE, Terminus("amq.topic"), {}),
        ((A.BIND, E, "amq.topic"), SOURCE, Terminus("amq.topic"), {}),
        ((A.CONSUME, Q, None), SOURCE, Terminus("amq.topic"), {}),
        ((A.CREATE, Q, None), SOURCE, Terminus("amq.topic", **LASTING), {}),  # type: ignore[arg-type]
        ((A.BIND, E, "amq.topic"), SOURCE, Terminus("amq.topic", **LASTING), {}),  # type: ignore[arg-type]
        ((A.CONSUME, Q, None), SOURCE, Terminus("amq.topic", **LASTING), {}),  # type: ignore[arg-type]
    ],
)
async def test_links(
    refused: tuple[Action, ObjectType, str | None], is_sender: bool, terminus: Terminus, properties: Mapping[str, Any]
) -> None:
    rules = refusing(*refused)
    async with VisibleBroker(port=0, queues=["q"], queue_patterns=["^auto"], policy=rules) as broker:
        client, before = Client(*await connect(broker)), state(broker.registry)
        client.engine.links.attach("link", is_sender=is_sender, terminus=terminus, properties=properties)
        await client.exchange(LinkDetached)
        (event,) = [event for event in client.seen if isinstance(event, LinkDetached)]
        assert event.condition == UNAUTHORIZED
        assert REASON in event.description
        await read(client)
        assert state(broker.registry) == before
        assert {principal.address.partition(":")[0] for principal, _ in rules.asked if principal.protocol} == {
            "127.0.0.1"
        }
        client.writer.close()


async def read(client: Client) -> None:
    """The broker has read what the client has answered: to look for an address that is not there has no effect."""
    count = sum(isinstance(event, LinkDetached) for event in client.seen)
    client.engine.links.attach(f"flush {count}", is_sender=True, terminus=Terminus("nowhere"))
    await client.exchange(LinkDetached, count + 1)


def test_a_subscription_is_not_ended_by_those_who_may_not() -> None:
    """Neither by a link without a source, nor by asking for another one of its name."""
    rules = Rules()
    with EmbeddedBroker(policy=rules) as broker:

        def connection() -> BlockingConnection:
            return BlockingConnection(broker.url.removeprefix("amqp://"), timeout=30, container_id="client")

        first = connection()
        first.create_receiver("amq.topic", name="mine", options=DurableSubscription(), credit=0)
        first.close()
        rules.refuses = refusing(A.DELETE, Q).refuses
        wanted: list[tuple[str | None, LinkOption]] = [(None, NoSource()), ("amq.fanout", DurableSubscription())]
        for address, option in wanted:
            other = connection()
            with pytest.raises(LinkRefused, match=REASON):
                other.create_receiver(address, name="mine", options=option, credit=0)
            other.close()
        rules.questions()
        # It is still there; what is asked is the same as for a new one, as by qpidd, so that nobody learns of it.
        last = connection()
        last.create_receiver("amq.topic", name="mine", options=DurableSubscription(), credit=0)
        assert "consume queue 'client_mine'" in (asked := rules.questions())
        assert "create queue 'client_mine'" in asked
        last.close()


class NoSource(LinkOption):
    """Asks for the subscription of the link's name."""

    def apply(self, link: proton.Link) -> None:
        link.source.type = proton.Terminus.UNSPECIFIED

    def test(self, link: proton.Link) -> bool:
        return bool(link.is_receiver)


@pytest.mark.parametrize("address", ["amq.topic", "q", None])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("durable", [True, False])
async def test_messages(address: str | None, count: int, durable: bool, tmp_path: Path) -> None:
    """Rules about keys are asked for each message; another policy applies to links that exist."""
    async with VisibleBroker(port=0, queues=["q"], data_dir=tmp_path if durable else None) as broker:
        client, before = Client(*await connect(broker)), state(broker.registry)
        link = client.engine.links.attach("link", is_sender=True, terminus=Terminus(address))
        await client.exchange(LinkAttached)
        broker.operations.policy = refusing(A.PUBLISH, E)
        data = encode_message(
            AmqpMessage(to=address or "q", subject="k", durable=durable, section=Section.DATA, body=b"x")
        )
        for _ in range(count):
            client.engine.deliveries.send(link, data)
        await client.exchange(OutcomeReceived, count)
        outcomes = [event for event in client.seen if isinstance(event, OutcomeReceived)]
        assert {(event.outcome, event.condition) for event in outcomes} == {(Outcome.REJECTED, UNAUTHORIZED)}
        assert all(REASON in event.description for event in outcomes)
        assert state(broker.registry) == before
        assert broker.counters.rejected == count
        broker.operations.policy = Rules()
        client.engine.deliveries.send(link, data)
        await client.exchange(OutcomeReceived, count + 1)
        assert client.seen[-1].outcome is Outcome.ACCEPTED  # type: ignore[attr-defined]
        client.writer.close()


async def test_the_relay_does_not_tell_what_is_there() -> None:
    rules = refusing(A.ACCESS, Q)
    async with VisibleBroker(port=0, queues=["q"], policy=rules) as broker:
        client, before = Client(*await connect(broker)), state(broker.registry)
        link = client.engine.links.attach("link", is_sender=True, terminus=Terminus(None))
        await client.exchange(LinkAttached)
        for number, address in enumerate(("q", "none")):
            client.engine.deliveries.send(link, message(address, "k"))
            await client.exchange(OutcomeReceived, number + 1)
        outcomes = [event for event in client.seen if isinstance(event, OutcomeReceived)]
        texts = [event.description.replace("'q'", "X").replace("'none'", "X") for event in outcomes]
        assert ({event.condition for event in outcomes}, texts[0]) == ({UNAUTHORIZED}, texts[1])
        assert state(broker.registry) == before
        client.writer.close()


async def test_transactions() -> None:
    rules = Rules(has_key_rules=True)
    async with VisibleBroker(port=0, queues=["q"], policy=rules) as broker, aio.Connection(broker.url) as connection:
        session = await connection.session(transactional=True)
        senders = [await session.sender(address) for address in ("q", "amq.topic")]
        before = state(broker.registry)
        rules.refuses = refusing(A.PUBLISH, E, "amq.topic").refuses
        await senders[0].send(Message("allowed"))
        with pytest.raises(MessagingError, match=REASON):
            await senders[1].send(Message("refused", subject="k"))
        with pytest.raises(MessagingError, match=REASON):
            await session.commit()
        assert state(broker.registry) == before


@pytest.mark.parametrize("sending", [True, False])
async def test_links_that_are_resumed(sending: bool) -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker:
        clients = []
        for attempt in (1, 2):
            client = Client(*await connect(broker))
            resumption = Resumption("id", attempt=attempt)
            client.engine.links.attach("link", is_sender=sending, terminus=Terminus("q"), resumption=resumption)
            await client.exchange(LinkAttached if attempt == 1 else LinkDetached)
            broker.operations.policy = refusing(A.PUBLISH, E) if sending else refusing(A.CONSUME, Q)
            clients.append(client)
        (event,) = [event for event in clients[1].seen if isinstance(event, LinkDetached)]
        assert event.condition == UNAUTHORIZED
        assert (broker.resumable.suspended, state(broker.registry)) == (0, state(NodeRegistry(queues=["q"])))
        for client in clients:
            client.writer.close()


METHODS: Mapping[str, tuple[tuple[Action, ObjectType], tuple[Any, ...]]] = {
    "create queue": ((A.CREATE, Q), ("queue", "new", {}, False)),
    "create exchange": ((A.CREATE, E), ("exchange", "new", {}, False)),
    "create binding": ((A.BIND, E), ("binding", "amq.direct/q/new", {}, False)),
    "create topic": ((A.CREATE, ObjectType.TOPIC), ("topic", "new", {"exchange": "amq.topic"}, False)),
    "create QueuePolicy": ((A.CREATE, ObjectType.QUEUE_POLICY), ("QueuePolicy", "^x", {}, False)),
    "create TopicPolicy": ((A.CREATE, ObjectType.TOPIC_POLICY), ("TopicPolicy", "^x", {}, False)),
    "delete queue": ((A.DELETE, Q), ("queue", "q", {})),
    "delete queue that is not empty": ((A.DELETE, Q), ("queue", "q", {"if_empty": True})),
    "delete exchange": ((A.DELETE, E), ("exchange", "news", {})),
    "delete binding": ((A.UNBIND, E), ("binding", "amq.direct/q/k", {})),
    "delete topic": ((A.DELETE, ObjectType.TOPIC), ("topic", "named", {})),
    "delete QueuePolicy": ((A.DELETE, ObjectType.QUEUE_POLICY), ("QueuePolicy", "^auto", {})),
    "query": ((A.ACCESS, Q), ("queue", "q")),
    "queueMoveMessages": ((A.MOVE, Q), ("q", "other", 0, {})),
    "queueRedirect": ((A.REDIRECT, Q), ("q", "other")),
    "setTimestampConfig": ((A.UPDATE, ObjectType.BROKER), (True,)),
    "purge": ((A.PURGE, Q), (0, {})),
    "reroute": ((A.REROUTE, Q), (0, False, "news", {})),
}


@pytest.mark.parametrize("name", METHODS)
async def test_methods(name: str) -> None:
    rules = Rules()
    async with (
        VisibleBroker(port=0, management=NEVER, queues=["q", "other"], policy=rules) as broker,
        Console(broker.url, settle=0.0) as console,
    ):
        await knows_agent(console)
        (it,) = await console.objects(remote.Broker)
        await it.create("exchange", "news", {}, False)
        await it.create("binding", "amq.direct/q/k", {}, False)
        await it.create("topic", "named", {"exchange": "news"}, False)
        await it.create("QueuePolicy", "^auto", {}, False)
        async with aio.Connection(broker.url) as connection:
            await (await (await connection.session()).sender("q")).send(Message("text"))
        (q,) = [item for item in await console.objects(remote.Queue) if item.name == "q"]
        refused, arguments = METHODS[name]
        rules.refuses = refusing(*refused).refuses
        method, before = name.split()[0], own(broker)
        with pytest.raises(RemoteError, match=f"unauthorized-access: .* may not .*: {REASON}"):
            await getattr(q if method in ("purge", "reroute") else it, method)(*arguments)
        assert own(broker) == before


#: Arguments of methods, by type.
EXAMPLES: Mapping[str, Any] = {"bool": False, "lstr": "", "map": {}, "sstr": "", "uint32": 0}


async def test_every_method_is_asked_for() -> None:
    """Also those that change no node: of the process, of connections and of sessions."""
    control = Control()
    rules = Rules()
    async with (
        VisibleBroker(port=0, management=NEVER, queues=["q"], policy=rules, process=control) as broker,
        Console(broker.url, settle=0.0) as console,
        aio.Connection(broker.url) as connection,
    ):
        await knows_agent(console)
        await (await connection.session()).sender("q")
        classes = {
            remote.Broker: "broker",
            remote.Queue: "queue",
            remote.Connection: "connection",
            remote.Session: "session",
        }
        objects = {name: (await console.objects(kind))[-1]._qmf_remote for kind, name in classes.items()}
        clients = broker.connections
        for name, obj in objects.items():
            assert obj.schema is not None
            for method in obj.schema.methods:
                rules.refuses = refusing(A.ACCESS, METHOD, method.name).refuses
                rules.asked.clear()
                arguments: dict[str, Any] = {item.name: EXAMPLES[item.type.name] for item in method.inputs}
                with pytest.raises(RemoteError, match=f"unauthorized-access: .* may not access .*: {REASON}") as caught:
                    await obj.call(method.name, **arguments)
                assert caught.value.code == ErrorCode.FORBIDDEN
                (asked,) = [operation for _, operation in rules.asked if operation.object_type is METHOD]
                assert asked.properties == {"schemapackage": "org.apache.qpid.broker", "schemaclass": name}
        assert broker.connections == clients
        assert (control.log_rules, control.precise_times, control.ended) == ("notice+", False, False)


async def test_queries() -> None:
    rules = Rules()
    async with (
        VisibleBroker(port=0, management=NEVER, queues=["q"], policy=rules) as broker,
        Console(broker.url, settle=0.0) as console,
    ):
        await knows_agent(console)
        rules.refuses = refusing(A.ACCESS, ObjectType.QUERY, "queue").refuses
        with pytest.raises(RemoteError, match=f"may not access query 'queue': {REASON}"):
            await console.objects(remote.Queue)
        assert await console.objects(remote.Exchange)


async def test_connections() -> None:
    """One that is refused is closed, and reported."""
    rules = Rules()
    async with (
        VisibleBroker(port=0, management=NEVER, policy=rules) as broker,
        Console(broker.url, settle=0.0) as console,
    ):
        await knows_agent(console)
        rules.refuses = refusing(A.CREATE, CONNECTION).refuses
        with pytest.raises(ConnectError, match=f"may not create connection: {REASON}"):
            await AmqpBus(broker.url).open()
        hosts = [operation.properties["host"] for _, operation in rules.asked if operation.object_type is CONNECTION]
        assert set(hosts) == {"127.0.0.1"}
        await until(lambda: broker.connections == 1, "the end of the connection")
        assert broker.counters.failures == 1


async def test_who_may_not_see_the_broker() -> None:
    rules = Rules()
    async with (
        VisibleBroker(port=0, management=NEVER, policy=rules) as broker,
        Console(broker.url, settle=0.0) as console,
    ):
        await knows_agent(console)
        (it,) = await console.objects(remote.Broker)
        rules.refuses = refusing(A.ACCESS, ObjectType.BROKER).refuses
        with pytest.raises(RemoteError, match=f"unauthorized-access: .* may not access broker: {REASON}"):
            await it.getTimestampConfig()


def own(broker: VisibleBroker) -> object:
    """The state of the broker without the queues of the console and of the agent, to which messages may come."""
    queues, *others = state(broker.registry)
    return {name: queues[name] for name in queues if name in ("q", "other", "new")}, *others


async def test_a_bus_inside_the_process() -> None:
    registry = NodeRegistry(queues=["q"])
    rules = Rules()
    bus, before = LocalBus(Operations(registry, rules), "local"), state(registry)
    await bus.open()
    for action, object_type in ((A.CREATE, Q), (A.BIND, E), (A.CONSUME, Q)):
        rules.refuses = lambda _, operation: (operation.action, operation.object_type) == (action, object_type)  # noqa: B023
        with pytest.raises(LinkError, match=REASON) as caught:
            await bus.subscribe(Binding("amq.topic", "#"), lambda *_: None)
        assert caught.value.condition == UNAUTHORIZED
    rules.refuses = lambda _, operation: operation.action is A.PUBLISH
    with pytest.raises(LinkError, match=REASON):
        await bus.send(message("q", "k"), confirm=True)
    outcomes = asyncio.Queue[Any]()
    assert bus.try_send(message("q", "k"), outcomes.put_nowait)
    assert (await outcomes.get()).condition == UNAUTHORIZED
    assert state(registry) == before
    assert {str(principal) for principal, _ in rules.asked} == {"local://local"}
    await bus.close()


async def test_the_broker_itself() -> None:
    broker = Broker(port=0, queues=["q"], policy=Rules(lambda *_: True))
    with pytest.raises(OperationRefused, match="the broker may not create queue 'q'"):
        await broker.start()


async def test_a_bus_over_amqp() -> None:
    async with VisibleBroker(port=0, queues=["q"], policy=refusing(A.PUBLISH, E)) as broker:
        bus = AmqpBus(broker.url)
        await bus.open()
        with pytest.raises(LinkError, match=REASON):
            await bus.send(message("q", "k"), confirm=True)
        await bus.close()
