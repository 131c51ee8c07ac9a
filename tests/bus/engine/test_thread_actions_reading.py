"""Messages read by another thread than the engine's, while that waits at a gate: what is taken in, and what is left."""

from __future__ import annotations

import gc
import itertools
import os
import select
import socket
import threading
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from support import gates
from support.engines import Pair
from support.gates import WaitingThread
from support.waiting import WAIT_LIMIT, wait_until

from qmf.bus.engine.events import Delivery, LinkRequested
from qmf.bus.engine.link import Link
from qmf.bus.engine.thread_actions import ThreadActions, UnreadBytes
from qmf.bus.engine.values import Terminus
from qmf.bus.gate import LEFT, READ, Gate, has_gates

pytestmark = pytest.mark.skipif(not has_gates(), reason="the compiled modules are not installed, or this is not Linux")


@pytest.fixture(autouse=True)
def compiled() -> None:
    """Not without the compiled functions, as other modules here: there are no such actions then."""


def _make(kind: type, places: bytes, shared: tuple[object, ...], items: list[Any]) -> list[Any]:
    """In place of the compiled function that makes deliveries."""
    assert (kind, places) == (dict, b"places")
    return [(*shared[:3], *item) for item in items]


class Client:
    """The client of a pair, with a link on which it receives and one on which it sends, and its end of a socket."""

    def __init__(self, pair: Pair, gate: Gate) -> None:
        self.pair, self.gate = pair, gate
        self.ours, self.theirs = socket.socketpair()
        self.signal, self.poll = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK), select.epoll()
        self.poll.register(self.signal, select.EPOLLIN | select.EPOLLET)
        self.link, self.peer = pair.link(sending=False)
        self.sending = pair.client.links.attach("sending", is_sender=True, terminus=Terminus("there"))
        pair.pump()
        (request,) = [event for event in pair.at_server if isinstance(event, LinkRequested)]
        pair.server.links.accept(request.link, source=request.link.source, target=request.link.target)
        pair.server.links.add_credit(request.link, 1_000_000)
        self.sink = request.link
        pair.pump()
        pair.client.links.table.get()
        pair.at_server.clear()
        found = pair.client.thread_actions
        assert found is not None
        self.actions: ThreadActions = found
        self.unread: list[UnreadBytes] = []
        self.place = self.actions.place(gate.address, self.ours.fileno(), [], [], self.unread)
        self.unsettled: dict[int, object] = {}
        owner: Any = SimpleNamespace(unsettled=self.unsettled)
        self.sending.direct = owner
        self.window = SimpleNamespace(credit=10)
        self.arrived = SimpleNamespace(messages=deque[Any]())
        self.condition = SimpleNamespace(waiters={}, threads=[], fetching={}, fetching_threads=[object()])
        self.session = SimpleNamespace(on_message=None)
        gate.watch(self.ours.fileno())

    def send(self, *messages: bytes) -> None:
        """Messages from the server."""
        for data in messages:
            self.pair.server.deliveries.send(self.peer, data)
        self.write()

    def write(self) -> None:
        """What the server has to write."""
        while data := self.pair.server.output():
            self.theirs.sendall(data)

    def read(self, seconds: float = 10.0, link: Link | None = None) -> bool | None:
        maker = _make, dict, b"places", itertools.count()
        parts = self.window, self.arrived, self.condition, self.session, "receiver", "network", maker
        return self.actions.wait_and_read(self.place, self.poll.fileno(), seconds, (link or self.link, *parts))

    def texts(self) -> list[bytes]:
        assert all(message[:3] == ("receiver", "network", self.link) for message in self.arrived.messages)
        return [message[-1] for message in self.arrived.messages]

    def send_own(self, *items: object) -> None:
        """Send messages, which the server accepts."""
        for item in items:
            tag = self.pair.client.deliveries.send(self.sending, b"own")
            self.unsettled[tag] = item
        while data := self.pair.client.output():
            self.pair.server.feed(data)
        for tag in self.sink.received.copy():
            self.pair.server.decisions.settle(self.sink, tag)
        self.write()


@pytest.fixture
def gate() -> Iterator[Gate]:
    with gates.gate([]) as gate:
        yield gate


@pytest.fixture
def client(gate: Gate) -> Iterator[Client]:
    client = Client(Pair(), gate)
    with client.ours, client.theirs, client.poll:
        yield client
    os.close(client.signal)


