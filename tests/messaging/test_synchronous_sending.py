"""Messages that the program's thread sends itself, while that of the connection waits."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator

import pytest
from bus.peer import Peer
from messaging.scripted_peer import ScriptedPeer, scripted_peer
from support.waiting import WAIT_LIMIT, wait_until

from qmf.broker import EmbeddedBroker
from qmf.bus.engine.events import Delivery, OutcomeReceived
from qmf.bus.engine.values import Outcome
from qmf.bus.gate import has_gates
from qmf.bus.lane import Lane
from qmf.messaging import Connection, LinkClosed, Message, MessagingError, Session

pytestmark = pytest.mark.skipif(not has_gates(), reason="the compiled modules are not installed, or this is not Linux")


@pytest.fixture
def credit() -> int:
    """Of the peer, which does not renew it."""
    return 1000


@pytest.fixture
def peer(credit: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedPeer]:
    grant = Peer.grant
    monkeypatch.setattr(Peer, "grant", lambda peer, link: grant(peer, link, credit))
    with scripted_peer() as peer:
        yield peer


@pytest.fixture
def session(peer: ScriptedPeer) -> Iterator[Session]:
    with Connection.establish(peer.url, timeout=10) as connection:
        yield connection.session()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each message that a thread of the program has tried to send: whether it could."""
    found: list[bool] = []
    send = Lane.send

    def note(self: Lane, *arguments: object) -> bool:
        found.append(send(self, *arguments))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(Lane, "send", note)
    return found


def _texts(peer: ScriptedPeer) -> list[str]:
    """What the peer has got, in order."""
    return [body[-4:].decode() for each in peer.peers for body in each.bodies]


def test_messages_of_all_kinds_arrive_in_order(peer: ScriptedPeer, session: Session, sent: list[bool]) -> None:
    sender = session.sender("node", timeout=10)
    texts = [f"{number:04}" for number in range(400)]
    for number, text in enumerate(texts):
        sender.send(Message(text), sync=number % 3 == 0 or number % 50 < 10, timeout=10)
    session.sync(10)
    assert _texts(peer) == texts
    assert True in sent
    assert sender.unsettled() == 0


def test_each_of_several_threads_has_its_order(peer: ScriptedPeer, session: Session, sent: list[bool]) -> None:
    sender = session.sender("node", timeout=10)
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(100):
                sender.send(Message(f"{thread}{number:03}"), sync=number % 2 == 0, timeout=30)
        except MessagingError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.sync(30)
    assert not errors
    texts = _texts(peer)
    assert sorted(texts) == [f"{thread}{number:03}" for thread in range(4) for number in range(100)]
    for number in range(4):
        of_thread = [text for text in texts if text[0] == str(number)]
        assert of_thread == sorted(of_thread)
    assert True in sent


def test_a_message_that_nobody_waits_for_is_sent_by_itself(
    peer: ScriptedPeer, session: Session, sent: list[bool]
) -> None:
    sender = session.sender("node", timeout=10)
    sender.send("0000", timeout=10)
    sender.send("0001", sync=False)
    assert sent[-1]  # the connection's thread waits when it has woken up the one of the message before
    wait_until(lambda: _texts(peer) == ["0000", "0001"])


def test_many_messages_that_nobody_waits_for_are_left_to_the_other_thread(
    peer: ScriptedPeer, session: Session, sent: list[bool]
) -> None:
    """All after the first one, until the program has waited for a message."""
    peer.silent = True
    sender, receiver = session.sender("node", timeout=10), session.receiver("node", capacity=1, timeout=10)
    sender.send("0000", sync=False)
    assert sent == [True]
    sender.send("0001", sync=False)
    wait_until(lambda: _texts(peer) == ["0000", "0001"])
    peer.silent = False
    for event in list(peer.peers[-1].events):
        if isinstance(event, Delivery) and event.delivery_tag is not None:
            tag = event.delivery_tag
            peer.do(lambda each, tag=tag: each.engine.decisions.settle(each.links[0], tag))  # type: ignore[misc]
    session.sync(10)
    sender.send("0002", timeout=10)
    assert sent == [True, True]
    sender.send("0003", sync=False)
    session.sync(10)
    assert sent == [True, True]
    timer = threading.Timer(0.05, lambda: peer.do(lambda each: _send(peer, each)))
    timer.start()
    receiver.fetch(10)
    timer.join()
    sender.send("0004", sync=False)
    assert sent == [True, True, True]


def _send(peer: ScriptedPeer, each: Peer) -> None:
    peer.to_send.append("x")
    peer.send(each, each.links[1])


