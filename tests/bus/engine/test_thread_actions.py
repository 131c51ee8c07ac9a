"""Messages sent and accepted by another thread than the engine's, while that waits at a gate."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from support import gates
from support.engines import Pair
from support.gates import WaitingThread

from qmf.bus.engine.events import AcceptedBatch, Delivery, DeliveryBatch, LinkRequested, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.thread_actions import ThreadActions
from qmf.bus.engine.values import Outcome, Terminus
from qmf.bus.gate import LEFT, Gate, has_gates

pytestmark = pytest.mark.skipif(not has_gates(), reason="the compiled modules are not installed, or this is not Linux")

BACKLOG = 1 << 20


@pytest.fixture(autouse=True)
def compiled() -> None:
    """Not without the compiled functions, as other modules here: there are no such actions then."""


@pytest.fixture
def gate() -> Iterator[Gate]:
    with gates.gate([]) as gate:
        yield gate


class Client:
    """The client of a pair, whose actions write to a socket; the other end of that is the server's."""

    def __init__(self, pair: Pair, gate: Gate, credit: int = 10) -> None:
        self.pair, self.gate = pair, gate
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.link, self.peer = pair.link(sending=True, credit=credit)
        found = pair.client.thread_actions
        assert found is not None
        self.actions: ThreadActions = found
        self.unwritten: list[bytes] = []
        self.unwalked: list[bytes] = []
        self.unsettled: dict[int, object] = {}
        self.place = self.actions.place(gate.address, self.ours.fileno(), self.unwritten, self.unwalked, [])

    def send(self, data: bytes, epoch: int, link: Link | None = None, backlog: int = BACKLOG) -> bool:
        assert self.actions.possible
        return self.actions.send(self.place, epoch, link or self.link, data, backlog, self.unsettled, data)

    def feed(self, *more: bytes) -> list[bytes]:
        """What the server gets of what was written, and of more."""
        self.ours.close()
        while data := self.theirs.recv(1 << 16):
            self.pair.server.feed(data)
        for data in more:
            self.pair.server.feed(data)
        self.pair.pump()
        batches = [event for event in self.pair.at_server if isinstance(event, Delivery | DeliveryBatch)]
        return [event.data for batch in batches for event in _deliveries(batch)]


def _deliveries(event: Delivery | DeliveryBatch) -> list[Delivery]:
    return event.events() if isinstance(event, DeliveryBatch) else [event]


@pytest.fixture(params=[10])
def client(gate: Gate, request: pytest.FixtureRequest) -> Iterator[Client]:
    """With so much credit."""
    client = Client(Pair(), gate, credit=request.param)
    with client.ours, client.theirs:
        yield client


def test_messages_are_written_at_once_in_order_and_their_outcomes_come(client: Client, gate: Gate) -> None:
    waiting = WaitingThread(gate)
    assert client.send(b"one", gate.epoch())
    assert client.send(b"two", gate.epoch())
    assert list(client.unsettled.values()) == [b"one", b"two"]
    gate.wake()
    assert waiting.end() == []
    client.pair.client.deliveries.send(client.link, b"three")  # the engine's own thread goes on with the next tag
    assert client.feed(client.pair.client.output()) == [b"one", b"two", b"three"]
    tags = [
        event.delivery_tag
        for batch in client.pair.at_server
        if isinstance(batch, Delivery | DeliveryBatch)
        for event in _deliveries(batch)
    ]
    for tag in tags:
        assert tag is not None
        client.pair.server.decisions.settle(client.peer, tag)
    client.pair.pump()
    settled = [
        event.delivery_tag
        for batch in client.pair.at_client
        for event in (batch.events() if isinstance(batch, AcceptedBatch) else [batch])
        if isinstance(event, OutcomeReceived)
    ]
    assert settled[:2] == list(client.unsettled)
    assert len(settled) == 3


def test_nothing_happens_where_the_gate_is_shut_or_the_epoch_is_over(client: Client, gate: Gate) -> None:
    assert not client.send(b"shut", 0)
    assert not client.send(b"shut", 1)
    waiting = WaitingThread(gate)
    epoch = gate.epoch()
    gate.wake()
    waiting.end()
    waiting = WaitingThread(gate)
    assert not client.send(b"an earlier turn", epoch)
    epoch = gate.epoch()
    assert client.send(b"now", epoch)
    assert not client.send(b"another thread was faster", epoch)
    assert list(client.unsettled.values()) == [b"now"]
    gate.wake()
    waiting.end()
    assert client.feed() == [b"now"]


