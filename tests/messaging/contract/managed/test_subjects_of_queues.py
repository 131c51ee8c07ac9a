"""A receiver of a queue gets the messages whose subject matches that of its address; the others stay."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from qmf.messaging import Empty, Message, Receiver, Session

pytestmark = pytest.mark.only("embedded", "qpidd")


@pytest.fixture
def name(session: Session) -> Iterator[str]:
    """Of a queue with messages."""
    name = f"subjects-{uuid.uuid4().hex[:8]}"
    sender = session.sender(f"{name}; {{create: always, delete: always}}")
    for subject in ("a", "a.b", "a.c", "b.c", None):
        sender.send(Message(subject or "none", subject=subject, properties={"size": len(subject or "")}))
    yield name
    sender.close()


def contents(receiver: Receiver) -> list[object]:
    found = []
    while True:
        try:
            found.append(receiver.fetch(timeout=0).content)
        except Empty:
            return found


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("a.b", ["a.b"]),
        ("a.*", ["a.b", "a.c"]),
        ("a.#", ["a", "a.b", "a.c"]),
        ("*.c", ["a.c", "b.c"]),
        ("nothing", []),
    ],
)
@pytest.mark.parametrize("mode", ["consume", "browse"])
def test_the_subject_is_a_filter(session: Session, name: str, subject: str, expected: list[str], mode: str) -> None:
    assert contents(session.receiver(f"{name}/{subject}; {{mode: {mode}}}")) == expected
    session.acknowledge()
    left = contents(session.receiver(f"{name}; {{mode: browse}}"))
    assert left == [item for item in ("a", "a.b", "a.c", "b.c", "none") if mode == "browse" or item not in expected]


def test_with_a_selector(session: Session, name: str) -> None:
    receiver = session.receiver(f"{name}/a.#; {{link: {{selector: 'size > 1'}}}}")
    assert contents(receiver) == ["a.b", "a.c"]
    session.acknowledge()


def test_messages_that_come_later(session: Session, name: str) -> None:
    receiver, others = session.receiver(f"{name}/later.*", capacity=5), session.receiver(f"{name}/b.#", capacity=5)
    sender = session.sender(name)
    for subject in ("later.1", "b.later", "later.2"):
        sender.send(Message(subject, subject=subject))
    assert [receiver.fetch(timeout=10).content for _ in range(2)] == ["later.1", "later.2"]
    assert [others.fetch(timeout=10).content for _ in range(2)] == ["b.c", "b.later"]
    session.acknowledge()


def test_an_assertion_of_it_holds(session: Session, name: str) -> None:
    assert contents(session.receiver(f"{name}/a.b; {{assert: always}}")) == ["a.b"]
    session.acknowledge()
