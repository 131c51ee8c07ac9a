"""What the messaging API promises, on every broker: the embedded one, and those that the environment names."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable

import pytest
from messaging.conftest import Target
from support.waiting import wait_until

from qmf.messaging import (
    REJECTED,
    RELEASED,
    UNLIMITED,
    Address,
    AssertionFailed,
    AuthenticationFailure,
    Connection,
    ConnectionClosed,
    Disposition,
    Empty,
    EncodeError,
    InvalidOption,
    LinkClosed,
    MalformedAddress,
    Message,
    NontransactionalSession,
    NotFound,
    ResolutionError,
    Session,
    SessionClosed,
    SessionError,
    TransactionError,
)

MakeQueue = Callable[[], str]

qpid_addresses = pytest.mark.only("embedded", "qpidd")
transactions = pytest.mark.only("embedded", "qpidd", "artemis")


def test_a_message_is_sent_and_received(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("hello")
    message = receiver.fetch(timeout=10)
    assert message.content == "hello"
    assert message.content_type == "text/plain"
    session.acknowledge()
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)


@pytest.mark.parametrize(
    "content",
    ["text", "", "ä€😀", b"", b"\x00\xff", {"a": 1, "b": {"c": [1, 2.5, "x", None, True]}}, [1, "two", [3.0]], None],
    ids=repr,
)
def test_contents_round_trip(session: Session, queue: MakeQueue, content: object) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send(Message(content))
    message = receiver.fetch(timeout=10)
    assert message.content == content
    assert type(message.content) is type(content)
    session.acknowledge()


def test_properties_round_trip(broker: Target, session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sent = Message(
        "x",
        id="id-1",
        subject="subject",
        reply_to="answers/key",
        correlation_id="corr-1",
        durable=True,
        priority=7,
        ttl=60.0,
        properties={"text": "ä", "yes": True, "int": -(2**40), "float": 2.5, "empty": ""},
    )
    sender.send(sent)
    message = receiver.fetch(timeout=10)
    session.acknowledge()
    assert (message.id, message.subject, message.correlation_id) == ("id-1", "subject", "corr-1")
    assert (message.durable, message.priority) == (True, 7)
    assert message.ttl is not None
    assert 0 < message.ttl <= 60
    assert isinstance(message.reply_to, Address)
    assert (message.reply_to.name, message.reply_to.subject) == ("answers", "key")
    for name, value in sent.properties.items():
        assert message.properties[name] == value
        assert type(message.properties[name]) is type(value)
    assert not message.redelivered


def test_messages_keep_their_order(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address, capacity=50)
    for number in range(500):
        sender.send({"number": number}, sync=False)
    sender.sync(timeout=30)
    assert sender.unsettled() == 0
    assert [receiver.fetch(timeout=10).content["number"] for _ in range(500)] == list(range(500))
    session.acknowledge()
    assert receiver.unsettled() == 0


def test_capacity_of_a_sender(session: Session, queue: MakeQueue) -> None:
    sender = session.sender(queue(), capacity=2)
    for number in range(20):
        sender.send(str(number), sync=False, timeout=10)
        assert sender.unsettled() <= 2
    sender.sync(timeout=10)
    assert sender.available() == 2
    sender.capacity = UNLIMITED
    assert sender.available() is UNLIMITED


def test_capacity_of_a_receiver(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    for number in range(5):
        sender.send(str(number))
    assert receiver.available() == 0
    receiver.capacity = 3
    wait_until(lambda: receiver.available() == 3)
    assert [receiver.fetch(timeout=10).content for _ in range(5)] == list("01234")
    assert receiver.unsettled() == 5
    session.acknowledge()


def test_what_is_not_acknowledged_comes_again(broker: Target, queue: MakeQueue) -> None:
    address = queue()
    with Connection.establish(broker.url, timeout=10) as first:
        session = first.session()
        session.sender(address).send("once")
        assert session.receiver(address).fetch(timeout=10).content == "once"
    with Connection.establish(broker.url, timeout=10) as second:
        session = second.session()
        assert session.receiver(address).fetch(timeout=10).content == "once"
        session.acknowledge()
    with Connection.establish(broker.url, timeout=10) as third, pytest.raises(Empty):
        third.session().receiver(address).fetch(timeout=0)


def test_released_messages_come_again_and_rejected_ones_do_not(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("a")
    message = receiver.fetch(timeout=10)
    session.acknowledge(message, Disposition(RELEASED))
    message = receiver.fetch(timeout=10)
    assert message.content == "a"
    session.acknowledge(message, Disposition(REJECTED, code="app:bad", text="cannot be used"))
    with pytest.raises(Empty):
        receiver.fetch(timeout=0.2)


@pytest.mark.only("embedded", "qpidd", "artemis")
def test_a_release_can_count_as_a_delivery(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.send("a")
    session.acknowledge(receiver.fetch(timeout=10), Disposition(RELEASED, set_redelivered=True))
    message = receiver.fetch(timeout=10)
    assert message.redelivered
    session.acknowledge()


def test_acknowledging_one_message_leaves_the_others(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address, capacity=10)
    for text in "abc":
        sender.send(text)
    a, b, c = (receiver.fetch(timeout=10) for _ in range(3))
    session.acknowledge(b)
    assert receiver.unsettled() == 2
    with pytest.raises(SessionError, match="not waiting for acknowledgement"):
        session.acknowledge(b)
    session.acknowledge(a)
    session.acknowledge(c, sync=False)
    assert receiver.unsettled() == 0
    with pytest.raises(SessionError):
        session.acknowledge(Message("never received"))


def test_next_receiver_follows_the_order_of_arrival(session: Session, queue: MakeQueue) -> None:
    one, two = queue(), queue()
    first, second = session.receiver(one, capacity=5), session.receiver(two, capacity=5)
    session.sender(two).send("2")
    wait_until(lambda: second.available() == 1)
    session.sender(one).send("1")
    wait_until(lambda: first.available() == 1)
    assert session.next_receiver(timeout=10) is second
    second.fetch(timeout=10)
    assert session.next_receiver(timeout=10) is first
    first.fetch(timeout=10)
    with pytest.raises(Empty, match=r"no message within 0\.1 s"):
        session.next_receiver(timeout=0.1)
    session.acknowledge()


def test_a_handler_learns_of_messages(session: Session, queue: MakeQueue) -> None:
    address = queue()
    arrived = threading.Event()
    seen: list[Session] = []

    def handler(which: Session) -> None:
        seen.append(which)
        arrived.set()

    session.set_message_received_handler(handler)
    receiver = session.receiver(address, capacity=1)
    session.sender(address).send("x")
    assert arrived.wait(10)
    assert seen == [session]
    assert receiver.fetch(timeout=10).content == "x"
    session.acknowledge()


def test_request_and_response(broker: Target, queue: MakeQueue) -> None:
    address = queue()

    def serve() -> None:
        with Connection.establish(broker.url, timeout=10) as connection:
            session = connection.session()
            request = session.receiver(address).fetch(timeout=20)
            assert request.reply_to is not None
            with session.sender(request.reply_to) as answers:
                answers.send(Message(request.content.upper(), correlation_id=request.correlation_id))
            session.acknowledge()

    thread = threading.Thread(target=serve)
    thread.start()
    with Connection.establish(broker.url, timeout=10) as connection:
        session = connection.session()
        answers = session.receiver("#")
        session.sender(address).send(Message("hello", reply_to=answers.source, correlation_id="7"))
        answer = answers.fetch(timeout=20)
        assert (answer.content, answer.correlation_id) == ("HELLO", "7")
        session.acknowledge()
    thread.join()


@qpid_addresses
def test_browsing_leaves_messages_in_the_queue(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender = session.sender(address)
    for text in "abc":
        sender.send(text)
    name = Address(address).name
    browser = session.receiver(f"{name}; {{mode: browse}}")
    assert [browser.fetch(timeout=10).content for _ in range(3)] == list("abc")
    with pytest.raises(Empty):
        browser.fetch(timeout=0)
    sender.send("d")
    assert browser.fetch(timeout=10).content == "d"
    receiver = session.receiver(name)
    assert [receiver.fetch(timeout=10).content for _ in range(4)] == list("abcd")
    session.acknowledge()


@qpid_addresses
def test_selectors(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender = session.sender(address)
    for number in range(6):
        sender.send(Message(str(number), properties={"n": number, "even": "yes" if number % 2 == 0 else "no"}))
    name = Address(address).name
    chosen = session.receiver(f"{name}; {{link: {{selector: \"even = 'yes' AND n > 0\"}}}}")
    assert [chosen.fetch(timeout=10).content for _ in range(2)] == ["2", "4"]
    with pytest.raises(Empty):
        chosen.fetch(timeout=0)
    others = session.receiver(name)
    assert [others.fetch(timeout=10).content for _ in range(4)] == ["0", "1", "3", "5"]
    session.acknowledge()


@qpid_addresses
@pytest.mark.parametrize(
    ("exchange", "subject", "received"),
    [
        ("amq.topic", "*.news", ["usa.news", "europe.news"]),
        ("amq.topic", "usa.#", ["usa.news", "usa.sports"]),
        ("amq.direct", "usa.news", ["usa.news"]),
        ("amq.fanout", "anything", ["usa.news", "usa.sports", "europe.news"]),
    ],
)
def test_topics(session: Session, exchange: str, subject: str, received: list[str]) -> None:
    receiver = session.receiver(f"{exchange}/{subject}", capacity=10)
    for item in ("usa.news", "usa.sports", "europe.news"):
        session.sender(f"{exchange}/{item}").send(item)
    assert [receiver.fetch(timeout=10).subject for _ in received] == received
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    session.acknowledge()


@qpid_addresses
def test_topics_without_a_subject(session: Session) -> None:
    receivers = {name: session.receiver(name, capacity=10) for name in ("amq.topic", "amq.fanout")}
    for name, receiver in receivers.items():
        session.sender(f"{name}/a.b").send("with")
        session.sender(name).send("without")
        assert [receiver.fetch(timeout=10).content for _ in range(2)] == ["with", "without"]
    session.acknowledge()
    with pytest.raises(ResolutionError, match=r"'amq\.direct' is a direct exchange: its address needs a subject"):
        session.receiver("amq.direct")


@qpid_addresses
def test_the_subject_of_a_message_goes_before_that_of_the_address(session: Session) -> None:
    receiver = session.receiver("amq.topic/mine", capacity=10)
    session.sender("amq.topic/other").send(Message("x", subject="mine"))
    assert receiver.fetch(timeout=10).subject == "mine"
    session.acknowledge()


def test_an_unknown_node_is_not_found(broker: Target, connection: Connection) -> None:
    if broker.name == "artemis":
        pytest.skip("artemis creates addresses on demand")
    name = f"missing-{uuid.uuid4().hex[:8]}"
    session = connection.session()
    for sending in (True, False):
        with pytest.raises(NotFound, match=name) as caught:
            session.sender(name) if sending else session.receiver(name)
        assert caught.value.code == "amqp:not-found"
        if broker.name == "rabbitmq":  # which ends the session as well
            session = connection.session()
    receiver = session.receiver(f"{name}; {{create: always}}")
    session.sender(name).send("x")
    assert receiver.fetch(timeout=10).content == "x"
    session.acknowledge()


@qpid_addresses
def test_assertions(session: Session, queue: MakeQueue) -> None:
    session.sender("amq.fanout; {assert: always, node: {type: topic}}").close()
    with pytest.raises((AssertionFailed, ResolutionError)):
        session.receiver("amq.fanout; {assert: always, node: {type: queue}}")
    name = Address(queue()).name
    session.sender(f"{name}; {{create: sender, node: {{type: queue}}}}").close()
    session.receiver(f"{name}; {{assert: receiver, node: {{type: queue}}}}").close()
    with pytest.raises((AssertionFailed, ResolutionError)):
        session.sender(f"{name}; {{assert: sender, node: {{type: topic}}}}")


@qpid_addresses
def test_create_is_for_the_side_that_it_names(session: Session) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    with pytest.raises(NotFound):
        session.receiver(f"{name}; {{create: sender}}")
    session.sender(f"{name}; {{create: sender}}").send("x")
    assert session.receiver(name).fetch(timeout=10).content == "x"
    session.acknowledge()


@qpid_addresses
@pytest.mark.parametrize("kind", ["topic", "direct", "fanout", "headers"])
def test_topics_are_created(session: Session, kind: str) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    address = f"{name}; {{create: always, node: {{type: topic, x-declare: {{type: {kind}}}}}}}"
    sender = session.sender(address)
    receiver = session.receiver(name if kind in ("fanout", "headers") else f"{name}/key", capacity=1)
    if kind != "headers":
        sender.send(Message("x", subject="key"))
        assert receiver.fetch(timeout=10).content == "x"
        session.acknowledge()


@qpid_addresses
def test_a_temporary_queue_ends_with_its_link(session: Session) -> None:
    receiver = session.receiver("#")
    address = receiver.source
    assert address != "#"
    session.sender(address).send("x")
    assert receiver.fetch(timeout=10).content == "x"
    session.acknowledge()
    receiver.close()
    wait_until(lambda: _is_gone(session, address))


def _is_gone(session: Session, address: str) -> bool:
    try:
        session.sender(address).close()
    except NotFound:
        return True
    return False


@pytest.mark.only("embedded", "qpidd", "artemis")
def test_the_anonymous_target(session: Session, queue: MakeQueue) -> None:
    one, two = queue(), queue()
    receivers = [session.receiver(address) for address in (one, two)]
    sender = session.sender("<null>")
    for address, text in ((one, "1"), (two, "2")):
        sender.send(Message(text, to=Address(address).name))
    assert [receiver.fetch(timeout=10).content for receiver in receivers] == ["1", "2"]
    session.acknowledge()


@pytest.mark.parametrize("reliability", ["unreliable", "at-most-once", "at-least-once"])
def test_reliability(session: Session, queue: MakeQueue, reliability: str) -> None:
    address = queue().replace("{create", f"{{link: {{reliability: {reliability}}}, create")
    sender = session.sender(address)
    sender.send("x")
    sender.sync(timeout=10)
    assert sender.unsettled() == 0
    assert session.receiver(address).fetch(timeout=10).content == "x"
    session.acknowledge()


@transactions
def test_a_transaction_takes_effect_as_a_whole(connection: Connection, queue: MakeQueue) -> None:
    source, target = queue(), queue()
    plain = connection.session()
    plain.sender(source).send("in")
    watcher = plain.receiver(target)
    session = connection.session(transactional=True)
    sender, receiver = session.sender(target), session.receiver(source)
    assert receiver.fetch(timeout=10).content == "in"
    session.acknowledge()
    sender.send("out")
    with pytest.raises(Empty):
        watcher.fetch(timeout=0)
    session.commit(timeout=10)
    assert watcher.fetch(timeout=10).content == "out"
    plain.acknowledge()
    with pytest.raises(Empty):
        plain.receiver(source).fetch(timeout=0)


@transactions
def test_a_rollback_undoes_everything(connection: Connection, queue: MakeQueue) -> None:
    source, target = queue(), queue()
    plain = connection.session()
    for text in "ab":
        plain.sender(source).send(text)
    watcher = plain.receiver(target)
    session = connection.session(transactional=True)
    sender, receiver = session.sender(target), session.receiver(source, capacity=10)
    assert receiver.fetch(timeout=10).content == "a"
    session.acknowledge()
    assert receiver.fetch(timeout=10).content == "b"
    sender.send("lost")
    session.rollback(timeout=10)
    with pytest.raises(Empty):
        watcher.fetch(timeout=0)
    assert [receiver.fetch(timeout=10).content for _ in range(2)] == ["a", "b"]
    session.acknowledge()
    session.commit(timeout=10)
    with pytest.raises(Empty):
        plain.receiver(source).fetch(timeout=0)


@transactions
def test_an_open_transaction_ends_with_its_session(connection: Connection, queue: MakeQueue) -> None:
    address = queue()
    plain = connection.session()
    receiver = plain.receiver(address)
    session = connection.session(transactional=True)
    session.sender(address).send("never")
    session.close()
    with pytest.raises(Empty):
        receiver.fetch(timeout=0.2)


def test_commit_needs_a_transactional_session(session: Session) -> None:
    with pytest.raises(NontransactionalSession):
        session.commit()
    with pytest.raises(NontransactionalSession):
        session.rollback()


def test_bad_addresses_leave_the_session_usable(session: Session, queue: MakeQueue) -> None:
    with pytest.raises(MalformedAddress, match="column 4"):
        session.sender("q; create")
    with pytest.raises(InvalidOption, match="creat"):
        session.receiver("q; {creat: always}")
    with pytest.raises(InvalidOption, match="exactly-once"):
        session.sender("q; {link: {reliability: exactly-once}}")
    address = queue()
    sender = session.sender(address)
    for content in (object(), {"a": object()}, {1, 2}):
        with pytest.raises(EncodeError):
            sender.send(content)
    with pytest.raises(EncodeError, match="priority"):
        sender.send(Message("x", priority=1000))
    with pytest.raises(EncodeError, match="'list'"):
        sender.send(Message("x", properties={"list": [1]}))
    sender.send("good")
    assert session.receiver(address).fetch(timeout=10).content == "good"
    session.acknowledge()


def test_closed_things_say_so(connection: Connection, queue: MakeQueue) -> None:
    session = connection.session()
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    sender.close()
    sender.close()
    assert sender.closed
    with pytest.raises(LinkClosed, match="sender of"):
        sender.send("x")
    receiver.close()
    with pytest.raises(LinkClosed, match="receiver of"):
        receiver.fetch()
    session.close()
    with pytest.raises(SessionClosed):
        session.sender(address)
    connection.close()
    assert not connection.opened()
    with pytest.raises(ConnectionClosed):
        connection.session().sender(address).send("x")


def test_detach_and_attach_keep_sessions_and_links(broker: Target, queue: MakeQueue) -> None:
    with Connection.establish(broker.url, timeout=10) as connection:
        session = connection.session("mine")
        address = queue()
        sender, receiver = session.sender(address), session.receiver(address)
        connection.detach()
        assert connection.opened()
        assert not connection.attached()
        connection.attach(timeout=10)
        assert connection.session("mine") is session
        sender.send("after")
        assert receiver.fetch(timeout=10).content == "after"
        session.acknowledge()


def test_any_thread_may_use_a_session(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address, capacity=20)
    found: list[int] = []

    def send(first: int) -> None:
        for number in range(first, first + 50):
            sender.send({"n": number})

    def fetch() -> None:
        for _ in range(50):
            found.append(receiver.fetch(timeout=20).content["n"])

    threads = [threading.Thread(target=send, args=(first,)) for first in (0, 50, 100)]
    threads += [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.acknowledge()
    assert sorted(found) == list(range(150))


@pytest.mark.only("artemis", "rabbitmq")
@pytest.mark.parametrize(
    ("option", "brokers"),
    [
        ("assert: always", "artemis rabbitmq"),
        ("delete: always", "artemis rabbitmq"),
        ("node: {x-bindings: [{exchange: a}]}", "artemis rabbitmq"),
        ("node: {x-declare: {exclusive: True}}", "artemis rabbitmq"),
        ("node: {properties: {a: 1}}", "artemis rabbitmq"),
        ("node: {capabilities: [a]}", "rabbitmq"),
        ("mode: browse", "rabbitmq"),
        ("link: {selector: 'a = 1'}", "rabbitmq"),
        ("link: {durable: True}", "rabbitmq"),
        ("link: {x-subscribe: {exclusive: True}}", "artemis rabbitmq"),
        ("link: {reliability: exactly-once}", "artemis rabbitmq"),
    ],
)
def test_what_a_broker_cannot_provide_is_refused(
    broker: Target, session: Session, queue: MakeQueue, option: str, brokers: str
) -> None:
    address = queue()
    session.sender(address).close()
    name = Address(address).name
    product = {"artemis": "apache-activemq-artemis", "rabbitmq": "RabbitMQ"}[broker.name]
    if broker.name in brokers.split():
        with pytest.raises(InvalidOption, match=rf"{option.partition(':')[0]}\b.* is not supported by {product}$"):
            session.receiver(f"{name}; {{{option}}}")
    session.receiver(name).close()


@pytest.mark.only("rabbitmq")
def test_transactions_are_refused_where_there_are_none(connection: Connection, queue: MakeQueue) -> None:
    with pytest.raises(TransactionError, match="transactions refused by the broker"):
        connection.session(transactional=True).sender(queue(), timeout=10)


@pytest.mark.only("rabbitmq")
def test_a_wrong_password(broker: Target) -> None:
    with pytest.raises(AuthenticationFailure, match="user 'guest' was refused"):
        Connection.establish(broker.url, timeout=10, username="guest", password="wrong")


@qpid_addresses
@pytest.mark.parametrize("policy", ["always", "sender"])
@pytest.mark.parametrize("close", ["link", "session", "connection"])
def test_a_node_is_deleted_when_the_link_is_closed(broker: Target, queue: MakeQueue, policy: str, close: str) -> None:
    with Connection.establish(broker.url, timeout=10) as connection:
        session, other = connection.session(), connection.session()
        address = queue()
        name = Address(address).name
        other.sender(address).send("x")  # the node exists before
        receiver = session.receiver(f"{name}; {{delete: sender}}")
        receiver.close()
        assert not _is_gone(other, name)
        sender = session.sender(f"{name}; {{delete: {policy}}}")
        {"link": sender.close, "session": session.close, "connection": connection.close}[close]()
    with Connection.establish(broker.url, timeout=10) as connection:
        wait_until(lambda: _is_gone(connection.session(), name))


@qpid_addresses
def test_an_exchange_is_deleted_when_the_link_is_closed(session: Session) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    session.sender(f"{name}; {{create: always, node: {{type: topic}}}}")
    session.receiver(f"{name}; {{delete: receiver}}").close()
    wait_until(lambda: _is_gone(session, name))


@qpid_addresses
@pytest.mark.parametrize(
    "options",
    [
        "node: {x-bindings: [{exchange: amq.direct, key: KEY}, {exchange: amq.fanout}]}",
        "node: {x-declare: {bindings: ['amq.direct/KEY', amq.fanout]}}",
        "link: {x-bindings: [{exchange: amq.direct, key: KEY}, {exchange: amq.fanout, queue: QUEUE}]}",
        "node: {x-bindings: [{exchange: amq.match, arguments: {x-match: all, test: KEY}}]}",
    ],
)
def test_bindings_of_queues(session: Session, options: str) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    options = options.replace("KEY", f"key-{name}").replace("QUEUE", name)
    receiver = session.receiver(f"{name}; {{create: always, delete: always, {options}}}")
    if "amq.match" in options:
        session.sender("amq.match").send(Message("headers", properties={"test": f"key-{name}"}))
        session.sender("amq.match").send(Message("other", properties={"test": "other"}))
        expected = ["headers"]
    else:
        session.sender(f"amq.direct/key-{name}").send("direct")
        session.sender("amq.direct/other").send("other")
        session.sender("amq.fanout").send("fanout")
        expected = ["direct", "fanout"]
    assert [receiver.fetch(timeout=10).content for _ in expected] == expected
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    session.acknowledge()


@qpid_addresses
def test_bindings_of_topics(session: Session, queue: MakeQueue) -> None:
    address = queue()
    receiver = session.receiver(address)
    name, topic = Address(address).name, f"test-{uuid.uuid4().hex[:12]}"
    bindings = f"x-bindings: [{{queue: {name}, key: 'a.*'}}]"
    with session.sender(f"{topic}; {{create: always, delete: always, node: {{type: topic, {bindings}}}}}") as sender:
        for subject in ("a.b", "b.c"):
            sender.send(Message(subject, subject=subject))
        assert receiver.fetch(timeout=10).content == "a.b"
    with pytest.raises(Empty):
        receiver.fetch(timeout=0)
    session.acknowledge()


@qpid_addresses
def test_bindings_that_cannot_be_made(session: Session, queue: MakeQueue) -> None:
    address = queue()
    name = Address(address).name
    session.sender(address)
    for binding, missing in (
        (f"exchange: missing-{name}", f"missing-{name}"),
        (f"exchange: amq.direct, queue: missing-{name}", f"missing-{name}"),
    ):
        with pytest.raises(NotFound, match=missing):
            session.sender(f"{name}; {{node: {{x-bindings: [{{{binding}}}]}}}}")
    with pytest.raises(InvalidOption, match="needs an exchange or a queue"):
        session.sender(f"{name}; {{node: {{x-bindings: [{{key: x}}]}}}}")
    session.sender(name).send("usable")


@pytest.mark.only("embedded")
def test_a_broker_without_a_store_refuses_durable_subscriptions(session: Session) -> None:
    with pytest.raises(ResolutionError, match=r"'amq\.topic' cannot be durable: this broker keeps none"):
        session.receiver("amq.topic/a; {link: {name: mine, durable: True}}")