@pytest.fixture
def waiting(client: Client, gate: Gate) -> Iterator[WaitingThread]:
    """The thread of the loop."""
    waiting = WaitingThread(gate, client.ours.fileno(), memoryview(bytearray(4096)))
    yield waiting
    gate.wake()
    waiting.end()


class Reading:
    """A thread that waits for messages; it does when this is made."""

    def __init__(self, client: Client, link: Link | None = None, seconds: float = WAIT_LIMIT) -> None:
        self._client, self._link, self._seconds = client, link, seconds
        self.result: bool | None = None
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        wait_until(lambda: client.read(0.0) is None)  # only one thread can

    def _read(self) -> None:
        while self.result is None:
            self.result = self._client.read(self._seconds, self._link)

    def end(self) -> bool | None:
        """What it returned, once something has ended its wait."""
        self._thread.join(WAIT_LIMIT)
        assert not self._thread.is_alive()
        return self.result


def test_messages_of_the_link_are_taken_in(client: Client, waiting: WaitingThread) -> None:
    reading, before = Reading(client), client.gate.epoch()
    client.send(b"one", b"two")
    assert reading.end()
    assert client.texts() == [b"one", b"two"]
    assert client.window.credit == 8
    assert list(client.link.received) == [message[3] for message in client.arrived.messages]
    assert client.gate.epoch() not in (0, before)
    assert not client.unread
    assert waiting.found is None
    assert gc.isenabled()
    reading = Reading(client)
    client.send(b"three")
    assert reading.end()
    assert client.texts() == [b"one", b"two", b"three"]


def test_acceptances_that_nobody_waits_for_do_not_end_the_wait(client: Client, waiting: WaitingThread) -> None:
    reading = Reading(client)
    client.send_own(b"one", b"two")
    wait_until(lambda: not client.unsettled)
    client.send(b"a message")
    assert reading.end()
    assert client.texts() == [b"a message"]
    assert not client.unread
    assert waiting.found is None


def test_acceptances_that_somebody_waits_for_are_left(client: Client, waiting: WaitingThread) -> None:
    reading = Reading(client)
    client.send_own(b"plain", "somebody waits for this one")
    assert reading.end()
    assert waiting.end() == [(LEFT, 0)]
    assert len(client.unsettled) == 2
    ((data, found),) = client.unread
    assert data
    assert found is not None
    assert [(link, items) for _, link, items in found[0] if items] == [(client.sending, [*client.unsettled])]


@pytest.mark.parametrize("waiters", ["waiters", "threads"])
def test_acceptances_are_left_while_anybody_waits_for_answers(
    client: Client, waiting: WaitingThread, waiters: str
) -> None:
    setattr(client.condition, waiters, [object()])
    reading = Reading(client)
    client.send_own(b"plain")
    assert reading.end()
    assert waiting.end() == [(LEFT, 0)]
    assert client.unsettled
    assert client.unread


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        ("condition", "fetching", {object(): None}),
        ("condition", "fetching_threads", [object(), object()]),
        ("session", "on_message", print),
        ("window", "credit", 0),
    ],
)
def test_messages_that_are_for_others_too_are_left(
    client: Client, waiting: WaitingThread, owner: str, name: str, value: object
) -> None:
    setattr(getattr(client, owner), name, value)
    reading = Reading(client)
    client.send(b"one")
    assert reading.end()
    assert waiting.end() == [(LEFT, 0)]
    assert not client.arrived.messages
    ((_, found),) = client.unread
    assert found is not None
    assert [items[0][1] for _, link, items in found[0] if link is client.link] == [b"one"]


def test_messages_of_another_link_are_left(client: Client, waiting: WaitingThread) -> None:
    reading = Reading(client, client.sending)
    client.send(b"one")
    assert reading.end()
    assert waiting.end() == [(LEFT, 0)]
    pair = client.pair
    for data, found in client.unread:
        assert found is not None
        pair.client.take_read(data, found)
    pair.pump()
    assert [event.data for event in pair.at_client if isinstance(event, Delivery)] == [b"one"]


