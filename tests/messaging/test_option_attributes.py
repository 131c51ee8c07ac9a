"""Options of a connection as its attributes."""

from __future__ import annotations

import pytest

from qmf import messaging
from qmf.messaging import Connection
from qmf.messaging.options import read_options


def test_options_have_their_published_defaults() -> None:
    connection = Connection("ann/secret@a")
    assert (connection.port, connection.transport, connection.username, connection.password) == (
        5672,
        "tcp",
        "ann",
        "secret",
    )
    assert (connection.reconnect, connection.reconnect_interval_min, connection.reconnect_interval_max) == (
        False,
        1,
        120,
    )
    assert (connection.reconnect_limit, connection.reconnect_timeout, connection.heartbeat) == (None, None, None)
    assert (connection.reconnect_log, connection.address_ttl, connection.tcp_nodelay) == (True, 60, False)
    assert connection.sasl_service == "qpidd"
    assert Connection("amqps://a").port == 5671
    spaced = Connection("a", reconnect_interval=7)
    assert (spaced.reconnect_interval_min, spaced.reconnect_interval_max) == (7, 7)


def test_options_can_be_set_before_the_connection_is_opened() -> None:
    connection = Connection("a")
    connection.reconnect = True
    connection.reconnect_urls = ["b"]
    connection.heartbeat = 3
    connection.username, connection.password = "ann", "secret"
    expected = read_options(
        "a", {"reconnect": True, "reconnect_urls": ["b"], "heartbeat": 3, "username": "ann", "password": "secret"}
    )
    for name in ("urls", "reconnect", "heartbeat", "username", "password"):
        assert getattr(connection.options, name) == getattr(expected, name)
    with pytest.raises(messaging.ConnectionError, match="option heartbeat: must be float, not 'often'"):
        connection.heartbeat = "often"  # type: ignore[assignment]
    assert connection.heartbeat == 3
    with pytest.raises(AttributeError):
        connection.host = "b"  # type: ignore[misc]


def test_options_of_an_open_connection(embedded: str) -> None:
    with Connection.establish(embedded, timeout=10) as connection:
        connection.reconnect_urls = ["b"]
        connection.reconnect = True
        assert [url.host for url in connection.options.urls] == ["127.0.0.1", "b"]
        assert connection.options.reconnect.enabled
        with pytest.raises(messaging.ConnectionError, match="option heartbeat: cannot be changed while"):
            connection.heartbeat = 5
        connection.session().sender("amq.topic").send("x", timeout=10)
    connection.heartbeat = 5
