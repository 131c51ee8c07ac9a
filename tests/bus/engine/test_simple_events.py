"""What the compiled functions handle: the owners of links get it at once, and it is the same as without them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engines import Pair

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import (
    AcceptedBatch,
    CreditChanged,
    Delivery,
    DeliveryBatch,
    EngineEvent,
    LinkDetached,
    OutcomeReceived,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.native import native
from qmf.bus.engine.values import Outcome, Terminus


class _Owner:
    """Writes down what it gets, or what the events say."""

    def __init__(self) -> None:
        self.log: list[EngineEvent] = []
        self.at_once = 0

    def on_deliveries(self, batch: DeliveryBatch) -> None:
        self.at_once += len(batch.deliveries)
        self.log += batch.events()

    def on_accepted(self, batch: AcceptedBatch) -> None:
        self.at_once += len(batch.delivery_tags)
        self.log += batch.events()

    def take_events(self, client: Engine) -> None:
        while (event := client.next_event()) is not None:
            self.log.append(event)


def _both_links(pair: Pair) -> tuple[tuple[Link, Link], tuple[Link, Link]]:
    """A link on which the client sends, and one on which it receives; of each the client's end first."""
    outgoing = pair.link(sending=True, credit=20)
    mine = pair.client.links.attach("back", is_sender=False, terminus=Terminus("there"), credit=20)
    pair.pump()
    (theirs,) = [link for link in pair.server.links.by_impl.values() if link.name == "back"]
    pair.server.links.accept(theirs, source=theirs.source, target=theirs.target)
    pair.pump()
    pair.at_client.clear()
    return outgoing, (mine, theirs)


def _feed(pair: Pair, owner: _Owner) -> None:
    """One read of all that the server has written, then the events."""
    pair.client.feed(b"".join(iter(pair.server.output, b"")))
    owner.take_events(pair.client)


def test_owners_get_messages_and_acceptances_in_place_of_events(compiled: bool) -> None:
    pair, owner = Pair(), _Owner()
    (out, out_there), (back, back_there) = _both_links(pair)
    out.direct = back.direct = owner
    tags = [pair.client.deliveries.send(out, data) for data in (b"one", b"two")]
    pair.pump()
    pair.server.decisions.accept_all(
        out_there,
        [event.delivery_tag for event in pair.at_server if isinstance(event, Delivery) and event.delivery_tag],
    )
    pair.server.deliveries.send(back_there, b"three", settled=True)
    _feed(pair, owner)
    assert sorted(owner.log, key=repr) == sorted(
        [*(OutcomeReceived(out, tag, Outcome.ACCEPTED) for tag in tags), Delivery(back, None, b"three")], key=repr
    )
    assert owner.at_once == (3 if compiled else 0)


def test_what_an_owner_does_at_once_leaves_with_the_next_output() -> None:
    pair = Pair()
    _, (back, back_there) = _both_links(pair)

    class Granting(_Owner):
        def on_deliveries(self, batch: DeliveryBatch) -> None:
            super().on_deliveries(batch)
            pair.client.links.add_credit(back, 5)

    owner = Granting()
    back.direct = owner
    before = pair.server.links.credit(back_there)
    pair.server.deliveries.send(back_there, b"one", settled=True)
    _feed(pair, owner)
    pair.pump()
    assert owner.log == [Delivery(back, None, b"one")]
    assert pair.server.links.credit(back_there) == before - 1 + (5 if owner.at_once else 0)


def test_messages_do_not_overtake_events_that_wait() -> None:
    pair, owner = Pair(), _Owner()
    (out, out_there), (back, back_there) = _both_links(pair)
    back.direct = owner
    pair.server.links.add_credit(out_there, 1)
    pair.client.feed(b"".join(iter(pair.server.output, b"")))
    pair.server.deliveries.send(back_there, b"one", settled=True)
    _feed(pair, owner)
    assert owner.log == [CreditChanged(out), Delivery(back, None, b"one")]
    assert owner.at_once == 0


def test_a_link_that_ends_in_the_same_read_has_its_messages_first() -> None:
    pair, owner = Pair(), _Owner()
    _, (back, back_there) = _both_links(pair)
    back.direct = owner
    pair.server.deliveries.send(back_there, b"one", settled=True)
    pair.server.links.detach(back_there, "amqp:resource-deleted", "gone")
    _feed(pair, owner)
    assert owner.log == [
        Delivery(back, None, b"one"),
        LinkDetached(back, "amqp:resource-deleted", "gone", answer=False),
    ]
    assert back.direct is None


