"""What the manual of qpidd shows: its sessions with `qpid-config`, and its cheat sheets for queues and exchanges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
from support.managed_brokers import NEVER
from support.waiting import PATIENCE

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent
from qmf.messaging import Connection, Empty, Message, MessagingError, Sender, Session
from qmf.tools.config.cli import main

Config: TypeAlias = Callable[..., list[str]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(management=NEVER, data_dir=tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture
def config(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]) -> Config:
    """Runs a command line of the manual; its output."""

    def call(line: str) -> list[str]:
        address = f"guest/guest@127.0.0.1:{broker.port}"
        assert main([*line.split(), "-a", address, "--timeout", str(PATIENCE)]) == 0
        return capsys.readouterr().out.splitlines()

    return call


@pytest.fixture
def session(broker: EmbeddedBroker) -> Iterator[Session]:
    with Connection.establish(broker.url, timeout=PATIENCE) as connection:
        yield connection.session()


def received(session: Session, address: str) -> list[Message]:
    """All messages that are there."""
    receiver = session.receiver(address)
    messages = []
    try:
        while True:
            messages.append(receiver.fetch(0))
    except Empty:
        return messages
    finally:
        session.acknowledge()
        receiver.close()


def contents(session: Session, address: str) -> list[object]:
    return [message.content for message in received(session, address)]


def test_chapter_1_1_the_summary_and_the_lists(config: Config) -> None:
    for name in ("pub_start", "pub_done", "sub_ready", "sub_done"):
        config(f"add queue {name}")
    lines = [line.strip() for line in config("")]
    assert lines[0].startswith("Total Exchanges: ")
    assert "headers: 1" in lines
    assert any(line.startswith("Total Queues: ") for line in lines)
    assert config("queues pub_") == ["Queue Name  Attributes", "=" * 35, "pub_start", "pub_done"]
    config("add queue perftest0 --durable")
    assert config("queues perftest0")[2:] == ["perftest0   --durable"]
    assert config("")[-2].split() == ["durable:", "1"]
    shown = config("-b exchanges")
    start = shown.index("Exchange '' (direct)")
    assert {f"    bind [{name}] => {name}" for name in ("pub_start", "pub_done", "sub_ready")} <= set(shown[start:])
    assert [line for line in shown if line.startswith("Exchange 'amq.")] == [
        "Exchange 'amq.topic' (topic)",
        "Exchange 'amq.direct' (direct)",
        "Exchange 'amq.fanout' (fanout)",
        "Exchange 'amq.match' (headers)",
    ]
    config("bind amq.direct pub_start rkey")
    assert "    bind [rkey] => pub_start" in config("exchanges amq.direct -b")
    config("unbind amq.direct pub_start rkey")
    for name in ("pub_start", "pub_done", "sub_ready", "sub_done", "perftest0"):
        config(f"del queue {name}")
    assert not any("pub_start" in line for line in config("-b exchanges"))


def test_chapter_2_a_queue_that_rejects(config: Config, session: Session) -> None:
    config("add queue rejecting --max-queue-size 100000 --limit-policy reject")
    sender = session.sender("rejecting")
    for _ in range(5):
        sender.send("x" * 10_000)
    with pytest.raises(MessagingError, match="resource-limit-exceeded"):
        send_many(sender)
    assert 5 <= len(received(session, "rejecting")) <= 10


def send_many(sender: Sender) -> None:
    for _ in range(20):
        sender.send("x" * 10_000)


@pytest.mark.parametrize("policy", ["ring", "ring-strict"])
def test_chapter_2_a_ring(policy: str, config: Config, session: Session) -> None:
    config(f"add queue {policy} --max-queue-count 10 --limit-policy {policy}")
    sender = session.sender(policy)
    for number in range(25):
        sender.send(str(number))
    assert contents(session, policy) == [str(number) for number in range(15, 25)]


def test_chapter_2_messages_are_paged_to_disk(config: Config, session: Session) -> None:
    config("add queue paged --max-queue-count 10 --limit-policy flow-to-disk")
    sender = session.sender("paged")
    for number in range(25):
        sender.send(str(number))
    assert contents(session, "paged") == [str(number) for number in range(25)]


def publish(session: Session, queue: str, *items: tuple[str, str]) -> None:
    sender = session.sender(queue)
    for key, content in items:
        sender.send(Message(content, properties={"qpid.LVQ_key": key}))
    sender.close()


def test_chapter_2_last_values(config: Config, session: Session) -> None:
    config("add queue stocks --order lvq")
    publish(session, "stocks", ("RHT", "1"), ("IBM", "2"), ("JAVA", "3"), ("MSFT", "4"), ("RHT", "5"))
    assert contents(session, "stocks") == ["5", "2", "3", "4"]


#: What the manual's example sends, with the number of the run.
def example(run: int) -> list[tuple[str, str]]:
    keys = ("key1", "key2", "key3", "key1", "last")
    return [(key, f"{key}.{run}") for key in keys]


SHOWN_OF = {run: [f"key1.{run}", f"key2.{run}", f"key3.{run}", f"last.{run}"] for run in (1, 2, 3)}


def test_chapter_6_browsed_values_are_not_replaced(config: Config, session: Session) -> None:
    config("add queue browsed --order lvq")
    browse = "browsed; {mode: browse}"
    publish(session, "browsed", *example(1))
    assert contents(session, browse) == SHOWN_OF[1]
    publish(session, "browsed", *example(2))
    assert contents(session, browse)[-4:] == SHOWN_OF[2]
    assert contents(session, "browsed") == SHOWN_OF[1] + SHOWN_OF[2]


def test_chapter_6_without_that_care(config: Config, session: Session) -> None:
    config("add queue updated --order lvq-no-browse")
    browse = "updated; {mode: browse}"
    publish(session, "updated", *example(1))
    publish(session, "updated", *example(2))
    assert contents(session, browse) == SHOWN_OF[2]
    assert contents(session, browse) == SHOWN_OF[2]
    publish(session, "updated", *example(3))
    assert contents(session, "updated") == SHOWN_OF[3]


def test_chapter_3_messages_are_numbered(config: Config, session: Session) -> None:
    config("add exchange topic numbered --sequence")
    config("add queue numbers")
    config("bind numbered numbers #")
    sender = session.sender("numbered/any")
    for _ in range(3):
        sender.send("text")
    assert [item.properties["qpid.msg_sequence"] for item in received(session, "numbers")] == [0, 1, 2]


def test_chapter_3_an_initial_value(config: Config, session: Session) -> None:
    config("add exchange direct initial --ive")
    config("add queue early")
    config("bind initial early key")
    sender = session.sender("initial/key")
    for content in ("first", "last"):
        sender.send(content)
    config("add queue late")
    config("bind initial late key")
    assert contents(session, "early") == ["first", "last"]
    assert contents(session, "late") == ["last"]


def test_chapter_3_an_exclusive_binding(broker: EmbeddedBroker, config: Config, session: Session) -> None:
    for name in ("exclusive1", "exclusive2"):
        config(f"add queue {name}")
    with BrokerAgent.connect(broker.url, timeout=PATIENCE) as agent:
        for name in ("exclusive1", "exclusive2"):
            agent.bind("amq.direct", name, "single", {"qpid.exclusive-binding": 1})
        (binding,) = [item for item in agent.getAllBindings() if item.bindingKey == "single"]
        assert binding.queueRef == "exclusive2"
    session.sender("amq.direct/single").send("text")
    assert (contents(session, "exclusive1"), contents(session, "exclusive2")) == ([], ["text"])


def test_chapter_7_events_of_queues_are_asked_for(config: Config) -> None:
    config("add queue queue-a --generate-queue-events 2")
    config("add queue queue-b --generate-queue-events 1")
    assert [line.split() for line in config("queues queue-")[2:]] == [
        ["queue-a", "--generate-queue-events=2"],
        ["queue-b", "--generate-queue-events=1"],
    ]
