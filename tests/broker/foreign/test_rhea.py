"""rhea, by a JavaScript program of ours, against the embedded broker."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.client_certificates import ALERTS, REFUSED, certified_broker
from support.foreign import ForeignProgram, required
from support.proxy import Proxy

from qmf.broker import EmbeddedBroker

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "javascript" / "client.js"


@pytest.fixture(scope="module")
def rhea() -> Iterator[ForeignProgram]:
    modules = required("rhea")
    node = shutil.which("node")
    assert node, "Node.js is needed"
    with ForeignProgram([node, str(PROGRAM)], {**os.environ, "NODE_PATH": modules}) as program:
        yield program


@pytest.fixture
def url() -> Iterator[str]:
    with EmbeddedBroker(queues=["jobs"]) as broker:
        yield broker.url


def test_bodies_sections_and_types(rhea: ForeignProgram, url: str) -> None:
    lines = rhea("types", url, "jobs")
    assert lines[:9] == ["accepted", '"ä€😀"', "true", "null", "1.5", "-5", "5", '["a",1]', '{"a":{"b":[true]}}']
    assert [json.loads(line) for line in lines[9:11]] == [
        {"typecode": 117, "content": {"type": "Buffer", "data": [0, 255]}},
        {"typecode": 118, "content": [1, "two"]},
    ]
    sections = dict(line.split(" ", 1) for line in lines[11:])
    assert json.loads(sections.pop("application_properties")) == {
        "byte": -1,
        "ushort": 65535,
        "long": -9,
        "float": 0.5,
        "uuid": {"type": "Buffer", "data": list(bytes.fromhex("00112233445566778899aabbccddeeff"))},
        "flag": False,
        "none": None,
        "time": "2023-11-14T22:13:20.000Z",
    }
    assert {name: json.loads(value) for name, value in sections.items()} == {
        "body": "all sections",
        "content_encoding": "utf-8",
        "content_type": "text/plain",
        "correlation_id": 9,
        "durable": True,
        "group_id": "group",
        "group_sequence": 3,
        "message_annotations": {"x-opt-of-mine": "symbol", "x-opt-list": [1, [2, "three"]]},
        "message_id": "message",
        "priority": 7,
        "reply_to": "answers",
        "reply_to_group_id": "other",
        "subject": "subject",
        "to": "jobs",
        "user_id": "guest",
    }


def test_a_large_message_in_small_frames(rhea: ForeignProgram, url: str) -> None:
    assert rhea("large", url, "jobs", "2000000", "1024") == ["accepted", "the same"]


@pytest.mark.parametrize("size", ["20", "100000"])
def test_messages_of_another_format(rhea: ForeignProgram, url: str, size: str) -> None:
    assert rhea("format", url, "jobs", str(0x80013700), size) == ["0 before", "2147563264 the same", "0 after"]


def messages(*found: Mapping[str, object]) -> list[str]:
    return [json.dumps(message) for message in found]


def test_selectors_and_browsing(rhea: ForeignProgram, url: str) -> None:
    sent = messages(*({"body": number, "application_properties": {"number": number}} for number in range(4)))
    assert rhea("send", url, "jobs", *sent) == ["accepted accepted accepted accepted"]
    for _ in range(2):
        assert rhea("browse", url, "jobs") == ["[0,1,2,3]"]
    assert rhea("browse", url, "jobs", "number > 1") == ["[2,3]"]
    assert rhea("receive", url, "jobs", "number = 1 OR other IS NOT NULL") == ["[1]"]
    assert rhea("receive", url, "jobs") == ["[0,2,3]"]


def test_released_modified_and_rejected(rhea: ForeignProgram, url: str) -> None:
    assert rhea("outcomes", url, "jobs") == [
        "one 0",
        "one 0",
        "one 1",
        "here []",
        "one 2",
        "rejected []",
    ]


def test_settling(rhea: ForeignProgram, url: str) -> None:
    assert rhea("settling", url, "jobs") == [
        "sent settled: true",
        "accepted accepted",
        "received settled, settled: true",
        "received first, settled: true",
        "second was settled by the broker",
        "[]",
    ]


def test_credit_and_draining(rhea: ForeignProgram, url: str) -> None:
    assert rhea("credit", url, "jobs") == ["[1,2]", "[3,4,5]", "[]"]


def test_requests_are_answered_to_a_dynamic_node(rhea: ForeignProgram, url: str) -> None:
    assert rhea("request", url, "jobs") == ["answer to question c"]


def test_a_durable_subscription(rhea: ForeignProgram, tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        arguments = (broker.url, "amq.topic", "client", "sub")
        assert rhea("subscription", *arguments, "keep") == ["[]"]
        rhea("send", broker.url, "amq.topic", *messages({"body": "while away", "durable": True}))
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        arguments = (broker.url, "amq.topic", "client", "sub")
        assert rhea("subscription", *arguments, "end") == ['["while away"]']
        rhea("send", broker.url, "amq.topic", *messages({"body": "lost"}))
        assert rhea("subscription", *arguments, "end") == ["[]"]


def test_a_binding(rhea: ForeignProgram, url: str) -> None:
    assert rhea("binding", url, "amq.topic", "a.*") == ['["a.b","a.c"]']


def test_links_to_nowhere(rhea: ForeignProgram, url: str) -> None:
    reason = "amqp:not-found: no exchange or queue 'nowhere'"
    assert rhea("refused", url, "nowhere") == [reason, reason, "granted"]


def test_passwords(rhea: ForeignProgram) -> None:
    with EmbeddedBroker(users={"anna": "secret"}) as broker:
        assert rhea("login", broker.url, "anna", "secret") == ["connected"]
        assert rhea("login", broker.url, "anna", "wrong") != ["connected"]


def test_a_connection_that_is_cut_is_made_again(rhea: ForeignProgram, url: str) -> None:
    with Proxy(url) as proxy:
        rhea.begin("reconnect", proxy.url, "jobs")
        assert rhea.paused() == ["held 1"]
        proxy.cut()
        assert rhea.go_on() == ["[1,2,3]"]


def test_delayed_messages(rhea: ForeignProgram, url: str) -> None:
    delayed = {"body": "in an hour", "message_annotations": {"x-opt-delivery-delay": 3_600_000}}
    rhea("send", url, "jobs", *messages(delayed, {"body": "at once"}))
    assert rhea("receive", url, "jobs") == ['["at once"]']


def test_over_websocket(rhea: ForeignProgram) -> None:
    with EmbeddedBroker(queues=["jobs"], ws_port=0) as broker:
        assert broker.ws_url is not None
        lines = rhea("types", broker.ws_url, "jobs")
        assert lines[:2] == ["accepted", '"ä€😀"']


def test_certificates(rhea: ForeignProgram, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "qmf.broker")
    with certified_broker(tmp_path) as (broker, authority):

        def send(*certificate: str) -> list[str]:
            own = [str(tmp_path / name) for name in certificate]
            return rhea("certified", broker.url, "jobs", str(authority.file), *own)

        assert send("bob.pem") == ["accepted"]
        for certificate, reason in REFUSED.items():
            assert re.search(ALERTS[certificate], " ".join(send(*certificate)))
            assert re.search(reason, caplog.text)
