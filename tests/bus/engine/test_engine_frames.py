"""What the engine does to the bytes that pass: message formats, and flows that ask for an answer."""

from __future__ import annotations

import struct

import pytest
from support.engines import Pair

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import Delivery, DeliveryBatch, LinkRequested, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import ConnectionSettings, Terminus
from qmf.codec import Described, UInt32, UInt64
from qmf.codec.amqp10 import decode, encode

#: As senders of batches use it.
FORMAT = 0x80013700


def frames(data: bytes) -> list[tuple[int, int, list[object]]]:
    """Code, channel and fields of each frame; heartbeats and protocol headers are left out."""
    found = []
    while data:
        size = 8 if data.startswith(b"AMQP") else int.from_bytes(data[:4])
        if size > 8 and data[5] == 0:
            performative, _ = decode(data[4 * data[4] : size])
            assert isinstance(performative, Described)
            assert isinstance(performative.descriptor, int)
            assert isinstance(performative.value, list)
            found.append((performative.descriptor, int.from_bytes(data[6:8]), performative.value))
        data = data[size:]
    return found


def output(engine: Engine) -> bytes:
    data = b""
    while more := engine.output():
        data += more
    return data


def flow(channel: int, *fields: object) -> bytes:
    body = encode(Described(UInt64(0x13), list(fields)))
    return struct.pack(">IBBH", 8 + len(body), 2, 0, channel) + body


def link_flow(handle: int, count: int, credit: int, *, drain: bool = False, echo: bool = True) -> bytes:
    window = (UInt32(0), UInt32(1000), UInt32(0), UInt32(1000))
    return flow(0, *window, UInt32(handle), UInt32(count), UInt32(credit), None, drain, echo)


def flows(data: bytes) -> list[list[object]]:
    return [fields for code, _, fields in frames(data) if code == 0x13]


def deliveries(events: list[object]) -> list[tuple[bytes, int]]:
    """Data and format of each message."""
    found: list[tuple[bytes, int]] = []
    for event in events:
        if isinstance(event, Delivery):
            found.append((event.data, event.message_format))
        elif isinstance(event, DeliveryBatch):
            found += [(each.data, each.message_format) for each in event.events()]
    return found


# Message formats


@pytest.mark.parametrize("piece", [1, 7, 100, 1 << 20])
def test_formats_of_messages_arrive(piece: int) -> None:
    pair = Pair(piece=piece)
    link, _ = pair.link(sending=True)
    sent = [(b"a", 0), (b"b", FORMAT), (b"c", 0), (b"d", 1), (b"e" * 3000, 0xFFFFFFFF), (b"", 2), (b"g", 0)]
    for data, message_format in sent:
        pair.client.deliveries.send(link, data, message_format=message_format)
    pair.pump()
    assert deliveries(list(pair.at_server)) == sent


@pytest.mark.parametrize("size", [512, 513, 600])
def test_a_format_changes_no_frame_but_the_first_field(size: int) -> None:
    """Messages of more than a frame: with a format they take as many frames, none larger than allowed."""
    settings = ConnectionSettings("server", server=True, max_frame=size)
    pair = Pair(server=settings)
    link, _ = pair.link(sending=True)
    data = bytes(range(256)) * 10
    pair.client.deliveries.send(link, data)
    plain = output(pair.client)
    pair.client.deliveries.send(link, data, message_format=FORMAT)
    changed = output(pair.client)
    assert len(frames(plain)) == len(frames(changed))
    for code, _, fields in frames(changed):
        assert (code, fields[3], len(fields[2])) == (0x14, FORMAT, 8)  # type: ignore[arg-type]
    rest = changed
    while rest:
        length = int.from_bytes(rest[:4])
        assert length <= size
        rest = rest[length:]
    pair.server.feed(changed)
    event = pair.server.next_event()
    assert isinstance(event, Delivery)
    assert (event.data, event.message_format) == (data, FORMAT)


def test_messages_that_are_larger_than_what_is_written_at_once() -> None:
    pair = Pair()
    link, _ = pair.link(sending=True)
    sent = [(bytes((number,)) * 259_900 * (number % 2 + 1), FORMAT * (number % 3 > 0)) for number in range(10)]
    for data, message_format in sent:
        pair.client.deliveries.send(link, data, message_format=message_format)
    pair.pump()
    assert deliveries(list(pair.at_server)) == sent