#: What the server does between two reads: sends so many messages, accepts so many, gives credit, asks for an answer.
_STEPS = st.lists(
    st.tuples(st.sampled_from(["send", "settled", "accept", "reject", "credit", "large"]), st.integers(1, 4)),
    max_size=12,
)


@settings(max_examples=20)
@given(st.lists(_STEPS, min_size=1, max_size=4), st.integers(1, 400), st.booleans())
def test_with_owners_and_without_happens_the_same(reads: list[list[tuple[str, int]]], piece: int, quiet: bool) -> None:
    logs = []
    for direct in (False, True):
        pair, owner = Pair(), _Owner()
        links = _both_links(pair)
        (out, out_there), (back, _) = links
        if direct:
            out.direct = back.direct = owner
        out.set_quiet(quiet)
        for _ in range(8):
            pair.client.deliveries.send(out, b"x")
        pair.pump()
        received = [
            event.delivery_tag for event in pair.at_server if isinstance(event, Delivery) and event.delivery_tag
        ]
        for steps in reads:
            _act(pair, steps, links, received)
            data = b"".join(iter(pair.server.output, b""))
            for start in range(0, len(data), piece):
                pair.client.feed(data[start : start + piece])
                owner.take_events(pair.client)
        logs.append([_comparable(event) for event in owner.log] + [("credit", pair.client.links.credit(out))])
        assert out_there.detached is False
    assert logs[0] == logs[1]


def _act(
    pair: Pair,
    steps: Sequence[tuple[str, int]],
    links: tuple[tuple[Link, Link], tuple[Link, Link]],
    received: list[int],
) -> None:
    (_, out_there), (_, back_there) = links
    for what, count in steps:
        for _ in range(count):
            if what == "credit":
                pair.server.links.add_credit(out_there, 1)
            elif what in ("accept", "reject") and received:
                outcome = Outcome.ACCEPTED if what == "accept" else Outcome.REJECTED
                pair.server.decisions.settle(out_there, received.pop(0), outcome)
            elif what in ("send", "settled", "large") and pair.server.links.credit(back_there) > 0:
                data = b"y" * (700 if what == "large" else 3)
                pair.server.deliveries.send(back_there, data, settled=what == "settled")


def _comparable(event: EngineEvent) -> tuple[object, ...]:
    """An event with the names of links in place of these, which are those of one pair."""
    link = event.link.name if isinstance(event, Delivery | OutcomeReceived | CreditChanged) else ""
    if isinstance(event, Delivery):
        return "delivery", link, event.delivery_tag, event.data
    if isinstance(event, OutcomeReceived):
        return "outcome", link, event.delivery_tag, event.outcome
    return type(event).__name__, link


def test_the_compiled_functions_refuse_wrong_arguments() -> None:
    functions = native()
    if functions is None:
        pytest.skip("the engine's compiled functions are not installed (scripts/c_extensions.py)")
    with pytest.raises(TypeError, match="feed takes 11 arguments"):
        functions.feed(0, 0, bytearray(), [])
    with pytest.raises(TypeError, match="output takes 4 arguments"):
        functions.output(0, 0, 1)


def test_a_read_says_whether_it_causes_output(compiled: bool) -> None:
    pair, owner = Pair(), _Owner()
    (out, out_there), (back, back_there) = _both_links(pair)
    out.direct = back.direct = owner

    def read() -> bool:
        return pair.client.feed(b"".join(iter(pair.server.output, b"")))

    pair.client.deliveries.send(out, b"one")
    pair.server.feed(pair.client.output())
    delivery = pair.server.next_event()
    assert isinstance(delivery, Delivery)
    assert delivery.delivery_tag is not None
    pair.server.decisions.settle(out_there, delivery.delivery_tag)
    assert read() is compiled  # an acceptance
    pair.server.deliveries.send(back_there, b"two", settled=True)
    assert read() is compiled  # a message
    assert owner.at_once == (2 if compiled else 0)
    pair.server.deliveries.send(back_there, b"three")
    assert read() is compiled
    owner.take_events(pair.client)
    three = owner.log[-1]
    assert isinstance(three, Delivery)
    assert three.delivery_tag is not None
    pair.client.decisions.settle(back, three.delivery_tag)
    pair.server.deliveries.send(back_there, b"four", settled=True)
    assert not read()  # what was to be written before is left
    assert pair.client.output()
    assert pair.server.ask_state(out_there)
    assert not read()  # a question, whose answer is due
    assert pair.client.output()
    pair.server.close()
    assert not read()
