"""proton C++, by a program of ours, against the embedded broker."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.client_certificates import ALERTS, REFUSED, certified_broker
from support.foreign import ForeignProgram, required
from support.proxy import Proxy

from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection, Message

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent / "cpp" / "client.cpp"


@pytest.fixture(scope="module")
def proton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignProgram]:
    options = shlex.split(required("proton_cpp"))
    compiler = shutil.which("c++")
    assert compiler, "a C++ compiler is needed"
    program = str(tmp_path_factory.mktemp("cpp") / "client")
    subprocess.run([compiler, "-std=c++17", "-Wall", str(SOURCE), "-o", program, *options], check=True, timeout=180)
    with ForeignProgram([program]) as running:
        yield running


@pytest.fixture
def url() -> Iterator[str]:
    with EmbeddedBroker(queues=["jobs"]) as broker:
        yield broker.url


def test_sending_browsing_and_receiving(proton: ForeignProgram, url: str) -> None:
    assert proton("send", url, "jobs", "one", "two") == ["accepted accepted"]
    for _ in range(2):
        assert proton("read", url, "jobs", "browse") == ["one", "two"]
    assert proton("read", url, "jobs", "consume") == ["one", "two"]
    assert proton("read", url, "jobs", "consume") == []


def test_a_selector(proton: ForeignProgram, url: str) -> None:
    with Connection.establish(url) as connection:
        sender = connection.session().sender("jobs")
        for number in range(4):
            sender.send(Message(str(number), properties={"number": number}))
    assert proton("read", url, "jobs", "browse", "number BETWEEN 1 AND 2") == ["1", "2"]
    assert proton("read", url, "jobs", "consume", "number = 3 OR missing > 0") == ["3"]
    assert proton("read", url, "jobs", "consume") == ["0", "1", "2"]


def test_sections_and_types(proton: ForeignProgram, url: str) -> None:
    values, headers = proton("types", url, "jobs")
    for part in ('"byte"=-1', '"ulong"=18446744073709551615', '"float"=0.5', "symbol", ":annotation", '"b"="two"'):
        assert part in values, (part, values)
    assert headers == "the same headers"


def test_a_large_message_in_small_frames(proton: ForeignProgram, url: str) -> None:
    assert proton("large", url, "jobs", "2000000", "1024") == ["the same"]


def test_released_modified_and_rejected(proton: ForeignProgram, url: str) -> None:
    assert proton("outcomes", url, "jobs") == ["one 0", "one 0", "one 0"]


def test_requests_are_answered_to_a_dynamic_node(proton: ForeignProgram, url: str) -> None:
    assert proton("request", url, "jobs") == ["answer to question"]


def test_a_durable_subscription(proton: ForeignProgram, tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        arguments = (broker.url, "amq.topic", "client", "sub")
        assert proton("subscription", *arguments, "keep") == []
        proton("send", broker.url, "amq.topic", "while away")
        assert proton("subscription", *arguments, "end") == ["while away"]
        proton("send", broker.url, "amq.topic", "lost")
        assert proton("subscription", *arguments, "end") == []


def test_links_to_nowhere(proton: ForeignProgram, url: str) -> None:
    reason = "amqp:not-found: no exchange or queue 'nowhere'"
    assert proton("refused", url, "nowhere") == [reason, reason]


def test_a_connection_that_is_cut_is_made_again(proton: ForeignProgram, url: str) -> None:
    with Proxy(url) as proxy:
        proton.begin("reconnect", proxy.url, "jobs")
        assert proton.paused() == ["held message 1"]
        proxy.cut()
        assert proton.go_on() == ["message 1", "message 2"]


def test_passwords(proton: ForeignProgram) -> None:
    with EmbeddedBroker(queues=["jobs"], users={"anna": "secret"}) as broker:
        right, wrong = (broker.url.replace("://", f"://anna:{password}@") for password in ("secret", "wrong"))
        assert proton("send", right, "jobs", "one") == ["accepted"]
        with pytest.raises(AssertionError, match="Authentication failed"):
            proton("send", wrong, "jobs", "one")


def test_certificates(proton: ForeignProgram, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "qmf.broker")
    with certified_broker(tmp_path) as (broker, authority):
        url = broker.url.replace("127.0.0.1", "localhost")  # the only kind of names that proton compares

        def send(*certificate: str) -> list[str]:
            own = [str(tmp_path / name) for name in certificate]
            return proton("certified", url, "jobs", str(authority.file), *own)

        assert send("bob.pem") == ["accepted"]
        for certificate, reason in REFUSED.items():
            with pytest.raises(AssertionError, match=f"framing-error: SSL Failure: .*{ALERTS[certificate]}"):
                send(*certificate)
            assert re.search(reason, caplog.text)