def test_messages_of_other_links_between_the_frames_of_one_with_a_format() -> None:
    pair = Pair(server=ConnectionSettings("server", server=True, max_frame=512))
    first, _ = pair.link(sending=True)
    second = pair.client.links.attach("second", is_sender=True, terminus=Terminus("there"))
    pair.pump()
    (request,) = [event for event in pair.at_server if isinstance(event, LinkRequested)]
    pair.server.links.accept(request.link, source=None, target=request.link.target)
    pair.server.links.add_credit(request.link, 10)
    pair.pump()
    pair.at_server.clear()
    for number in range(3):
        pair.client.deliveries.send(first, b"1" * 2000, message_format=FORMAT)
        pair.client.deliveries.send(second, b"2" * 1000, message_format=number)
        pair.client.deliveries.send(second, b"3", message_format=number)
    pair.pump()
    found = sorted(deliveries(list(pair.at_server)))
    assert found == sorted(
        [(b"1" * 2000, FORMAT)] * 3 + [(b * n, f) for f in range(3) for b, n in ((b"2", 1000), (b"3", 1))]
    )


def test_outcomes_of_messages_with_a_format() -> None:
    pair = Pair()
    link, far = pair.link(sending=True)
    sent = [pair.client.deliveries.send(link, b"m", message_format=number) for number in (0, 5, 0, 5)]
    sent.append(pair.client.deliveries.send(link, b"m", message_format=6, transaction=b"t" * 40))
    pair.pump()
    for event in [event for event in pair.at_server if isinstance(event, Delivery)]:
        assert event.delivery_tag is not None
        pair.server.decisions.settle(far, event.delivery_tag)
    for batch in [event for event in pair.at_server if isinstance(event, DeliveryBatch)]:
        for each in batch.events():
            assert each.delivery_tag is not None
            pair.server.decisions.settle(far, each.delivery_tag)
    pair.pump()
    tags = [tag for event in pair.at_client for tag in _tags(event)]
    assert sorted(tags) == sorted(sent)


def _tags(event: object) -> list[int]:
    if isinstance(event, OutcomeReceived):
        return [event.delivery_tag]
    return list(getattr(event, "delivery_tags", []))


def test_an_aborted_message_leaves_no_format() -> None:
    pair = Pair()
    link, _ = pair.link(sending=True)
    del link

    def transfer(number: int, message_format: int, *, more: bool = False, aborted: bool = False) -> bytes:
        fields = [
            UInt32(0),
            UInt32(number),
            b"tag%d" % number,
            UInt32(message_format),
            True,
            more,
            None,
            None,
            None,
            aborted,
        ]
        body = encode(Described(UInt64(0x14), fields)) + b"data"
        return struct.pack(">IBBH", 8 + len(body), 2, 0, 0) + body

    pair.server.feed(transfer(0, 7, more=True) + transfer(0, 7, aborted=True) + transfer(1, 0) + transfer(2, 8))
    pair.pump()
    assert deliveries(list(pair.at_server)) == [(b"data", 0), (b"data", 8)]


# Echo


def test_a_question_before_the_link_is_granted_is_answered_after_it() -> None:
    pair = Pair()
    pair.pump()
    pair.client.links.attach("name", is_sender=False, terminus=Terminus("there"))
    pair.client.links.attach("other", is_sender=False, terminus=Terminus("there"))
    pair.server.feed(output(pair.client) + link_flow(0, 0, 2) + link_flow(0, 0, 3) + link_flow(1, 0, 9))
    assert output(pair.server) == b""
    requests = []
    while (event := pair.server.next_event()) is not None:
        requests += [event.link] if isinstance(event, LinkRequested) else []
    pair.server.links.accept(requests[0], source=requests[0].source, target=None)
    pair.server.deliveries.send(requests[0], b"x")
    seen = frames(output(pair.server))
    assert [code for code, *_ in seen] == [0x12, 0x14, 0x13]
    assert seen[2][2][4:7] == [requests[0].handle, 1, 2]
    pair.server.links.refuse(requests[1], "amqp:not-found", "")
    assert [code for code, *_ in frames(output(pair.server))] == [0x12, 0x16]


