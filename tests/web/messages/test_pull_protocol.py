"""The protocols of pull consumers: what a post means in each state; nothing is lost or repeated over restarts."""

from __future__ import annotations

import collections
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf._state_table import IllegalEvent
from qmf.web.messages.pull_protocol import (
    TRANSITIONS,
    ConsumerState,
    ConsumerTrigger,
    LinkKind,
    NextStep,
    PullProtocol,
    Verdict,
)


def auto(**options: int | bool) -> PullProtocol[str]:
    return PullProtocol(acknowledged=False, **options)  # type: ignore[arg-type]


def acknowledged(**options: int | bool) -> PullProtocol[str]:
    return PullProtocol(acknowledged=True, **options)  # type: ignore[arg-type]


def test_auto_acknowledge_counts_from_one() -> None:
    protocol = auto()
    assert protocol.next_step == NextStep(LinkKind.CONSUME_NEXT, 1)
    assert protocol.pull(1) is Verdict.PROCEED
    protocol.on_fetched("a")
    assert protocol.next_step == NextStep(LinkKind.CONSUME_NEXT, 2)


def test_a_repeated_pull_gets_the_message_again_until_the_next_one() -> None:
    protocol = auto()
    protocol.pull(1)
    protocol.on_fetched("a")
    assert [protocol.pull(1), protocol.pull(1)] == [Verdict.REPEAT] * 2
    assert protocol.message == "a"
    assert protocol.pull(2) is Verdict.PROCEED
    protocol.on_fetched("b")
    assert protocol.pull(1) is Verdict.REFUSE
    assert protocol.pull(3) is Verdict.PROCEED


def test_an_empty_pull_keeps_its_number_and_the_message_before_it() -> None:
    protocol = auto()
    protocol.pull(1)
    protocol.on_fetched("a")
    protocol.pull(2)
    protocol.nothing()
    assert protocol.next_step.number == 2
    assert protocol.pull(1) is Verdict.REPEAT
    assert protocol.pull(2) is Verdict.PROCEED


@pytest.mark.parametrize("number", [1, 2, 999, 1001])
def test_a_renewed_auto_acknowledge_consumer_refuses_all_numbers_but_its_own(number: int) -> None:
    protocol = auto(first=1000, renewed=True)
    assert protocol.pull(number) is Verdict.REFUSE
    assert protocol.next_step == NextStep(LinkKind.CONSUME_NEXT, 1000)
    assert protocol.pull(1000) is Verdict.PROCEED


def test_acknowledgement_has_the_numbers_of_the_chapter() -> None:
    protocol = acknowledged()
    assert protocol.next_step == NextStep(LinkKind.ACKNOWLEDGE_NEXT, 1)
    protocol.pull(1)
    protocol.on_fetched("a")
    assert protocol.next_step == NextStep(LinkKind.ACKNOWLEDGEMENT, 2)
    assert protocol.acknowledge(2, accept=True) is Verdict.PROCEED
    protocol.on_settled()
    assert protocol.next_step == NextStep(LinkKind.ACKNOWLEDGE_NEXT, 2)
    assert protocol.message is None


def test_a_repeated_acknowledgement_is_answered_alike_and_another_one_refused() -> None:
    protocol = acknowledged()
    protocol.pull(1)
    protocol.on_fetched("a")
    protocol.acknowledge(2, accept=False)
    protocol.on_settled()
    assert protocol.acknowledge(2, accept=False) is Verdict.REPEAT
    assert protocol.acknowledge(2, accept=True) is Verdict.REFUSE
    assert protocol.pull(1) is Verdict.REFUSE
    protocol.pull(2)
    protocol.on_fetched("a")
    assert protocol.acknowledge(2, accept=False) is Verdict.REFUSE
    assert protocol.next_step == NextStep(LinkKind.ACKNOWLEDGEMENT, 3)


def test_a_delivered_message_has_to_be_acknowledged_before_the_next_pull() -> None:
    protocol = acknowledged()
    protocol.pull(1)
    protocol.on_fetched("a")
    assert protocol.pull(2) is Verdict.REFUSE
    assert protocol.pull(1) is Verdict.REPEAT
    assert protocol.acknowledge(3, accept=True) is Verdict.REFUSE


def test_a_renewed_consumer_takes_any_pull_once_and_no_acknowledgement() -> None:
    protocol = acknowledged(first=1000, renewed=True)
    assert protocol.acknowledge(2, accept=True) is Verdict.REFUSE
    assert protocol.next_step == NextStep(LinkKind.ACKNOWLEDGE_NEXT, 1000)
    assert protocol.pull(7) is Verdict.PROCEED
    protocol.on_fetched("a")
    assert protocol.pull(7) is Verdict.REPEAT
    assert protocol.pull(6) is Verdict.REFUSE
    assert protocol.acknowledge(8, accept=True) is Verdict.REFUSE
    assert protocol.acknowledge(1001, accept=True) is Verdict.PROCEED
    protocol.on_settled()
    assert protocol.pull(7) is Verdict.REFUSE


