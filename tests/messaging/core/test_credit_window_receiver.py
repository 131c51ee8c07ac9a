"""In which portions a receiver gives credit."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from bus.peer import Peer
from messaging.scripted_peer import ScriptedPeer, scripted_peer
from support.recording import message
from support.waiting import WAIT_LIMIT, until, wait_until

from qmf.bus.engine.link import Link
from qmf.messaging import Connection, Session, aio
from qmf.messaging.core.waiting import Condition


@pytest.mark.parametrize("capacity", [1, 2, 3, 10])
def test_credit_is_given_for_half_of_the_capacity_or_more(capacity: int) -> None:
    count = 20 * capacity
    portions: list[int] = []
    with scripted_peer() as script:
        send = script.send

        def note_and_send(peer: Peer, link: Link) -> None:
            if link.is_sender and script.to_send:
                portions.append(peer.engine.links.credit(link))
            send(peer, link)  # uses all of it

        script.send = note_and_send  # type: ignore[method-assign]
        script.to_send += [str(number) for number in range(count)]
        with Connection.establish(script.url) as connection:
            receiver = connection.session().receiver("q", capacity=capacity)
            found = [receiver.fetch(WAIT_LIMIT).content for _ in range(count)]
    assert found == [str(number).encode() for number in range(count)]
    assert capacity <= portions[0] <= capacity + 1  # the call that waits may have its own
    assert all(2 * portion >= capacity for portion in portions)
    assert len(portions) <= 2 * count // capacity + 1


def credit_at(script: ScriptedPeer, session: Session) -> int:
    """The credit that the peer has for the first link, once it knows all that was done."""
    session.receiver(f"after-{len(script.links)}")
    found: list[int] = []
    script.do(lambda peer: found.append(peer.engine.links.credit(script.links[0])))
    return found[0]


@pytest.mark.parametrize("threshold", [0, 0.3, 0.5, 0.8, 1])
def test_a_program_says_how_many_messages_are_left_when_credit_is_renewed(threshold: float) -> None:
    with scripted_peer() as script, Connection.establish(script.url) as connection:
        session = connection.session()
        script.to_send += [str(number) for number in range(10)]
        receiver = session.receiver("q")
        receiver.threshold = threshold
        assert receiver.threshold == threshold
        receiver.capacity = 10
        wait_until(lambda: receiver.available() == 10)
        for left in range(9, -1, -1):
            receiver.fetch(WAIT_LIMIT)
            renewed = left <= 10 * threshold
            assert credit_at(script, session) == (10 - left if renewed else 0)
            if renewed:
                break


def test_a_fetch_that_has_its_message_gets_no_credit_for_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Condition.wait_on_thread
    with scripted_peer() as script, Connection.establish(script.url) as connection:
        session = connection.session()
        receiver = session.receiver("q", capacity=1)

        def send(number: str) -> None:
            script.to_send.append(number)
            script.do(lambda peer: script.send(peer, script.links[0]))

        def wait_and_go_on_late(
            condition: Condition, predicate: Callable[[], bool], timeout: float | None, **options: Any
        ) -> bool:
            wait_until(lambda: credit_at(script, session) == 2, "credit for the call that waits")
            send("0")
            result = wait(condition, predicate, timeout, **options)
            send("1")  # arrives while the call has its message, and has not returned
            wait_until(lambda: receiver.available() == 1)
            return result

        monkeypatch.setattr(Condition, "wait_on_thread", wait_and_go_on_late)
        assert receiver.fetch(WAIT_LIMIT).content == b"0"
        assert credit_at(script, session) == 0


@pytest.mark.parametrize("threshold", [-0.1, 1.1, 50])
def test_a_threshold_is_a_part(threshold: float) -> None:
    with scripted_peer() as script, Connection.establish(script.url) as connection:
        receiver = connection.session().receiver("q")
        assert receiver.threshold == 0.5
        with pytest.raises(ValueError, match="0 to 1"):
            receiver.threshold = threshold
        assert receiver.threshold == 0.5


def test_credit_is_taken_back_when_the_capacity_is_lowered() -> None:
    with scripted_peer() as script, Connection.establish(script.url) as connection:
        session = connection.session()
        receiver = session.receiver("q", capacity=10)
        assert credit_at(script, session) == 10
        receiver.capacity = 3
        assert credit_at(script, session) == 3
        receiver.capacity = 0
        assert credit_at(script, session) == 0
        receiver.capacity = 5
        assert credit_at(script, session) == 5


def test_messages_that_cross_the_lowered_capacity_go_back() -> None:
    released: list[str] = []
    with scripted_peer() as script, Connection.establish(script.url) as connection:
        session = connection.session()
        receiver = session.receiver("q", capacity=10)
        assert credit_at(script, session) == 10

        def send_before_it_is_known(peer: Peer) -> None:
            receiver.capacity = 1
            for number in range(4):
                peer.engine.deliveries.send(script.links[0], message("q", "", str(number)))

        script.on_outcome = lambda event: released.append(event.outcome.value)
        script.do(send_before_it_is_known)
        wait_until(lambda: released == ["released"] * 3)
        assert receiver.fetch(WAIT_LIMIT).content == b"0"
        assert credit_at(script, session) == 1
        receiver.capacity = 0
        assert credit_at(script, session) == 0


async def test_a_fetch_that_waits_has_credit_of_its_own_until_it_is_cancelled() -> None:
    with scripted_peer() as script:
        async with aio.Connection(script.url) as connection:
            session = await connection.session()
            receiver = await session.receiver("q", capacity=3)
            assert await _credit_at(script, session) == 3
            waiting = [asyncio.create_task(receiver.fetch()) for _ in range(3)]
            await asyncio.sleep(0)
            assert await _credit_at(script, session) == 6
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert await _credit_at(script, session) == 3


async def _credit_at(script: ScriptedPeer, session: aio.Session) -> int:
    await session.receiver(f"after-{len(script.links)}")
    found: list[int] = []
    await asyncio.to_thread(script.do, lambda peer: found.append(peer.engine.links.credit(script.links[0])))
    return found[0]


def test_an_interrupted_fetch_takes_its_credit_back() -> None:
    def interrupt() -> None:
        credit: list[int] = []

        def note(peer: Peer) -> None:
            credit.append(peer.engine.links.credit(script.links[0]))

        while credit[-1:] != [2]:  # one for the call that waits
            script.do(note)
        os.kill(os.getpid(), signal.SIGINT)

    with scripted_peer() as script, Connection.establish(script.url) as connection:
        session = connection.session()
        receiver = session.receiver("q", capacity=1)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            receiver.fetch()
        thread.join()
        assert credit_at(script, session) == 1


def test_messages_of_several_forms_come_in_their_order() -> None:
    contents: list[str] = ["a", "b", "c", "", "d" * 300, "e", "f"]
    with scripted_peer() as script, Connection.establish(script.url) as connection:
        script.to_send += contents * 3
        receiver = connection.session().receiver("q", capacity=100)
        wait_until(lambda: receiver.available() == 21)
        found = [receiver.fetch(0) for _ in range(21)]
        assert [each.content for each in found] == [each.encode() for each in contents * 3]
        assert len({id(each.delivery) for each in found}) == 21


async def test_the_broker_gets_credit_while_a_program_fetches_what_has_come() -> None:
    with scripted_peer() as script:
        script.to_send += [str(number) for number in range(400)]
        async with aio.Connection(script.url) as connection:
            receiver = await (await connection.session()).receiver("q", capacity=400)
            await until(lambda: receiver.available() == 400)
            for _ in range(200):
                await receiver.fetch()
            credit: list[int] = []

            def is_given() -> bool:
                script.do(lambda peer: credit.append(peer.engine.links.credit(script.links[0])))
                return credit[-1] == 200

            wait_until(is_given)  # the loop has no turn meanwhile
