"""In which order a queue with priorities delivers: as qpidd, also with a fair share of the lower ones."""

from __future__ import annotations

import uuid

import pytest

from qmf.messaging import Empty, Message, Session

pytestmark = pytest.mark.only("embedded", "qpidd")

PRIORITIES = [8, 9, 5, 1, 2, 2, 3, 4, 9, 7, 8, 9, 9, 2, 0, 4, 9]


def delivered(session: Session, arguments: str, priorities: list[int]) -> list[tuple[int, int]]:
    """Priority and place of the messages in the order in which they are delivered."""
    name = f"priorities-{uuid.uuid4().hex[:8]}"
    sender = session.sender(
        f"{name}; {{create: always, delete: always, node: {{x-declare: {{arguments: {{{arguments}}}}}}}}}"
    )
    for place, priority in enumerate(priorities):
        sender.send(Message({"place": place}, priority=priority))
    receiver = session.receiver(name)
    found: list[tuple[int, int]] = []
    while True:
        try:
            message = receiver.fetch(timeout=0)
        except Empty:
            return found
        found.append((message.priority or 4, message.content["place"]))
        session.acknowledge(message)


def level(priority: int, levels: int) -> int:
    """Which of so many levels a priority belongs to: those around 4 and 5 are told apart (AMQP 0-10)."""
    return min(max(priority - (5 - (levels + 1) // 2), 0), levels - 1)


@pytest.mark.parametrize("levels", [10, 5, 2])
@pytest.mark.parametrize("argument", ["x-qpid-priorities", "'qpid.priorities'"])
def test_higher_priorities_come_first(session: Session, levels: int, argument: str) -> None:
    places = sorted(range(len(PRIORITIES)), key=lambda place: (-level(PRIORITIES[place], levels), place))
    assert [place for _, place in delivered(session, f"{argument}: {levels}", PRIORITIES)] == places


def test_a_fair_share_of_lower_priorities(session: Session) -> None:
    """After 3 messages of a priority there is one of the next lower one, if there is one."""
    found = delivered(session, "'qpid.priorities': 10, 'qpid.fairshare': 3", [9] * 7 + [5] * 4 + [2])
    assert [priority for priority, _ in found] == [9, 9, 9, 5, 5, 5, 2, 9, 9, 9, 5, 9]


def test_a_share_of_each_priority(session: Session) -> None:
    arguments = "'qpid.priorities': 10, 'qpid.fairshare-9': 2, 'qpid.fairshare-5': 1"
    found = delivered(session, arguments, [9] * 4 + [5] * 3 + [2] * 2)
    assert [priority for priority, _ in found] == [9, 9, 5, 2, 2, 9, 9, 5, 5]