def test_frames_that_the_engine_has_to_know_of_are_left_as_they_are(client: Client, waiting: WaitingThread) -> None:
    reading, pair = Reading(client), client.pair
    pair.server.links.attach("another", is_sender=True, terminus=Terminus("elsewhere"))
    client.write()
    assert reading.end()
    assert waiting.end() == [(LEFT, 0)]
    for data, found in client.unread:
        assert found is None
        pair.client.feed(data)
    pair.pump()
    assert [event.link.name for event in pair.at_client if isinstance(event, LinkRequested)] == ["another"]


def test_bytes_that_come_while_the_loop_goes_on_are_left(client: Client, waiting: WaitingThread) -> None:
    reading = Reading(client)
    client.gate.wake()
    waiting.end()
    client.send(b"one")
    assert reading.end()
    assert [found for _, found in client.unread] == [None]
    assert not client.arrived.messages
    following = WaitingThread(client.gate, client.ours.fileno(), memoryview(bytearray(64)))
    assert following.end() == [(LEFT, 0)]


def test_who_waits_is_told_of_the_end_which_the_loop_finds(client: Client, waiting: WaitingThread) -> None:
    reading = Reading(client)
    client.theirs.close()
    assert reading.end()
    found = waiting.end()
    while not found:  # the end has woken up both; the loop waits again
        found = WaitingThread(client.gate, client.ours.fileno(), memoryview(bytearray(64))).end()
    assert found == [(READ, 0)]


def test_a_signal_and_the_time_end_the_wait(client: Client, waiting: WaitingThread) -> None:
    assert client.read(0.0) is False
    reading = Reading(client)
    os.eventfd_write(client.signal, 1)
    assert reading.end()
    assert client.read(0.0) is False  # the signal was taken
    assert waiting.found is None
    client.send(b"one")
    assert waiting.end()[0][0] == READ  # it watches again


def test_acceptances_that_keep_coming_do_not_make_the_wait_longer(client: Client, waiting: WaitingThread) -> None:
    """Handlers of signals run when it has ended."""
    reading = Reading(client, seconds=0.2)
    for _ in range(100_000):
        client.send_own(b"one")
        wait_until(lambda: not client.unsettled or reading.result is not None)
        if reading.result is not None:
            break
    assert reading.end() is False
    assert not waiting.found or waiting.found[0][0] == READ  # what came after the end


def test_nobody_reads_where_the_gate_is_shut_or_nothing_is_watched(client: Client, gate: Gate) -> None:
    assert client.read() is None
    waiting = WaitingThread(gate)
    gate.unwatch(client.ours.fileno())
    assert client.read() is None
    gate.watch(client.ours.fileno())
    client.pair.client.links.table.clear()
    reading = Reading(client)
    client.send(b"one")
    assert reading.end()
    assert [found for _, found in client.unread] == [None]
    assert waiting.end() == [(LEFT, 0)]


def test_a_socket_that_the_loop_ends_is_closed_by_who_waits(client: Client, gate: Gate, waiting: WaitingThread) -> None:
    descriptor = os.dup(client.ours.fileno())
    gate.unwatch(client.ours.fileno())
    gate.watch(descriptor)
    reading = Reading(client)
    assert gate.unwatch(descriptor)
    client.send(b"one")
    assert reading.end()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    assert not client.arrived.messages
    assert not client.unread
    assert waiting.found is None


def test_wrong_arguments_are_errors(client: Client, waiting: WaitingThread) -> None:
    assert waiting.found is None
    actions, signal = client.actions, client.poll.fileno()
    wrong: Any = None
    with pytest.raises(TypeError):
        actions.wait_and_read(client.place, signal, 1.0, (1, 2))
    with pytest.raises(TypeError):
        actions.wait_and_read(client.place[:7], signal, 1.0, (None,) * 8)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        actions.wait_and_read(client.place, wrong, 1.0, (None,) * 8)


def test_an_error_in_what_is_taken_in_ends_the_connection(client: Client, waiting: WaitingThread) -> None:
    del client.session.on_message
    errors: list[AttributeError] = []

    def read() -> None:
        try:
            while client.read(WAIT_LIMIT) is None:
                pass
        except AttributeError as error:
            errors.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    wait_until(lambda: client.read(0.0) is None)
    client.send(b"one")
    thread.join(WAIT_LIMIT)
    assert errors
    assert waiting.end() in ([(READ, 0)], [])
    assert client.theirs.recv(1) == b""
    assert gc.isenabled()
