"""stomp.py, a client of others, with each version of STOMP."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import pytest
import stomp
from support.waiting import WAIT_LIMIT

from qmf.broker import EmbeddedBroker
from qmf.broker.protocols.stomp.options import StompOptions


class Listener(stomp.ConnectionListener):  # type: ignore[misc]
    """Keeps what comes: messages, receipts and errors."""

    def __init__(self) -> None:
        self.messages: queue.Queue[stomp.utils.Frame] = queue.Queue()
        self.errors: queue.Queue[str] = queue.Queue()

    def on_message(self, frame: stomp.utils.Frame) -> None:
        self.messages.put(frame)

    def on_error(self, frame: stomp.utils.Frame) -> None:
        self.errors.put(frame.headers["message"])


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with EmbeddedBroker(stomp=StompOptions(port=0)) as broker:
        assert broker.stomp_url is not None
        yield int(broker.stomp_url.rpartition(":")[2])


CLASSES = (stomp.Connection10, stomp.Connection11, stomp.Connection12)


@pytest.mark.parametrize("kind", CLASSES, ids=["1.0", "1.1", "1.2"])
def test_messages_acknowledgements_and_transactions(kind: type, port: int) -> None:
    client, listener = kind([("127.0.0.1", port)]), Listener()
    client.set_listener("", listener)
    client.connect(wait=True)
    mode = "client" if kind is stomp.Connection10 else "client-individual"
    client.subscribe(f"/queue/{kind.__name__}", id="1", ack=mode)

    def acknowledge(frame: stomp.utils.Frame) -> None:
        if kind is stomp.Connection12:
            client.ack(frame.headers["ack"])
        elif kind is stomp.Connection11:
            client.ack(frame.headers["message-id"], "1")
        else:
            client.ack(frame.headers["message-id"])

    value = "ä:b" if kind is stomp.Connection10 else "ä:b\n"
    client.send(f"/queue/{kind.__name__}", "plain", headers={"color": value})
    frame = listener.messages.get(timeout=WAIT_LIMIT)
    assert (frame.body, frame.headers["color"]) == ("plain", value)
    acknowledge(frame)
    transaction = client.begin()
    client.send(f"/queue/{kind.__name__}", "later", transaction=transaction)
    client.commit(transaction)
    frame = listener.messages.get(timeout=WAIT_LIMIT)
    assert frame.body == "later"
    acknowledge(frame)
    client.disconnect()


def test_an_error(port: int) -> None:
    client, listener = stomp.Connection12([("127.0.0.1", port)]), Listener()
    client.set_listener("", listener)
    client.connect(wait=True)
    client.send("/exchange/nosuch/key", "x")
    assert listener.errors.get(timeout=WAIT_LIMIT) == "no exchange 'nosuch'"
    client.disconnect()