def test_a_message_that_went_back_is_pulled_again_with_the_same_link() -> None:
    protocol = acknowledged()
    protocol.pull(1)
    protocol.on_fetched("a")
    protocol.on_lost()
    assert protocol.acknowledge(2, accept=True) is Verdict.REFUSE
    assert protocol.next_step == NextStep(LinkKind.ACKNOWLEDGE_NEXT, 2)
    assert protocol.pull(1) is Verdict.PROCEED
    protocol.on_fetched("b")
    # The number of the acknowledgement that was lost is not that of another message.
    assert protocol.acknowledge(2, accept=True) is Verdict.REFUSE
    assert protocol.acknowledge(3, accept=True) is Verdict.PROCEED


def test_a_message_that_goes_back_while_it_is_settled() -> None:
    protocol = acknowledged()
    protocol.pull(1)
    protocol.on_fetched("a")
    protocol.acknowledge(2, accept=True)
    protocol.on_lost()
    assert protocol.acknowledge(2, accept=True) is Verdict.REFUSE
    assert protocol.next_step.kind is LinkKind.ACKNOWLEDGE_NEXT


def test_what_is_not_possible_raises_and_changes_nothing() -> None:
    protocol = acknowledged()
    with pytest.raises(IllegalEvent, match="the consumer is ready; 'settled' is not possible then"):
        protocol.on_settled()
    assert protocol.state is ConsumerState.READY
    protocol.close()
    protocol.close()
    assert protocol.pull(1) is Verdict.REFUSE


def test_every_state_can_be_reached_and_closed() -> None:
    reached = {ConsumerState.READY}
    for state, trigger in itertools.product(ConsumerState, ConsumerTrigger):
        if trigger in TRANSITIONS.rows[state]:
            reached.add(TRANSITIONS.next(state, trigger))
    assert reached == set(ConsumerState)
    assert all(ConsumerTrigger.CLOSE in TRANSITIONS.rows[state] for state in ConsumerState)


class Lost(Exception):
    """The client got no answer."""


class Server:
    """A server with a broker behind it; it is lost whenever `lose` says so, before or after it has done something."""

    def __init__(self, messages: int, *, acknowledged: bool) -> None:
        self.queue = collections.deque(range(messages))
        self.acknowledged: set[int] = set()
        self._manual = acknowledged
        self._numbers = itertools.count(1000, 1000)
        self._protocol: PullProtocol[int] = PullProtocol(acknowledged=acknowledged)

    def restart(self) -> None:
        """What was delivered and not acknowledged goes back, as the broker sees the connection end."""
        if self._protocol.state is ConsumerState.DELIVERED:
            assert self._protocol.message is not None
            self.queue.appendleft(self._protocol.message)
        self._protocol = PullProtocol(acknowledged=self._manual, first=next(self._numbers), renewed=True)

    def pull(self, number: int) -> tuple[int | None, NextStep]:
        verdict = self._protocol.pull(number)
        if verdict is Verdict.PROCEED:
            if not self.queue:
                self._protocol.nothing()
                return None, self._protocol.next_step
            message = self.queue.popleft()
            if not self._manual:
                self.acknowledged.add(message)
            self._protocol.on_fetched(message)
        return (None if verdict is Verdict.REFUSE else self._protocol.message), self._protocol.next_step

    def acknowledge(self, number: int, accept: bool) -> tuple[bool, NextStep]:
        verdict = self._protocol.acknowledge(number, accept=accept)
        if verdict is Verdict.PROCEED:
            message = self._protocol.message
            assert message is not None
            if accept:
                self.acknowledged.add(message)
            else:
                self.queue.appendleft(message)
            self._protocol.on_settled()
        return verdict is not Verdict.REFUSE, self._protocol.next_step


#: What happens to a post: it is answered, its answer is lost, or the server is lost before or after it.
FATES = st.sampled_from(["answered"] * 5 + ["answer lost", "server lost before", "server lost after"])


@given(st.booleans(), st.lists(st.tuples(FATES, st.booleans()), max_size=60), st.integers(0, 8))
def test_nothing_is_lost_and_nothing_acknowledged_returns(
    manual: bool, fates: list[tuple[str, bool]], messages: int
) -> None:
    server = Server(messages, acknowledged=manual)
    step = NextStep(LinkKind.ACKNOWLEDGE_NEXT if manual else LinkKind.CONSUME_NEXT, 1)
    processed: list[int] = []
    holding: int | None = None
    # After the given fates, all goes well until everything is consumed.
    for fate, accept in [*fates, *[("answered", True)] * (3 * messages + 5)]:
        if fate == "server lost before":
            server.restart()
        before = set(server.acknowledged)
        if step.kind is LinkKind.ACKNOWLEDGEMENT:
            settled, following = server.acknowledge(step.number, accept)
            if fate in ("answered", "server lost before"):
                if settled and accept:
                    assert holding is not None
                    assert holding in server.acknowledged
                    processed.append(holding)
                holding, step = None, following
        else:
            message, following = server.pull(step.number)
            if message is not None and manual:
                assert message not in before  # nothing that was acknowledged returns
            if fate in ("answered", "server lost before"):
                if message is not None:
                    holding = message
                    if not manual:
                        processed.append(message)
                step = following
        if fate == "server lost after":
            server.restart()
    assert not server.queue
    assert server.acknowledged == set(range(messages))
    if manual:
        assert len(processed) == len(set(processed))
    else:
        assert len(processed) == len(set(processed))
        # With auto-acknowledge, what the client never saw is what the server was lost with.
        assert set(processed) <= set(range(messages))
