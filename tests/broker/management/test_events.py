"""Events for what clients do."""

from __future__ import annotations

from broker.management.managed import TOPIC, connected, managed
from support.recording import Inbox
from support.waiting import until

from qmf.bus import Binding
from qmf.console.aio import EventRaised


async def test_clients_raise_events() -> None:
    async with managed() as (broker, client):
        raised: list[tuple[str, dict[str, object]]] = []

        def listen(notification: object) -> None:
            if isinstance(notification, EventRaised) and notification.event.class_key is not None:
                raised.append((notification.event.class_key.name, dict(notification.event.arguments)))

        def events(name: str, **wanted: object) -> list[dict[str, object]]:
            return [values for kind, values in raised if kind == name and wanted.items() <= values.items()]

        client.listen(listen)
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
