"""npm's `mqtt`, by a JavaScript program of ours, against the embedded broker: over TCP and over WebSocket."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.foreign import ForeignProgram, required

from qmf.broker import EmbeddedBroker
from qmf.broker.protocols.mqtt.options import MqttOptions

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "javascript" / "mqtt.js"


@pytest.fixture(scope="module")
def client() -> Iterator[ForeignProgram]:
    modules = required("rhea")  # which are in the same folder
    node = shutil.which("node")
    assert node, "Node.js is needed"
    with ForeignProgram([node, str(PROGRAM)], {**os.environ, "NODE_PATH": modules}) as program:
        yield program


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(mqtt=MqttOptions(port=0), ws_port=0, users={"ann": "secret"}, mechanisms=None) as made:
        yield made


def url_of(broker: EmbeddedBroker, transport: str) -> str:
    if transport == "tcp":
        return broker.mqtt_urls[0]
    assert broker.ws_url is not None
    return broker.ws_url


def with_login(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://ann:secret@{rest}"


@pytest.mark.parametrize("transport", ["tcp", "websocket"])
@pytest.mark.parametrize("version", ["4", "5"])
def test_messages(client: ForeignProgram, broker: EmbeddedBroker, version: str, transport: str) -> None:
    kept = 'text/plain answers {"a":["1","2"]}' if version == "5" else "undefined undefined undefined"
    assert client("messages", with_login(url_of(broker, transport)), version) == [
        "granted 0 1 2",
        "0:0 0:3 0:6",
        "1:1 1:4 1:7",
        "2:2 2:5 2:8",
        kept,
        "large true",
    ]


@pytest.mark.parametrize("transport", ["tcp", "websocket"])
def test_sessions_wills_and_retained_messages(client: ForeignProgram, broker: EmbeddedBroker, transport: str) -> None:
    url = with_login(url_of(broker, transport))
    assert client("sessions", url, transport) == [
        "present false",
        "present true",
        f"{transport}/1 while away",
        f"{transport}/will lost",
        "retained true",
    ]


def test_logins(client: ForeignProgram, broker: EmbeddedBroker) -> None:
    assert client("login", broker.mqtt_urls[0], "ann", "secret") == ["connected"]
    assert client("login", broker.mqtt_urls[0], "ann", "wrong") == ["134"]
