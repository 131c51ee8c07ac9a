"""What every bus does: the fake, the real one through the embedded broker, and through those of the environment."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Callable

import pytest
from bus.certificates import server_tls, trusting
from support.brokers import OTHERS, URLS
from support.recording import BusEvents, Inbox, message, text
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.local_bus import LocalBus
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.operations.operations import Operations
from qmf.bus import (
    AmqpBus,
    Binding,
    Bus,
    BusStateError,
    Connected,
    ExchangeKind,
    LinkLost,
    MemoryBus,
    MemoryExchange,
    ReceivedMessage,
)
from qmf.errors import CallerError, DisconnectedError, LinkError, NetworkError

TOPIC = "qmf.default.topic"
DIRECT = "qmf.default.direct"

Make = Callable[[], Bus]


@pytest.fixture(params=["memory", "local", "broker", "broker over TLS", *(name for name, url in URLS.items() if url)])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Makes buses that are joined; closes them in the end."""
    made: list[Bus] = []

    def keep(bus: Bus) -> Bus:
        made.append(bus)
        return bus

    async def close() -> None:
        for bus in made:
            await bus.close()

    if request.param == "memory":
        exchange = MemoryExchange()
        yield lambda: keep(MemoryBus(exchange))
        await close()
    elif request.param == "local":
        registry = NodeRegistry()
        numbers = itertools.count()
        yield lambda: keep(LocalBus(Operations(registry), f"local-{next(numbers)}"))
        await close()
    elif request.param.startswith("broker"):
        secure = request.param != "broker"
        async with Broker(port=0, ssl_context=server_tls() if secure else None) as broker:
            yield lambda: keep(AmqpBus(broker.url, ssl_context=trusting() if secure else None))
            await close()
        assert broker.connections == 0
    else:
        yield lambda: keep(AmqpBus(URLS[request.param]))
        await close()


@pytest.fixture
def like_qpidd(request: pytest.FixtureRequest) -> None:
    """For what brokers do only that know QMF's exchanges by themselves."""
    if (name := request.node.callspec.params["make"]) in OTHERS:
        pytest.skip(f"{name} has nodes of another kind")


@pytest.fixture
async def pair(make: Make) -> tuple[Bus, Bus]:
    """Two open buses."""
    first, second = make(), make()
    await first.open()
    await second.open()
    return first, second


@pytest.fixture
def key() -> str:
    """A routing key that no other test uses: a real broker is shared."""
    return f"test-{uuid.uuid4()}"


async def test_a_message_reaches_subscriptions_that_are_bound_to_its_key(pair: tuple[Bus, Bus], key: str) -> None:
    sender, receiver = pair
    inbox, other = Inbox(), Inbox()
    await receiver.subscribe(Binding(TOPIC, f"{key}.#"), inbox)
    await receiver.subscribe(Binding(TOPIC, f"{key}.other"), other)
    await sender.send(message(TOPIC, f"{key}.a.b", "hello"), confirm=True)
    assert await inbox.wait(1) == ["hello"]
    assert other.texts == []


@pytest.mark.parametrize(
    ("binding", "matching", "others"),
    [
        ("{}.*", ["{}.a"], ["{}", "{}.a.b"]),
        ("{}.#", ["{}", "{}.a", "{}.a.b"], ["x{}"]),
        ("{}.#.z", ["{}.z", "{}.a.z", "{}.a.b.z"], ["{}", "{}.z.a"]),
        ("{}.*.z", ["{}.a.z"], ["{}.z", "{}.a.b.z"]),
        ("{}.a.b", ["{}.a.b"], ["{}.a", "{}.a.b.c"]),
    ],
)
async def test_topic_wildcards(
    pair: tuple[Bus, Bus], key: str, binding: str, matching: list[str], others: list[str]
) -> None:
    sender, receiver = pair
    inbox = Inbox()
    await receiver.subscribe(Binding(TOPIC, binding.format(key)), inbox)
    for pattern in [*others, *matching]:
        await sender.send(message(TOPIC, pattern.format(key), pattern), confirm=True)
    assert await inbox.wait(len(matching)) == matching


