"""Options of a connection under the published names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qmf.bus.url import BusUrl
from qmf.messaging import ConnectionError, VersionError
from qmf.messaging.options import ConnectionOptions, ReconnectOptions, read_options


@pytest.mark.parametrize(
    ("url", "options", "expected"),
    [
        ("host", {}, BusUrl("host")),
        ("host:1234", {}, BusUrl("host", 1234)),
        ("ann/secret@host", {}, BusUrl("host", username="ann", password="secret")),
        ("amqp://host", {"port": 1234}, BusUrl("host", 1234)),
        ("host:1", {"port": 1234}, BusUrl("host", 1)),
        ("amqps://host", {}, BusUrl("host", 5671, True)),
        ("amqp:tcp:127.0.0.1:5672", {}, BusUrl("127.0.0.1", 5672)),
        ("amqp:host:7", {}, BusUrl("host", 7)),
        ("amqp:ssl:host:7", {}, BusUrl("host", 7, True)),
        ("host", {"transport": "ssl"}, BusUrl("host", 5671, True)),
        ("host:7", {"transport": "tcp+tls"}, BusUrl("host", 7, True)),
        (None, {"host": "other", "port": 5}, BusUrl("other", 5)),
    ],
)
def test_urls(url: str | None, options: dict[str, Any], expected: BusUrl) -> None:
    assert read_options(url, options).urls == (expected,)


def test_defaults() -> None:
    assert read_options("host", {}) == ConnectionOptions((BusUrl("host"),))


@pytest.mark.parametrize("size", [0, -1, 1.5, "1", True])
def test_the_largest_message_is_a_number_of_bytes(size: object) -> None:
    with pytest.raises(ConnectionError, match="option max_message_size: must be"):
        read_options("host", {"max_message_size": size})


def test_all_options() -> None:
    options = read_options(
        "a",
        {
            "username": "ann",
            "password": "secret",
            "sasl_mechanisms": "PLAIN ANONYMOUS",
            "heartbeat": 5,
            "reconnect": True,
            "reconnect_timeout": 60,
            "reconnect_limit": 7,
            "reconnect_interval_min": 2,
            "reconnect_interval_max": 30.5,
            "reconnect_urls": ["b", "c:1"],
            "client_properties": {"x": 1},
            "container_id": "me",
            "max_message_size": 5_000_000,
            "protocol": "amqp1.0",
            "tcp_nodelay": True,
            "address_ttl": 60,
        },
    )
    assert options == ConnectionOptions(
        urls=(BusUrl("a"), BusUrl("b"), BusUrl("c", 1)),
        username="ann",
        password="secret",
        mechanisms=("PLAIN", "ANONYMOUS"),
        heartbeat=5.0,
        reconnect=ReconnectOptions(True, 60.0, 7, 2.0, 30.5),
        properties={"x": 1},
        container="me",
        max_message_size=5_000_000,
    )
    assert "secret" not in repr(options)


def test_one_interval_is_both() -> None:
    reconnect = read_options("a", {"reconnect_interval": 3, "reconnect_interval_max": 9}).reconnect
    assert (reconnect.interval_min, reconnect.interval_max) == (3, 9)


@pytest.mark.parametrize(
    ("url", "options", "fault"),
    [
        (None, {}, "a URL, or the option host, is missing"),
        ("host:x", {}, "port 'x'"),
        ("a", {"colour": "red"}, "unknown connection option 'colour'"),
        ("a", {"reconnect": 1}, "option reconnect: must be bool, not 1"),
        ("a", {"heartbeat": "5"}, "option heartbeat: must be float, not '5'"),
        ("a", {"reconnect_limit": True}, "option reconnect_limit: must be int, not True"),
        ("a", {"transport": "udp"}, "option transport: must be tcp or ssl or tcp+tls, not 'udp'"),
        ("a", {"reconnect_urls": [1]}, "option reconnect_urls: must be a URL, not 1"),
        ("amqps://a", {"ssl_trustfile": "/nowhere.pem"}, "option ssl_trustfile: there is no file '/nowhere.pem'"),
    ],
)
def test_faults_name_the_option(url: str | None, options: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConnectionError) as caught:
        read_options(url, options)
    assert fault in str(caught.value)


def test_other_protocols_are_refused() -> None:
    with pytest.raises(VersionError, match=r"only amqp1\.0 is supported, not 'amqp0-10'"):
        read_options("a", {"protocol": "amqp0-10"})


def test_files_that_are_no_certificates(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nonsense", encoding="utf-8")
    with pytest.raises(ConnectionError, match="TLS files cannot be read"):
        read_options("amqps://a", {"ssl_trustfile": str(file)})


def test_waits_between_attempts() -> None:
    assert list(ReconnectOptions().waits(False)) == [0.0]
    assert list(ReconnectOptions().waits(True)) == []
    limited = ReconnectOptions(enabled=True, limit=4, interval_min=1.0, interval_max=3.0)
    assert list(limited.waits(True)) == [0.0, 1.0, 2.0, 3.0]
    assert list(limited.waits(False)) == [0.0, 1.0, 2.0, 3.0, 3.0]
    assert list(ReconnectOptions(enabled=True, timeout=0.5).waits(True)) == [0.0]