def test_the_state_of_a_link_on_which_we_send() -> None:
    pair = Pair()
    _, far = pair.link(sending=False, credit=10)
    far.count_available = lambda: 42
    for _ in range(3):
        pair.server.deliveries.send(far, b"x")
    pair.pump()
    pair.server.feed(link_flow(0, 3, 20))
    (answer,) = flows(output(pair.server))
    window = 0x7FFFFFFF
    assert answer[1] == window
    assert answer[2:] == [3, window, far.handle, 3, 20, 42, False]
    assert pair.server.links.credit(far) == 20
    pair.server.feed(link_flow(0, 3, 20, echo=False))
    assert flows(output(pair.server)) == []


def test_the_state_is_that_after_what_was_sent_before() -> None:
    pair = Pair()
    _, far = pair.link(sending=False, credit=10)
    pair.server.deliveries.send(far, b"before", message_format=FORMAT)
    pair.server.feed(link_flow(0, 0, 15) + link_flow(0, 0, 25))
    pair.server.deliveries.send(far, b"after")
    seen = frames(output(pair.server))
    assert [code for code, *_ in seen] == [0x14, 0x13, 0x13, 0x14]
    assert [fields[5:7] for code, _, fields in seen if code == 0x13] == [[1, 14], [1, 24]]
    assert seen[0][2][3] == FORMAT


def test_output_after_an_answer_is_announced() -> None:
    pair = Pair()
    _, far = pair.link(sending=False, credit=10)
    pair.server.feed(link_flow(0, 0, 15))
    pair.server.deliveries.send(far, b"after the answer")
    written = pair.server.output()
    while pair.server.has_output and (more := pair.server.output()):
        written += more
    assert b"after the answer" in written


def test_credit_that_was_taken_back() -> None:
    """The peer has reduced its credit, and messages had been sent before it arrived."""
    pair = Pair()
    _, far = pair.link(sending=False, credit=10)
    for _ in range(4):
        pair.server.deliveries.send(far, b"x")
    output(pair.server)
    pair.server.feed(link_flow(0, 0, 2))
    (answer,) = flows(output(pair.server))
    assert answer[5:7] == [4, 0]


def test_counts_wrap() -> None:
    pair = Pair()
    _, far = pair.link(sending=False, credit=1)
    pair.server.feed(link_flow(0, 0xFFFFFFFF, 4))  # wrong by one: what it counted stays right modulo 2**32
    (answer,) = flows(output(pair.server))
    assert answer[5:7] == [0, 3]
    assert pair.server.links.credit(far) == 3


def test_an_echo_with_drain_is_answered_before_and_after() -> None:
    pair = Pair()
    _, far = pair.link(sending=False, credit=10)
    pair.server.feed(link_flow(0, 0, 10, drain=True))
    (answer,) = flows(output(pair.server))
    assert answer[5:9] == [0, 10, None, True]
    pair.server.links.answer_drain(far)
    (answer,) = flows(output(pair.server))
    assert answer[5:7] == [10, 0]


@pytest.mark.parametrize("drain", [False, True])
def test_the_state_of_a_link_on_which_we_receive(drain: bool) -> None:
    pair = Pair()
    link, far = pair.link(sending=True, credit=10)
    for _ in range(3):
        pair.client.deliveries.send(link, b"x")
    pair.pump()
    if drain:
        pair.server.links.drain(far, 0)
        output(pair.server)
    pair.server.links.add_credit(far, 0)
    pair.server.feed(link_flow(0, 3, 7))
    (answer,) = flows(output(pair.server))
    assert answer[0] == 3
    assert answer[5:7] == [3, 7]
    pair.server.links.add_credit(far, 5)
    (answer,) = flows(output(pair.server))
    assert answer[5:7] == [3, 12]


def test_a_drain_of_ours_goes_on_after_an_echo() -> None:
    pair = Pair()
    _, far = pair.link(sending=True, credit=10)
    pair.server.links.drain(far, 0)
    output(pair.server)
    pair.server.feed(link_flow(0, 0, 10))
    (answer,) = flows(output(pair.server))
    assert answer[5:7] == [0, 10]
    assert answer[8] is True


def test_the_state_of_a_session() -> None:
    pair = Pair()
    link, _ = pair.link(sending=True, credit=10)
    pair.client.deliveries.send(link, b"x")
    pair.pump()
    pair.server.feed(flow(0, UInt32(0), UInt32(100), UInt32(1), UInt32(100), None, None, None, None, None, True))
    (answer,) = flows(output(pair.server))
    assert answer[:4] == [1, 0x7FFFFFFF, 0, 0x7FFFFFFF]
    assert all(field is None for field in answer[4:])