@pytest.mark.parametrize("exchange", [DIRECT, "amq.direct"])
async def test_a_direct_exchange_compares_the_key_literally(pair: tuple[Bus, Bus], key: str, exchange: str) -> None:
    sender, receiver = pair
    inbox = Inbox()
    name = f"{key} #.*/with:signs"
    await receiver.subscribe(Binding(exchange, name, ExchangeKind.DIRECT), inbox)
    await sender.send(message(exchange, f"{key} x.y/with:signs", "wrong"), confirm=True)
    await sender.send(message(exchange, name, "right"), confirm=True)
    assert await inbox.wait(1) == ["right"]


@pytest.mark.usefixtures("like_qpidd")
async def test_a_topic_binding_on_a_direct_exchange_is_an_exact_key(pair: tuple[Bus, Bus], key: str) -> None:
    sender, receiver = pair
    inbox = Inbox()
    await receiver.subscribe(Binding(DIRECT, f"{key}.#", ExchangeKind.TOPIC), inbox)
    await sender.send(message(DIRECT, f"{key}.a", "wrong"), confirm=True)
    await sender.send(message(DIRECT, f"{key}.#", "right"), confirm=True)
    assert await inbox.wait(1) == ["right"]


async def test_every_subscriber_gets_its_own_copy_and_the_sender_too(pair: tuple[Bus, Bus], key: str) -> None:
    inboxes = [Inbox(), Inbox(), Inbox()]
    await pair[0].subscribe(Binding(TOPIC, key), inboxes[0])
    await pair[1].subscribe(Binding(TOPIC, key), inboxes[1])
    await pair[1].subscribe(Binding(TOPIC, key), inboxes[2])
    await pair[0].send(message(TOPIC, key, "one"))
    for inbox in inboxes:
        assert await inbox.wait(1) == ["one"]


async def test_a_thousand_messages_arrive_in_order_and_once(pair: tuple[Bus, Bus], key: str) -> None:
    sender, receiver = pair
    inbox = Inbox()
    await receiver.subscribe(Binding(TOPIC, key), inbox, prefetch=50)
    for number in range(1000):
        await sender.send(message(TOPIC, key, str(number)))
    assert await inbox.wait(1000) == [str(number) for number in range(1000)]


async def test_a_receiver_that_keeps_no_message_gets_all(pair: tuple[Bus, Bus], key: str) -> None:
    sender, receiver = pair
    texts: list[str] = []

    def keep(messages: list[bytes]) -> None:
        texts.extend(map(text, messages))
        if texts[-1] == "3":
            raise ValueError("the receiver fails once")

    subscription = await receiver.subscribe_data(Binding(TOPIC, key), keep, prefetch=8)
    for number in range(50):
        await sender.send(message(TOPIC, key, str(number)))
    await until(lambda: len(texts) == 50, lambda: str(texts))
    assert texts == [str(number) for number in range(50)]
    await subscription.close()
    other = Inbox()
    await receiver.subscribe(Binding(TOPIC, key), other)
    await sender.send(message(TOPIC, key, "after"))
    await other.wait(1)
    assert len(texts) == 50


async def test_messages_of_several_tasks_leave_in_the_order_of_their_calls(pair: tuple[Bus, Bus], key: str) -> None:
    sender, receiver = pair
    inbox = Inbox()
    await receiver.subscribe(Binding(TOPIC, key), inbox)
    await asyncio.gather(*(sender.send(message(TOPIC, key, str(number)), confirm=True) for number in range(100)))
    assert await inbox.wait(100) == [str(number) for number in range(100)]


