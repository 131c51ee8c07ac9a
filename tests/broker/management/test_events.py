"""Events for what clients do."""

from __future__ import annotations

import pytest
from broker.management.managed import NEVER, TOPIC, Raised, connected, knows_agent, managed
from support.recording import Inbox
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.management.events import EVENTS
from qmf.bus import AmqpBus, Binding
from qmf.console.aio import Client
from qmf.errors import AuthenticationError, QmfError, RemoteError
from qmf.models.broker import console as remote
from qmf.schema import Severity


async def test_clients_raise_events() -> None:
    async with managed() as (broker, client):
        events = Raised(client)
        async with connected(broker.url) as bus:
            subscription = await bus.subscribe(Binding(TOPIC, "k.#"), Inbox())
            # The console's own connection raised events, too.
            await until(lambda: events("bind", exName=TOPIC), "the binding")
            (bound,) = events("bind", exName=TOPIC)
            queue = bound["qName"]
            client_values = {"rhost": bound["rhost"], "user": "anonymous"}
            assert bound == {**client_values, "exName": TOPIC, "qName": queue, "key": "k.#", "args": {}}
            # Events that are sent together are grouped by class, so their order is not that of what happened.
            await until(lambda: events("subscribe", qName=queue), "the subscription")
            await until(lambda: events("clientConnect", **client_values), "the connection")
            (opened,) = events("clientConnect", **client_values)
            assert events("queueDeclare", **client_values) == [
                {
                    **client_values,
                    "qName": queue,
                    "durable": False,
                    "excl": True,
                    "autoDel": True,
                    "altEx": "",
                    "args": {},
                    "disp": "created",
                }
            ]
            (subscribed,) = events("subscribe", **client_values)
            assert subscribed == {**client_values, "qName": queue, "dest": subscribed["dest"], "excl": True, "args": {}}
            await subscription.close()
            for name in ("queueDelete", "unbind", "unsubscribe"):
                await until(lambda name=name: events(name), name)  # type: ignore[misc]
            assert events("unsubscribe") == [{**client_values, "dest": subscribed["dest"]}]
            assert events("unbind") == [{**client_values, "exName": TOPIC, "qName": queue, "key": "k.#"}]
            assert events("queueDelete") == [{**client_values, "qName": queue}]
        await until(lambda: events("clientDisconnect"), "the end of the connection")
        assert events("clientDisconnect") == [opened]


async def test_nodes_raise_events() -> None:
    async with managed() as (_, client):
        events = Raised(client)
        (it,) = await client.objects(remote.Broker)
        await it.create("exchange", "news", {"exchange-type": "fanout", "alternate-exchange": "amq.topic"}, True)
        await it.create("queue", "jobs", {"qpid.max_count": 3, "alternate-exchange": "news"}, True)
        for type in ("exchange", "queue"):
            name = {"exchange": "news", "queue": "jobs"}[type]
            with pytest.raises(RemoteError, match="already exists"):
                await it.create(type, name, {}, False)
        # A queue may have the name of an exchange.
        await it.create("queue", "news", {}, False)
        await it.delete("queue", "jobs", {})
        await it.delete("exchange", "news", {})
        await until(lambda: events("exchangeDelete", exName="news"), "the end of the exchange")
        await until(lambda: len(events("queueDeclare", qName="jobs")) == 2, "the declarations")
        await until(lambda: len(events("exchangeDeclare", exName="news")) == 2, "the declarations")
        assert sorted(str(item["disp"]) for item in events("queueDeclare", qName="jobs")) == ["created", "existing"]
        created, existing = sorted(events("exchangeDeclare", exName="news"), key=lambda item: str(item["disp"]))
        assert (created["disp"], existing["disp"]) == ("created", "existing")
        assert (created["exType"], created["altEx"], created["durable"]) == ("fanout", "amq.topic", False)
        await until(lambda: events("queueDelete", qName="jobs"), "the end of the queue")
        assert [item["disp"] for item in events("queueDeclare", qName="news")] == ["created"]


async def test_events_of_method_calls_name_the_connection_of_the_caller() -> None:
    users = {"guest": "secret", "ann": "secret"}
    async with (
        Broker(port=0, users=users, management=NEVER) as broker,
        Client(f"amqp://guest:secret@127.0.0.1:{broker.port}", settle=0.0) as watching,
        Client(f"amqp://ann:secret@127.0.0.1:{broker.port}", settle=0.0) as calling,
    ):
        for client in (watching, calling):
            await knows_agent(client)
        events = Raised(watching)
        (it,) = await calling.objects(remote.Broker)
        await it.create("queue", "jobs", {}, True)
        await until(lambda: events("queueDeclare", qName="jobs"), "the declaration")
        (declared,) = events("queueDeclare", qName="jobs")
        connections = {item.address: item.authIdentity for item in await watching.objects(remote.Connection)}
        assert declared["user"] == "ann"
        assert connections[str(declared["rhost"])] == "ann"


async def test_a_client_that_cannot_log_in_raises_an_event() -> None:
    async with (
        Broker(port=0, users={"guest": "secret"}, management=NEVER) as broker,
        Client(f"amqp://guest:secret@127.0.0.1:{broker.port}", settle=0.0) as client,
    ):
        await knows_agent(client)
        events = Raised(client)
        bus = AmqpBus(f"amqp://ann:wrong@127.0.0.1:{broker.port}", reconnect=False)
        with pytest.raises(AuthenticationError):
            await bus.open()
        await bus.close()
        await until(lambda: events("clientConnectFail"), "the refusal")
        ((_, severity, values),) = [item for item in events.all if item[0] == "clientConnectFail"]
        assert (values["user"], values["reason"]) == ("ann", "unknown user or wrong password")
        assert str(values["rhost"]).startswith(f"qpid.127.0.0.1:{broker.port}-127.0.0.1:")
        assert severity == Severity.WARN
        assert not events("clientConnect", user="ann")
        assert not events("clientDisconnect", user="ann")


async def test_a_client_too_many_raises_an_event() -> None:
    async with managed(connection_limits=ConnectionLimits(total=1)) as (broker, client):
        events = Raised(client)
        bus = AmqpBus(broker.url, container="one too many", reconnect=False)
        with pytest.raises(QmfError):
            await bus.open()
        await bus.close()
        await until(lambda: events("clientConnectFail"), "the refusal")
        (refused,) = events("clientConnectFail")
        assert "connections" in str(refused["reason"])
        assert not events("clientDisconnect")


def test_severities_are_those_of_qpidd() -> None:
    warnings = {event.__name__ for event in EVENTS if event._qmf_schema_.severity is Severity.WARN}
    assert warnings == {"BrokerLinkDown", "ClientConnectFail", "QueueThresholdExceeded"}
    others = {event._qmf_schema_.severity for event in EVENTS if event.__name__ not in warnings}
    assert others == {Severity.INFORM}