def test_sessions_are_told_apart() -> None:
    pair = Pair()
    pair.pump()
    second = pair.client.sessions.begin()
    pair.pump()
    links = [pair.client.links.attach("same", is_sender=False, terminus=Terminus("there"), credit=5)]
    links.append(
        pair.client.links.attach("other", is_sender=False, terminus=Terminus("there"), credit=6, session=second)
    )
    pair.pump()
    for request in [event for event in pair.at_server if isinstance(event, LinkRequested)]:
        pair.server.links.accept(request.link, source=request.link.source, target=None)
    pair.pump()
    window = (UInt32(0), UInt32(1000), UInt32(0), UInt32(1000))
    for channel in (0, 1):
        pair.server.feed(flow(channel, *window, UInt32(0), UInt32(0), UInt32(9), None, None, True))
        pair.server.feed(flow(channel, *window, None, None, None, None, None, True))
        found = [
            (number, len(fields) > 4 and fields[4] is not None) for _, number, fields in frames(output(pair.server))
        ]
        assert found == [(channel, True), (channel, False)]


@pytest.mark.parametrize("sending", [True, False])
def test_an_echo_in_pieces(sending: bool) -> None:
    pair = Pair()
    pair.link(sending=sending)
    data = link_flow(0, 0, 10)
    for start in range(len(data)):
        assert not output(pair.server)
        pair.server.feed(data[start : start + 1])
    assert len(flows(output(pair.server))) == 1


def test_links_that_come_and_go_have_their_handles() -> None:
    pair = Pair()
    pair.pump()
    for number in range(3):
        mine = pair.client.links.attach("again", is_sender=False, terminus=Terminus("there"))
        kept = pair.client.links.attach(f"kept-{number}", is_sender=False, terminus=Terminus("there"))
        pair.pump()
        far: dict[str, Link] = {}
        for request in [event for event in pair.at_server if isinstance(event, LinkRequested)]:
            pair.server.links.accept(request.link, source=request.link.source, target=None)
            far[request.link.name] = request.link
        pair.at_server.clear()
        data = output(pair.server)
        handles = {fields[0]: fields[1] for code, _, fields in frames(data) if code == 0x12}
        assert {name: link.handle for name, link in far.items()} == handles
        pair.client.feed(data)
        pair.client.links.detach(mine)
        pair.pump()
        assert kept.name in handles


def test_an_echo_of_a_link_that_is_detached_or_unknown() -> None:
    pair = Pair()
    _, far = pair.link(sending=False)
    pair.server.links.detach(far)
    pair.server.feed(link_flow(0, 0, 10))
    assert [code for code, *_ in frames(output(pair.server))] == [0x16]
    pair.server.feed(link_flow(77, 0, 10))
    assert flows(output(pair.server)) == []


def test_the_client_answers_as_well() -> None:
    pair = Pair()
    link, _ = pair.link(sending=True)
    pair.client.deliveries.send(link, b"x")
    pair.pump()
    pair.client.feed(link_flow(0, 1, 9))
    (answer,) = flows(output(pair.client))
    assert answer[4:7] == [link.handle, 1, 9]
    assert (len(answer) < 10) or not answer[9]


# Questions of ours


@pytest.mark.parametrize("piece", [1, 9, 1 << 20])
def test_what_waits_at_the_sender(piece: int) -> None:
    pair = Pair(piece=piece)
    link, far = pair.link(sending=False, credit=10)
    far.count_available = lambda: 70_000
    found = [link.available]
    for waiting in (70_000, 0):
        far.count_available = lambda waiting=waiting: waiting
        assert pair.client.ask_state(link)
        pair.pump()
        found.append(link.available)
    assert found == [None, 70_000, 0]
    assert pair.server.links.credit(far) == 10


def test_a_question_is_a_flow_with_the_state_of_the_link() -> None:
    pair = Pair()
    link, _ = pair.link(sending=False, credit=10)
    pair.client.links.add_credit(link, 5)
    assert pair.client.ask_state(link)
    *_, asked = flows(output(pair.client))
    assert asked[4:] == [0, 0, 15, None, False, True]


@pytest.mark.parametrize("sending", [True, False])
def test_nobody_is_asked_about_a_link_that_sends_or_has_ended(sending: bool) -> None:
    pair = Pair()
    link, _ = pair.link(sending=sending, credit=10)
    if not sending:
        pair.client.links.detach(link)
    assert not pair.client.ask_state(link)