async def test_no_more_than_prefetch_messages_are_unsettled_at_one_time(pair: tuple[Bus, Bus], key: str) -> None:
    sender, receiver = pair
    inbox, marker = Inbox(hold=True), Inbox()
    await receiver.subscribe(Binding(TOPIC, key), inbox, prefetch=8)
    await receiver.subscribe(Binding(TOPIC, f"{key}.end"), marker)
    for number in range(30):
        await sender.send(message(TOPIC, key, str(number)), confirm=True)
    await inbox.wait(8)
    await sender.send(message(TOPIC, f"{key}.end", "end"), confirm=True)
    await marker.wait(1)
    assert len(inbox.texts) == 8
    while len(inbox.texts) < 30:
        before = len(inbox.texts)
        held, inbox.held = inbox.held, []
        for received in held:
            received.settle()
            received.settle()  # does nothing
        await inbox.wait(before + 1)
    assert inbox.texts == [str(number) for number in range(30)]


@pytest.mark.parametrize("prefetch", [1, 2, 3, 7])
async def test_a_small_window_does_not_stall(pair: tuple[Bus, Bus], key: str, prefetch: int) -> None:
    sender, receiver = pair
    inbox = Inbox()
    await receiver.subscribe(Binding(TOPIC, key), inbox, prefetch=prefetch)
    for number in range(25):
        await sender.send(message(TOPIC, key, str(number)))
    assert await inbox.wait(25) == [str(number) for number in range(25)]


async def test_large_messages_arrive_whole(pair: tuple[Bus, Bus], key: str) -> None:
    sender, receiver = pair
    inbox = Inbox()
    await receiver.subscribe(Binding(TOPIC, key), inbox)
    bodies = ["x" * size for size in (0, 1, 65_000, 65_536, 300_000, 1_000_000)]
    for body in bodies:
        await sender.send(message(TOPIC, key, body), confirm=True)
    assert await inbox.wait(len(bodies)) == bodies


async def test_try_send_sends_at_once_and_reports_the_outcome_later(pair: tuple[Bus, Bus], key: str) -> None:
    one, two = pair
    inbox = Inbox()
    outcomes: list[NetworkError | None] = []
    await two.subscribe(Binding(TOPIC, key), inbox)
    await one.send(message(TOPIC, key, "0"), confirm=True)  # there is a link now
    for number in range(1, 4):
        assert one.try_send(message(TOPIC, key, str(number)), outcomes.append)
    assert outcomes == []
    assert await inbox.wait(4) == ["0", "1", "2", "3"]
    await until(lambda: len(outcomes) == 3, "the outcomes")
    assert outcomes == [None, None, None]


async def test_a_bus_that_is_not_open_sends_nothing(make: Make) -> None:
    bus = make()
    with pytest.raises(DisconnectedError):
        bus.try_send(message(TOPIC, "x"), lambda _: None)


async def test_a_closed_subscription_receives_nothing_more(pair: tuple[Bus, Bus], key: str) -> None:
    sender, receiver = pair
    closed, open_ = Inbox(), Inbox()
    subscription = await receiver.subscribe(Binding(TOPIC, key), closed)
    assert subscription.binding == Binding(TOPIC, key)
    await receiver.subscribe(Binding(TOPIC, key), open_)
    await subscription.close()
    await subscription.close()
    await sender.send(message(TOPIC, key, "late"), confirm=True)
    await open_.wait(1)
    assert closed.texts == []


async def test_messages_held_over_the_end_of_their_subscription_can_still_be_settled(
    pair: tuple[Bus, Bus], key: str
) -> None:
    sender, receiver = pair
    inbox = Inbox(hold=True)
    subscription = await receiver.subscribe(Binding(TOPIC, key), inbox)
    await sender.send(message(TOPIC, key, "one"), confirm=True)
    await inbox.wait(1)
    await subscription.close()
    inbox.held[0].settle()
    await receiver.close()
    assert not receiver.connected


