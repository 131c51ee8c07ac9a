"""Messages that the program's thread reads itself while it waits for them, and what comes with them for others."""

from __future__ import annotations

import functools
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.proxy import Proxy
from support.waiting import WAIT_LIMIT, wait_until

from qmf.bus.gate import has_gates
from qmf.bus.lane import Lane
from qmf.messaging import Connection, Message, MessagingError, Sender, Session

pytestmark = pytest.mark.skipif(not has_gates(), reason="the compiled modules are not installed, or this is not Linux")


@pytest.fixture
def session(embedded: str) -> Iterator[Session]:
    with Connection.establish(embedded, timeout=10) as connection:
        yield connection.session()


@pytest.fixture
def other(embedded: str) -> Iterator[Session]:
    """A session of another connection, for messages that come while the first one waits."""
    with Connection.establish(embedded, timeout=10) as connection:
        yield connection.session()


class _Reads:
    """Who has read: how often the loop's thread, and what came of the program's."""

    def __init__(self) -> None:
        self.by_loop = 0
        self.by_thread: list[bool | None] = []


@pytest.fixture
def reads(session: Session, monkeypatch: pytest.MonkeyPatch) -> _Reads:
    assert session
    found, on_read, wait_and_read = _Reads(), Lane.on_read, Lane.wait_and_read

    def note_loop(self: Lane, size: int) -> None:
        found.by_loop += 1
        on_read(self, size)

    def note_thread(self: Lane, signal: int, seconds: float, reading: tuple[object, ...]) -> bool | None:
        found.by_thread.append(wait_and_read(self, signal, seconds, reading))
        return found.by_thread[-1]

    monkeypatch.setattr(Lane, "on_read", note_loop)
    monkeypatch.setattr(Lane, "wait_and_read", note_thread)
    return found


def _start(*works: Callable[[], object]) -> tuple[list[threading.Thread], list[BaseException]]:
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - for the test's thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    return threads, errors


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(WAIT_LIMIT)
        assert not thread.is_alive()


def test_answers_to_requests_are_read_by_the_thread_that_waits(session: Session, other: Session, reads: _Reads) -> None:
    requests = other.receiver("#", capacity=10)
    sender, answers = session.sender(requests.source.name), session.receiver("#", capacity=10)

    def respond() -> None:
        for _ in range(100):
            request = requests.fetch(10)
            assert request.reply_to is not None
            if not senders:
                senders.append(other.sender(str(request.reply_to)))
            senders[0].send(Message(request.content, correlation_id=request.correlation_id), sync=False)
            other.acknowledge(request, sync=False)

    senders: list[Sender] = []
    threads, errors = _start(respond)
    for number in range(100):
        sender.send(Message(str(number), reply_to=str(answers.source), correlation_id=str(number)), sync=False)
        answer = answers.fetch(10)
        assert (answer.content, answer.correlation_id) == (str(number), str(number))
        session.acknowledge(answer, sync=False)
    _join(threads)
    session.sync(10)
    assert not errors
    assert True in reads.by_thread
    assert sender.unsettled() == 0
    other.sender(answers.source.name).send("later")
    assert answers.fetch(10).content == "later"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_messages_come_once_to_any_of_the_threads_that_wait(session: Session, other: Session, threads: int) -> None:
    receiver = session.receiver("#", capacity=5)
    sender, count, found = other.sender(receiver.source.name), 300, list[str]()

    def fetch() -> None:
        while (text := receiver.fetch(10).content) != "end":
            found.append(text)
            session.acknowledge(sync=False)

    started, errors = _start(*[fetch] * threads)
    for number in range(count):
        sender.send(str(number), sync=number % 7 == 0)
    wait_until(lambda: len(found) == count)
    for _ in range(threads):
        sender.send("end")
    _join(started)
    assert not errors
    assert Counter(found) == Counter(map(str, range(count)))
    if threads == 1:
        assert found == [*map(str, range(count))]


def test_messages_of_other_receivers_are_left_to_the_other_thread(session: Session, other: Session) -> None:
    waited, unwaited = session.receiver("#", capacity=10), session.receiver("#", capacity=10)
    first, second = other.sender(waited.source.name), other.sender(unwaited.source.name)
    found: list[str] = []
    threads, errors = _start(lambda: found.append(waited.fetch(10).content))
    for number in range(5):
        second.send(str(number))
    wait_until(lambda: unwaited.available() == 5)
    assert not found
    first.send("here")
    _join(threads)
    assert not errors
    assert found == ["here"]
    assert [unwaited.fetch(0).content for _ in range(5)] == [*"01234"]


def test_other_threads_get_the_answers_to_what_they_send(session: Session, other: Session) -> None:
    """While a thread waits for messages, others wait for acceptance and for capacity."""
    receiver = session.receiver("#", capacity=10)
    node = other.receiver("#", capacity=1000).source.name
    sender, narrow = session.sender(node), session.sender(node, capacity=3)

    def send() -> None:
        for number in range(50):
            sender.send(str(number), timeout=10)

    def send_many() -> None:
        for number in range(200):
            narrow.send(str(number), sync=False, timeout=10)
        narrow.sync(10)

    waiting, errors = _start(lambda: receiver.fetch(10))
    sending, more = _start(send, send_many)
    _join(sending)
    assert not more
    assert sender.unsettled() == narrow.unsettled() == 0
    other.sender(receiver.source.name).send("end")
    _join(waiting)
    assert not errors


def test_a_handler_of_messages_is_called_for_all(session: Session, other: Session, reads: _Reads) -> None:
    receiver = session.receiver("#", capacity=10)
    handled: list[int] = []
    session.set_message_received_handler(lambda session: handled.append(1))
    sender = other.sender(receiver.source.name)
    for number in range(20):
        threads, errors = _start(lambda: receiver.fetch(10))
        sender.send(str(number))
        _join(threads)
        assert not errors
        session.acknowledge()
    wait_until(lambda: len(handled) == 20)
    assert reads.by_loop


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_the_end_of_a_connection_is_noticed_and_the_next_one_is_read(embedded: str, other: Session) -> None:
    queue = f"q-{uuid.uuid4()}"
    sender = other.sender(f"{queue}; {{create: always, delete: always}}")
    found, descriptors = list[str](), list[int]()
    with (
        Proxy(embedded) as proxy,
        Connection.establish(proxy.url, timeout=10, reconnect=True, reconnect_interval=0.01) as connection,
    ):
        session = connection.session()
        receiver = session.receiver(queue, capacity=10)

        def fetch() -> None:
            while (text := receiver.fetch(WAIT_LIMIT).content) != "end":
                found.append(text)
                session.acknowledge(sync=False)

        threads, errors = _start(fetch)
        for number in range(10):
            sender.send(str(number))
            wait_until(functools.partial(found.__contains__, str(number)))
            proxy.cut()
            wait_until(lambda: connection.attached())
            descriptors.append(_descriptors())
        wait_until(lambda: _descriptors() < descriptors[0] + 5)  # of ten connections, none has left any
        sender.send("end")
        _join(threads)
    sender.close()
    assert not errors


def test_closing_ends_the_wait(embedded: str) -> None:
    connection = Connection.establish(embedded, timeout=10)
    receiver = connection.session().receiver("#", capacity=10)
    threads, errors = _start(receiver.fetch)
    before = _descriptors()
    connection.close(10)
    _join(threads)
    assert [isinstance(error, MessagingError) for error in errors] == [True]
    wait_until(lambda: _descriptors() < before)
