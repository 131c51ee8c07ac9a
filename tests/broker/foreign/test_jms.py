"""qpid-jms, by a Java program of ours, against the embedded broker."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.client_certificates import ALERTS, PASSWORD, REFUSED, Authority, certified_broker, java_stores
from support.foreign import ForeignProgram, required
from support.proxy import Proxy

from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection, Message

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parent / "java"


@pytest.fixture(scope="module")
def jms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignProgram]:
    jars = required("jms")
    classes = tmp_path_factory.mktemp("classes")
    path = f"{classes}:{jars}/*"
    sources = [str(source) for source in sorted(SOURCES.glob("*.java"))]
    compiler, java = shutil.which("javac"), shutil.which("java")
    assert compiler is not None, "a JDK is needed"
    assert java is not None, "a JDK is needed"
    subprocess.run([compiler, "-Xlint:all", "-cp", path, "-d", str(classes), *sources], check=True, timeout=180)
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    with ForeignProgram([java, *options, "-cp", path, "Main"]) as program:
        yield program


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(queues=["jobs", "moved"]) as broker:
        yield broker


@pytest.fixture
def url(broker: EmbeddedBroker) -> str:
    return broker.url


def declare(url: str, name: str, alternate: str = "", **arguments: object) -> None:
    """Create a queue, with an alternate exchange or arguments, whose dot is written as the first underscore."""
    listed = ", ".join(f"'{key.replace('_', '.', 1)}': {value}" for key, value in arguments.items())
    other = f"alternate-exchange: {alternate}, " if alternate else ""
    with Connection.establish(url) as connection:
        connection.session().sender(
            f"{name}; {{create: always, node: {{x-declare: {{{other}arguments: {{{listed}}}}}}}}}"
        )


# Messages


def test_messages_of_all_types_with_their_properties(jms: ForeignProgram, url: str) -> None:
    jms("types", url, "jobs", "send")
    assert jms("types", url, "jobs", "receive") == [
        "text text: ä€😀",
        "bytes 0001ff0002c3bc",
        "map boolean=Boolean:true byte=Byte:-1 bytes=byte[]:0102 char=Character:ß double=Double:0.1 none=null",
        f"stream String:first Short:-2 Long:{2**63 - 1} Float:1.5",
        "object [one, two]",
        "message | boolean=Boolean:false | byte=Byte:-128 | double=Double:1.7976931348623157E308"
        f" | float=Float:-0.5 | int=Integer:{-(2**31)} | long=Long:{-(2**63)} | none=null | short=Short:-32768"
        " | string=String:ä€😀",
        "text with headers | JMSXGroupID=String:group | JMSXGroupSeq=Integer:7 | correlation type answers",
    ]


def test_what_python_programs_receive(jms: ForeignProgram, url: str) -> None:
    jms("send", url, "jobs", "text=hello,i:number=5,s:colour=red,correlation=c,type=note,priority=7")
    with Connection.establish(url) as connection:
        session = connection.session()
        message = session.receiver("jobs").fetch(30)
        session.acknowledge()
    assert (message.content, message.properties["number"], message.properties["colour"]) == ("hello", 5, "red")
    assert (message.subject, message.correlation_id, message.priority, message.durable) == ("note", "c", 7, True)


def test_what_python_programs_send(jms: ForeignProgram, url: str) -> None:
    with Connection.establish(url) as connection:
        sender = connection.session().sender("jobs")
        for content in ("text", b"\x01\x02"):
            sender.send(Message(content, properties={"text": "ä", "number": 2**40, "flag": True}))
    properties = f" | flag=Boolean:true | number=Long:{2**40} | text=String:ä"
    assert jms("types", url, "jobs", "receive") == [f"text text{properties}", f"bytes 0102{properties}"]


@pytest.mark.parametrize("options", ["", "?amqp.maxFrameSize=4096"], ids=["large frames", "small frames"])
def test_a_large_message(jms: ForeignProgram, url: str, options: str) -> None:
    assert jms("large", url + options, "jobs", "3000000") == ["the same"]


def test_messages_are_received_in_order_and_browsed(jms: ForeignProgram, url: str) -> None:
    jms("send", url, "jobs", "text=one", "text=two", "text=three")
    for _ in range(2):
        assert jms("browse", url, "jobs") == ["one", "two", "three"]
    assert jms("receive", url, "jobs", "2") == ["one", "two"]
    assert jms("browse", url, "jobs") == ["three"]
    assert jms("receive", url, "jobs", "all") == ["three"]
    assert jms("receive", url, "jobs", "all") == []


# Selectors


@pytest.fixture(scope="module")
def filled(jms: ForeignProgram) -> Iterator[str]:
    """A broker with messages that selectors tell apart; what has no property "number" or "colour" is unknown there."""
    with EmbeddedBroker(queues=["jobs"]) as broker:
        messages = [
            "text=a,i:number=5,s:colour=red,b:flag=true",
            "text=b,l:number=10,s:colour=blue,b:flag=false,type=note",
            "text=c,d:number=2.5,s:colour=dark red,correlation=c1",
            "text=d,s:colour=a_b,priority=9",
            "text=e,f:number=-1.5,transient=yes",
        ]
        jms("send", broker.url, "jobs", *messages)
        yield broker.url


@pytest.mark.parametrize(
    ("selector", "texts"),
    [
        ("number > 4", "ab"),
        ("NOT (number > 4)", "ce"),
        ("number > 4 OR colour = 'a_b'", "abd"),
        ("number IS NULL", "d"),
        ("number IS NOT NULL AND colour IS NULL", "e"),
        ("number = 5.0", "a"),
        ("number BETWEEN 2.5 AND 5", "ac"),
        ("number NOT BETWEEN 2.5 AND 5", "be"),
        ("number * 2 + 1 = 11", "a"),
        ("-number = 1.5", "e"),
        ("number / 2 > 2.4", "ab"),
        ("colour LIKE '%red'", "ac"),
        ("colour LIKE 'r_d'", "a"),
        ("colour LIKE 'a\\_b' ESCAPE '\\'", "d"),
        ("colour NOT LIKE '%red'", "bd"),
        ("colour IN ('red', 'blue')", "ab"),
        ("colour NOT IN ('red', 'blue')", "cd"),
        ("flag", "a"),
        ("NOT flag", "b"),
        ("flag = FALSE", "b"),
        ("flag <> TRUE OR number < 0", "be"),
        ("number = 5 OR missing = 1", "a"),
        ("NOT (number = 5 AND missing = 1)", "bce"),
        ("number = 5 AND missing = 1", ""),
        ("missing <> 1", ""),
        ("colour = 5", ""),
        ("JMSType = 'note'", "b"),
        ("JMSType IS NULL", "acde"),
        ("JMSPriority > 5", "d"),
        ("JMSCorrelationID = 'c1'", "c"),
        ("JMSDeliveryMode = 'NON_PERSISTENT'", "e"),
        ("JMSDeliveryMode = 'PERSISTENT' AND colour = 'red'", "a"),
        ("JMSMessageID IS NOT NULL", "abcde"),
        ("JMSTimestamp > 0", "abcde"),
        ("JMSRedelivered = FALSE", "abcde"),
    ],
)
def test_a_selector(jms: ForeignProgram, filled: str, selector: str, texts: str) -> None:
    assert "".join(jms("browse", filled, "jobs", selector)) == texts


@pytest.mark.parametrize("selector", ["number >", "colour LIKE 5", "= 5", "number BETWEEN 1", "'open"])
def test_a_selector_that_does_not_parse(jms: ForeignProgram, filled: str, selector: str) -> None:
    (error,) = jms("browse", filled, "jobs", selector)
    assert error.startswith("InvalidSelectorException: "), error


def test_a_consumer_with_a_selector_leaves_the_rest(jms: ForeignProgram, url: str) -> None:
    jms("send", url, "jobs", *[f"text={number},i:number={number}" for number in range(6)])
    assert jms("receive", url, "jobs", "all", "number = 1 OR number = 3 OR number > 4") == ["1", "3", "5"]
    assert jms("receive", url, "jobs", "all") == ["0", "2", "4"]


# Acknowledgement and transactions


def test_recovering_a_session(jms: ForeignProgram, url: str) -> None:
    assert jms("recover", url, "jobs") == [
        "one, two",
        "one again, 2, two again, 2",
        "one again, 3",
        "two again, 3",
        "three",
        "[three again, 2]",
        "[three again, 2]",
    ]


def test_messages_that_are_acknowledged_one_by_one(jms: ForeignProgram, url: str) -> None:
    assert jms("individual", url, "jobs") == ["[one again, 2, three again, 2]"]


def test_listeners_and_sends_in_the_background(jms: ForeignProgram, url: str) -> None:
    assert jms("listen", url, "jobs") == ["message 0", "message 1", "message 2", "sent", "sent", "sent"]


def test_a_message_that_fails_too_often(jms: ForeignProgram, url: str) -> None:
    """The client rejects it, and the broker moves it to the alternate exchange."""
    declare(url, "dead")
    declare(url, "risky", alternate="amq.fanout")
    with Connection.establish(url) as connection:
        connection.session().sender("amq.fanout; {node: {x-bindings: [{queue: dead}]}}")
    lines = jms(
        "give-up", f"{url}?jms.redeliveryPolicy.maxRedeliveries=2&jms.redeliveryPolicy.outcome=REJECTED", "risky"
    )
    assert lines == ["one", "one again, 2", "one again, 3", "two"]
    assert jms("receive", url, "risky", "all") == []
    assert jms("receive", url, "dead", "all") == ["one"]


def test_a_transaction(jms: ForeignProgram, url: str) -> None:
    assert jms("transact", f"{url}?jms.prefetchPolicy.all=0", "jobs") == [
        "before the commit []",
        "one, two",
        "one again, 2, two again, 2",
        "three, four",
        "three again, 2, four again, 2",
        "after the last commit []",
    ]


def test_several_transactions_at_once(jms: ForeignProgram, url: str) -> None:
    assert jms("transactions", url + "?jms.prefetchPolicy.all=0", "jobs", "moved") == [
        "[second moved two]",
        "one again, 2",
    ]


def test_transactions_that_end_with_their_connection_or_fail(jms: ForeignProgram, url: str) -> None:
    declare(url, "small", qpid_max_count=3)
    lines = jms("abandon", url, "small")
    assert lines[0].startswith("the transaction was rolled back: queue 'small' is full"), lines
    assert lines[1:] == ["one", "[]"]


# Topics


def test_subscribers_of_a_topic(jms: ForeignProgram, url: str) -> None:
    assert jms("subscribe", url, "amq.topic") == ["[one, two]", "[one]"]


def test_a_durable_subscription(jms: ForeignProgram, tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        assert jms("durable", broker.url, "amq.topic", "client", "sub") == ["[]"]
        jms("send", broker.url, "topic:amq.topic", "text=while away", "text=another")
        assert jms("durable", broker.url, "amq.topic", "client", "sub") == ["[while away, another]"]
        assert jms("durable", broker.url, "amq.topic", "client", "sub") == ["[]"]
        jms("send", broker.url, "topic:amq.topic", "text=kept on the disk")
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        assert jms("durable", broker.url, "amq.topic", "client", "sub") == ["[kept on the disk]"]
        jms("send", broker.url, "topic:amq.topic", "text=lost with the subscription")
        assert jms("unsubscribe", broker.url, "client", "sub") == ["unsubscribed"]
        assert jms("durable", broker.url, "amq.topic", "client", "sub") == ["[]"]
        assert jms("unsubscribe", broker.url, "client", "sub") == ["unsubscribed"]
        (error,) = jms("unsubscribe", broker.url, "client", "sub")
        assert error.startswith("InvalidDestinationException: "), error


def test_another_selector_replaces_a_durable_subscription(jms: ForeignProgram, tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        assert jms("durable", broker.url, "amq.topic", "client", "sub") == ["[]"]
        jms("send", broker.url, "topic:amq.topic", "text=before,s:colour=red")
        assert jms("durable", broker.url, "amq.topic", "client", "sub", "colour = 'red'") == ["[]"]
        jms("send", broker.url, "topic:amq.topic", "text=red,s:colour=red", "text=blue,s:colour=blue")
        assert jms("durable", broker.url, "amq.topic", "client", "sub", "colour = 'red'") == ["[red]"]


@pytest.mark.parametrize("client", [[], ["client"]], ids=["of all clients", "of one client"])
@pytest.mark.parametrize("kind", ["volatile", "durable"])
def test_a_shared_subscription(jms: ForeignProgram, tmp_path: Path, kind: str, client: list[str]) -> None:
    all_messages = "[" + ", ".join(f"message {number}" for number in range(10)) + "]"
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        assert jms("shared", broker.url, "amq.topic", "sub", kind, *client) == ["kept []", all_messages]
        jms("send", broker.url, "topic:amq.topic", "text=while away")
        kept = "kept [while away]" if kind == "durable" else "kept []"
        assert jms("shared", broker.url, "amq.topic", "sub", kind, *client) == [kept, all_messages]


def test_a_subscriber_without_its_own_messages(jms: ForeignProgram, url: str) -> None:
    assert jms("no-local", url, "amq.topic") == ["[theirs]", "[mine, theirs]"]


def test_temporary_queues_and_topics(jms: ForeignProgram, url: str) -> None:
    assert jms("temporary", url) == [
        "to the topic, to the topic",
        "to the queue",
        "InvalidDestinationException",
        "InvalidDestinationException",
        "InvalidDestinationException",
    ]


def test_requests_are_answered_to_a_temporary_queue(jms: ForeignProgram, url: str) -> None:
    assert jms("request", url, "jobs") == ["answer to question", "true"]


# Time and order


def test_messages_whose_time_has_ended_are_not_delivered(jms: ForeignProgram, url: str) -> None:
    """The broker removes them: the client is told not to look."""
    jms("send", url, "jobs", "text=late,ttl=1", "text=in time,ttl=3600000", "text=always")
    assert jms("receive", f"{url}?jms.localMessageExpiry=false", "jobs", "all") == ["in time", "always"]


def test_a_queue_with_priorities(jms: ForeignProgram, url: str) -> None:
    declare(url, "ranked", qpid_priorities=10)
    jms("send", url, "ranked", *[f"text={number},priority={number}" for number in (4, 9, 0, 5)])
    assert jms("receive", url, "ranked", "all") == ["9", "5", "4", "0"]


def test_a_queue_of_last_values(jms: ForeignProgram, url: str) -> None:
    declare(url, "stocks", qpid_last_value_queue_key="symbol")
    jms("send", url, "stocks", "text=1,s:symbol=A", "text=2,s:symbol=B", "text=3,s:symbol=A")
    assert jms("browse", url, "stocks") == ["2", "3"]


def test_delayed_messages(jms: ForeignProgram, url: str) -> None:
    """One of an hour stays where it is; one of a moment arrives after what was sent behind it."""
    jms("send", url, "jobs", "text=in an hour,delay=3600000", "text=in a moment,delay=300", "text=at once")
    assert jms("receive", url, "jobs", "2") == ["at once", "in a moment"]
    assert jms("receive", url, "jobs", "all") == []


# Connections


def test_failover(jms: ForeignProgram, url: str) -> None:
    with Proxy(url) as proxy:
        jms.begin("failover", proxy.url, "jobs")
        jms.paused()
        proxy.cut()
        assert jms.go_on() == ["20", "[]"]


def test_failover_within_a_transaction(jms: ForeignProgram, url: str) -> None:
    with Proxy(url) as proxy:
        jms.begin("failover-transaction", proxy.url, "jobs")
        jms.paused()
        proxy.cut()
        assert jms.go_on() == ["TransactionRolledBackException", "[kept]"]


def test_wrong_passwords(jms: ForeignProgram) -> None:
    with EmbeddedBroker(users={"anna": "secret"}) as broker:
        assert jms("refused", broker.url, "anna", "secret") == ["connected"]
        (error,) = jms("refused", broker.url, "anna", "wrong")
        assert error.startswith("JMSSecuritySaslException: "), error


def test_a_queue_that_is_not_there(jms: ForeignProgram, url: str) -> None:
    errors = jms("missing", url, "nowhere")
    assert len(errors) == 2
    for error in errors:
        assert error.startswith("InvalidDestinationException: no exchange or queue 'nowhere'"), error


def test_a_full_queue(jms: ForeignProgram, url: str) -> None:
    declare(url, "small", qpid_max_count=3)
    (error,) = jms("fill", url, "small", "10")
    assert error.startswith("3 ResourceAllocationException: Maximum depth exceeded on small"), error
    assert jms("receive", url, "small", "all") == ["message 0", "message 1", "message 2"]


def test_a_client_id_is_used_once(jms: ForeignProgram, url: str) -> None:
    assert jms("client-id", url, "client") == ["InvalidClientIDException", "again"]


def secure(broker: EmbeddedBroker, authority: Authority, name: str) -> str:
    """A URL with the stores that keytool has made; without a certificate where the name is empty."""
    keys, trusted = java_stores(authority, name or "bob")
    options = {"trustStoreLocation": trusted, "trustStorePassword": PASSWORD}
    if name:
        options |= {"keyStoreLocation": keys, "keyStorePassword": PASSWORD}
    written = "&".join(f"transport.{option}={value}" for option, value in options.items())
    return f"{broker.url}?amqp.saslMechanisms=EXTERNAL&{written}"


def test_certificates(jms: ForeignProgram, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "qmf.broker")
    with certified_broker(tmp_path) as (broker, authority):
        url = secure(broker, authority, "bob")
        jms("send", url, "jobs", "text=hello")
        assert jms("receive", url, "jobs", "all") == ["hello"]
        for certificate, reason in REFUSED.items():
            name = certificate[0].removesuffix(".pem") if certificate else ""
            (told,) = jms("refused", secure(broker, authority, name), "", "")
            assert re.match(rf"JMS\w*Exception: .*{ALERTS[certificate]}", told), told
            assert re.search(reason, caplog.text)