@pytest.mark.parametrize("client", [1], indirect=True)
def test_nothing_happens_without_credit_or_room(client: Client, gate: Gate) -> None:
    waiting = WaitingThread(gate)
    assert not client.send(b"no room", gate.epoch(), backlog=0)
    assert client.send(b"one", gate.epoch())
    assert not client.send(b"no credit", gate.epoch())
    gate.wake()
    waiting.end()
    assert client.feed() == [b"one"]
    assert list(client.unsettled.values()) == [b"one"]


def test_what_a_full_socket_does_not_take_is_left_for_the_loop(client: Client, gate: Gate) -> None:
    client.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    waiting = WaitingThread(gate)
    large = bytes(range(256)) * 256
    sent = 0
    while not client.unwritten:
        sent += client.send(large, gate.epoch())
    assert waiting.end() == [(LEFT, 0)]
    assert client.feed(*client.unwritten) == [large] * sent


def test_a_socket_that_is_closed_takes_nothing(client: Client, gate: Gate) -> None:
    client.theirs.close()
    waiting = WaitingThread(gate)
    assert client.send(b"one", gate.epoch())
    assert waiting.end() == [(LEFT, 0)]
    assert client.unwritten
    assert list(client.unsettled.values()) == [b"one"]


def test_frames_that_the_engine_has_to_know_of_are_left_for_the_loop(client: Client, gate: Gate) -> None:
    waiting = WaitingThread(gate)
    client.pair.client.links.attach("another", is_sender=True, terminus=Terminus("elsewhere"))
    assert client.send(b"one", gate.epoch())
    assert waiting.end() == [(LEFT, 0)]
    assert not client.unwritten
    assert client.feed(client.actions.walk(b"".join(client.unwalked))) == [b"one"]
    assert [event.link.name for event in client.pair.at_server if isinstance(event, LinkRequested)] == ["another"]


def test_messages_are_accepted_at_once(client: Client, gate: Gate) -> None:
    pair = client.pair
    mine = pair.client.links.attach("back", is_sender=False, terminus=Terminus("there"), credit=5)
    pair.pump()
    (theirs,) = [link for link in pair.server.links.by_impl.values() if link.name == "back"]
    pair.server.links.accept(theirs, source=theirs.source, target=theirs.target)
    pair.pump()
    sent = [pair.server.deliveries.send(theirs, data) for data in (b"one", b"two", b"three")]
    pair.pump()
    batches = [event for event in pair.at_client if isinstance(event, Delivery | DeliveryBatch)]
    tags = [event.delivery_tag for batch in batches for event in _deliveries(batch)]
    pair.at_server.clear()
    waiting = WaitingThread(gate)
    epoch = gate.epoch()
    assert client.actions.accept(client.place, epoch, mine, [tag for tag in tags[:2] if tag is not None])
    assert not client.actions.accept(client.place, epoch, mine, [tag for tag in tags[2:] if tag is not None])
    assert list(mine.received) == tags[2:]
    gate.wake()
    waiting.end()
    client.feed()
    outcomes = [
        event
        for batch in pair.at_server
        for event in (batch.events() if isinstance(batch, AcceptedBatch) else [batch])
        if isinstance(event, OutcomeReceived)
    ]
    assert [event.delivery_tag for event in outcomes] == sent[:2]
    assert {event.outcome for event in outcomes} == {Outcome.ACCEPTED}


def test_an_engine_with_something_else_to_do_says_so(client: Client) -> None:
    assert client.actions.possible
    client.pair.client.decisions.accept_later(client.link, 1)
    assert not client.actions.possible


def test_wrong_arguments_are_errors(client: Client, gate: Gate) -> None:
    waiting = WaitingThread(gate)
    with pytest.raises(TypeError):
        client.actions.send(client.place[:3], gate.epoch(), client.link, b"x", 1, {}, b"x")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.actions.send(client.place, gate.epoch(), client.link, "x", 1, {}, b"x")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.actions.accept(client.place, gate.epoch(), client.link, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.actions.accept(client.place, "now", client.link, [])  # type: ignore[arg-type]
    assert client.send(b"x", gate.epoch())
    gate.wake()
    waiting.end()