@pytest.mark.usefixtures("like_qpidd")
async def test_a_message_to_an_unknown_node_is_rejected_or_dropped(
    pair: tuple[Bus, Bus], key: str, request: pytest.FixtureRequest
) -> None:
    bus, _ = pair
    events = BusEvents(bus)
    rejects = request.node.callspec.params["make"].startswith("broker")  # a qpidd drops it
    for to, reason in ((f"no-such-node-{key}", f"no exchange or queue 'no-such-node-{key}'"), (None, "has no address")):
        sending = bus.send(message(to, "x", "lost"), confirm=True)
        if rejects:
            with pytest.raises(LinkError, match=f"amqp:not-found.*{reason}"):
                await sending
        else:
            await sending
    assert events.seen == []


@pytest.mark.usefixtures("like_qpidd")
async def test_an_unknown_exchange_is_refused_with_the_brokers_error(pair: tuple[Bus, Bus], key: str) -> None:
    bus, _ = pair
    events = BusEvents(bus)
    address = f"no-such-exchange-{key}"
    with pytest.raises(LinkError) as caught:
        await bus.subscribe(Binding(address, "x"), Inbox())
    assert caught.value.address == address
    assert caught.value.condition == "amqp:not-found"
    assert caught.value.description
    assert events.of(LinkLost) == []
    assert bus.connected


async def test_a_receiver_that_fails_loses_only_its_message(
    pair: tuple[Bus, Bus], key: str, caplog: pytest.LogCaptureFixture
) -> None:
    sender, receiver = pair
    inbox = Inbox()

    def fail_first(received: ReceivedMessage) -> None:
        inbox(received)
        if len(inbox.texts) == 1:
            raise ValueError("receiver broken")

    await receiver.subscribe(Binding(TOPIC, key), fail_first, prefetch=1)
    await sender.send(message(TOPIC, key, "one"))
    await sender.send(message(TOPIC, key, "two"))
    assert await inbox.wait(2) == ["one", "two"]
    assert "receiver broken" in caplog.text


async def test_watchers_are_notified_of_the_first_connection_until_they_stop(make: Make) -> None:
    bus = make()
    events, stopped = BusEvents(bus), BusEvents(bus)
    stopped.stop()
    stopped.stop()
    await bus.open()
    (event,) = events.seen
    assert isinstance(event, Connected)
    assert not event.again
    assert event.broker
    assert stopped.seen == []


async def test_a_watcher_that_fails_does_not_stop_the_others(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    bus = make()

    def fail(event: object) -> None:
        raise ValueError("watcher broken")

    bus.watch(fail)
    events = BusEvents(bus)
    await bus.open()
    assert len(events.seen) == 1
    assert "watcher broken" in caplog.text


async def test_before_open_and_after_close_nothing_can_be_sent(make: Make) -> None:
    bus = make()
    with pytest.raises(DisconnectedError, match="not opened yet"):
        await bus.send(message(TOPIC, "x"))
    await bus.open()
    await bus.close()
    assert not bus.connected
    with pytest.raises(DisconnectedError, match="closed"):
        await bus.send(message(TOPIC, "x"))
    with pytest.raises(DisconnectedError, match="closed"):
        await bus.subscribe(Binding(TOPIC, "x"), Inbox())


async def test_closing_is_for_good_and_may_be_repeated(make: Make) -> None:
    bus = make()
    await bus.open()
    await bus.close()
    await bus.close()
    with pytest.raises(BusStateError, match="closed"):
        await bus.open()


async def test_a_bus_that_was_never_opened_can_be_closed(make: Make) -> None:
    bus = make()
    await bus.close()
    assert not bus.connected


async def test_opening_twice_is_a_mistake_of_the_caller(make: Make) -> None:
    bus = make()
    await bus.open()
    with pytest.raises(CallerError, match="connected"):
        await bus.open()
    assert bus.connected


async def test_what_was_sent_before_close_arrives(pair: tuple[Bus, Bus], key: str) -> None:
    sender, receiver = pair
    inbox = Inbox()
    await receiver.subscribe(Binding(TOPIC, key), inbox)
    for number in range(20):
        await sender.send(message(TOPIC, key, str(number)))
    await sender.close()
    assert await inbox.wait(20) == [str(number) for number in range(20)]


async def test_the_url_is_shown(make: Make) -> None:
    assert "://" in make().url