@pytest.mark.parametrize("credit", [2])
def test_without_credit_messages_wait_and_keep_their_order(peer: ScriptedPeer, session: Session) -> None:
    sender = session.sender("node", timeout=10)
    sender.send("0000", timeout=10)
    sender.send("0001", timeout=10)
    sender.send("0002", sync=False)
    sender.send("0003", sync=False)
    assert sender.unsettled() == 2
    peer.do(lambda each: each.engine.links.add_credit(each.links[0], 10))
    session.sync(10)
    assert _texts(peer) == ["0000", "0001", "0002", "0003"]


def test_a_socket_that_takes_no_more_loses_nothing(peer: ScriptedPeer, session: Session, sent: list[bool]) -> None:
    """The peer does not read for a while: no thread of the program writes then, and all is written in order later."""
    senders = [session.sender(f"node{number}", timeout=10) for number in range(10)]
    peer.stop_reading()
    for number in range(250):
        senders[0].send(Message("x" * 60_000 + f"{number:04}"), sync=False)
    tried = len(sent)
    assert True in sent
    for number, sender in enumerate(senders[1:], 250):
        sender.send(Message("x" * 60_000 + f"{number:04}"), sync=False)
    assert True not in sent[tried:]
    peer.do(lambda each: each.transport.read_on())
    session.sync(30)
    texts = _texts(peer)
    assert [text for text in texts if text < "0250"] == [f"{number:04}" for number in range(250)]
    assert sorted(texts) == [f"{number:04}" for number in range(259)]


def test_an_acknowledgement_is_reported_though_nothing_follows(peer: ScriptedPeer, session: Session) -> None:
    outcomes: list[OutcomeReceived] = []
    peer.on_outcome = outcomes.append
    peer.to_send += [f"{number}" for number in range(20)]
    receiver = session.receiver("node", capacity=3, timeout=10)
    for number in range(1, 21):
        session.acknowledge(receiver.fetch(10), sync=False)
        wait_until(lambda number=number: len(outcomes) == number)  # type: ignore[misc]
    assert {outcome.outcome for outcome in outcomes} == {Outcome.ACCEPTED}
    assert receiver.unsettled() == 0


def test_closing_meanwhile_ends_sending_with_an_error(peer: ScriptedPeer, sent: list[bool]) -> None:
    with Connection.establish(peer.url, timeout=10) as connection:
        sender = connection.session().sender("node", timeout=10)
        accepted, errors = 0, list[MessagingError]()
        begun = threading.Event()

        def work() -> None:
            nonlocal accepted
            try:
                while True:
                    sender.send(Message(f"{accepted:04}"), timeout=30)
                    accepted += 1
                    if accepted == 50:
                        begun.set()
            except MessagingError as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(WAIT_LIMIT)
        sender.close()
        thread.join(WAIT_LIMIT)
        assert isinstance(errors[0], LinkClosed)
        texts = _texts(peer)
        assert texts[:accepted] == [f"{number:04}" for number in range(accepted)]
        assert len(texts) <= accepted + 1


class _Interrupt(Exception):
    """What a handler of signals raises."""


@pytest.mark.slow
def test_handlers_of_signals_that_raise_lose_nothing() -> None:
    """At whatever place: what was sent is there, in order, and the connection goes on."""
    chance = random.Random(7)

    def interrupt(*_: object) -> None:
        raise _Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with EmbeddedBroker() as broker, Connection.establish(broker.url, timeout=10) as connection:
            session = connection.session()
            sender = session.sender("jobs; {create: always}", timeout=10)
            receiver = session.receiver("jobs", capacity=100, timeout=10)
            returned, interrupted = list[int](), 0
            for number in range(1500):
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00002, 0.001))
                    sender.send(Message(str(number)), sync=bool(number % 2), timeout=30)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    returned.append(number)
                except _Interrupt:
                    interrupted += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            sender.send("end", timeout=30)
            found = []
            while (content := receiver.fetch(10).content) != "end":
                found.append(int(content))
                session.acknowledge(sync=False)
            assert found == sorted(set(found))
            assert set(returned) <= set(found)
            assert interrupted
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_handlers_of_signals_may_send_themselves() -> None:
    """A handler runs between any two instructions of the main thread, also while that sends."""
    chance = random.Random(7)
    with EmbeddedBroker() as broker, Connection.establish(broker.url, timeout=10) as connection:
        session = connection.session()
        sender = session.sender("jobs; {create: always}", timeout=10)
        of_handler = 0

        def send(*_: object) -> None:
            nonlocal of_handler
            of_handler += 1
            sender.send(Message("from the handler"), sync=bool(of_handler % 2), timeout=30)

        before = signal.signal(signal.SIGALRM, send)
        try:
            for number in range(300):
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.00002, 0.001))
                sender.send(Message(str(number)), sync=bool(number % 2), timeout=30)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        session.sync(30)
        receiver = session.receiver("jobs", capacity=100, timeout=10)
        found = [str(receiver.fetch(10).content) for _ in range(300 + of_handler)]
        assert [text for text in found if text.isdigit()] == [str(number) for number in range(300)]
        assert of_handler
